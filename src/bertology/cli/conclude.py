"""`bertology conclude` and `drop`: results made anew of what was measured, and less of it."""

from __future__ import annotations

import shlex
import time
from collections import Counter
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import typer

from bertology.cli.command import command, command_line
from bertology.cli.console import say, say_next, show_table, warn
from bertology.cli.option_groups import StoreOptions
from bertology.cli.typer_options import argument, pairs_of
from bertology.errors import ParameterError, ResultNotFoundError, UnknownNameError
from bertology.parameters import flag, parameter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bertology.results.measured import Stored
    from bertology.results.store import Store


@dataclass(frozen=True, kw_only=True)
class ConcludeOptions(StoreOptions):
    """The options of `conclude`."""

    what: str | None = argument(
        "A study or join, or the identity of a result or measurement, or its first characters.",
        default=None,
        metavar="STUDY|RESULT",
    )
    all: bool = flag("Conclude all that is stored.")
    level: float | None = parameter(
        None, "Confidence level, in place of that of each result.", minimum=0.5, maximum=0.999
    )
    parameters: tuple[str, ...] = parameter(
        (),
        "Other parameters that only conclude: resamples=5000,margin=0.02. Several values of one: "
        "guesses=1+5.",
        option="set",
    )


@dataclass(frozen=True, kw_only=True)
class DropOptions(StoreOptions):
    """The options of `drop`."""

    what: list[str] = argument(
        "Keys of measurements, or their first characters (see bertology list --disk); or studies.",
        default=(),
        metavar="MEASUREMENT|STUDY",
    )
    all: bool = flag("Drop all that was measured.")
    yes: bool = flag("Do not ask.")


@command(
    "conclude",
    [ConcludeOptions],
    examples=[
        "bertology conclude --all",
        "bertology conclude head-ablation --level 0.9",
        "bertology conclude latest --set resamples=5000",
    ],
    needs_input=True,
)
def conclude(options: ConcludeOptions) -> None:
    """Make results, figures and verdicts anew from what was measured, without the model.

    Parts that studies measured stay in the store. Statistics over them take seconds, and no model
    is loaded: after an update of bertology, or with another level. Joins of the results are made
    anew too. A result that has other parameters is stored beside the one there was. run, reproduce
    and verify conclude by themselves where no more is needed.
    """
    from bertology.results.store import Store
    from bertology.run.concluding import Concluding

    if options.all == (options.what is not None):
        must = "name a study or a result, or be left out where --all is given"
        raise ParameterError("what", "conclude", must, options.what or "")
    store = Store(options.store)
    work = Concluding(store, _given(options), command_line())
    what = options.what
    if what == "latest":
        what = store.load(what).identity
    started, counts = time.monotonic(), Counter[str]()
    chosen = work.chosen(what)
    if not chosen:
        which = "Nothing" if what is None else f"No result of {what}"
        listed = f"bertology list --store {options.store}"
        say(f"{which} to conclude in {options.store!r}. See: {listed}")
    for number, outcome in enumerate(work.again(chosen), start=1):
        name = f"{outcome.about.study} of {outcome.about.about}"
        if outcome.result is None:
            counts["left"] += 1
            warn(f"{name} was not concluded: {outcome.how}.")
            continue
        counts[outcome.how] += 1
        spent = time.monotonic() - started
        say(
            f"  {number:>3}  {spent:5.1f} s  {outcome.how:<8} {outcome.result.identity[:8]}  {name}"
        )
    told = ", ".join(f"{counts[how]} {how}" for how in ("same", "changed", "new") if counts[how])
    left = f"; {counts['left']} not concluded" if counts["left"] else ""
    say(f"Concluded in {time.monotonic() - started:.1f} s: {told or 'none'}{left}", style="bold")
    elsewhere = "" if store.url == "results" else f" --store {shlex.quote(store.url)}"
    say_next(f"bertology list{elsewhere}")
    if counts["left"]:
        raise typer.Exit(1)


def _given(options: ConcludeOptions) -> dict[str, object]:
    """The concluding parameters that the options name, each of the type that its field has."""
    from bertology.studies import STUDIES
    from bertology.studies.study import concluding_parameters

    found: dict[str, object] = {} if options.level is None else {"level": options.level}
    named = pairs_of(options.parameters, "--set", "conclude", "resamples=5000")
    if not named:
        return found
    known: dict[str, object] = {}
    measuring: set[str] = set()
    for name in STUDIES.names():
        kind = STUDIES.get(name)
        concluding = concluding_parameters(kind)
        known |= {f.name: f.default for f in fields(kind) if f.name in concluding}
        measuring |= {f.name for f in fields(kind)} - concluding
    for name, text in named.items():
        if name not in known and name in measuring:
            must = f"name what only concludes: another {name} is measured, by bertology run"
            raise ParameterError("--set", "conclude", must, f"{name}={text}")
        if name not in known:
            raise UnknownNameError("parameter that only concludes", name, known)
        found[name] = _value(name, text, known[name])
    return found


def _value(name: str, text: str, like: Any) -> object:
    if isinstance(like, tuple):
        return tuple(_value(name, one, like[0]) for one in text.split("+"))
    try:
        return type(like)(text)
    except ValueError:
        must = f"be a number such as {like!r}"
        raise ParameterError("--set", "conclude", must, f"{name}={text}") from None


# What is measured, on disk ------------------------------------------------------------------------


def show_disk(store: Store, study: str | None) -> None:
    """Print what each measurement takes, and all together."""
    found = [one for one in store.measured.on_disk() if study in (None, one.study)]
    results = Counter((p.measured or {}).get("key") for p in store.list())
    found.sort(key=lambda one: (one.study, -one.bytes))
    show_table(
        ("measurement", "study", "of", "parts", "size", "state", "results"),
        (
            (
                one.key[:8],
                one.study,
                "" if one.record is None else one.record.provenance.about,
                one.parts,
                size_text(one.bytes),
                _state(one),
                results[one.key],
            )
            for one in found
        ),
    )
    by_study = Counter[str]()
    for one in found:
        by_study[one.study] += one.bytes
    for name, size in by_study.most_common():
        say(f"{name or '(not known)'}: {size_text(size)}")
    say(f"All: {size_text(by_study.total())} in {len(found)} measurements", style="bold")


def _state(one: Stored) -> str:
    if one.record is None:
        return "unfinished"
    return "kept" if one.record.kept else "dropped"


def size_text(size: int) -> str:
    """Bytes in words, by thousands."""
    for unit, bytes_of in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= bytes_of:
            return f"{size / bytes_of:.1f} {unit}"
    return f"{size} B"


@command(
    "drop",
    [DropOptions],
    examples=[
        "bertology list --disk",
        "bertology drop 3fa9",
        "bertology drop head-ablation --yes",
        "bertology drop --all --store results",
    ],
    needs_input=True,
)
def drop(options: DropOptions) -> None:
    """Remove what was measured from a store; results, figures and verdicts stay.

    Dropped measurements are measured again when they are needed. Asks before, without --yes.
    """
    from bertology.results.store import Store

    if options.all == bool(options.what):
        must = "name measurements or studies, or be left out where --all is given"
        raise ParameterError("what", "drop", must, " ".join(options.what))
    store = Store(options.store)
    there = list(store.measured.on_disk())
    chosen = there if options.all else _named(options.what, there)
    chosen = [one for one in chosen if one.parts or one.record is None]
    size = size_text(sum(one.bytes for one in chosen))
    number = f"{len(chosen)} measurement{'s' * (len(chosen) > 1)}"
    if not chosen:
        say("There is nothing to drop.")
        return
    if not options.yes:
        for one in chosen:
            say(f"  {one.key[:8]}  {size_text(one.bytes):>9}  {one.study}")
        typer.confirm(f"Drop {number} ({size})? Results stay.", abort=True)
    for one in chosen:
        store.measured.drop(one.key)
    say(f"Dropped {number}: {size}. Results stay.")


def _named(what: Iterable[str], there: Iterable[Stored]) -> list[Stored]:
    found: dict[str, Stored] = {}
    for name in what:
        some = [one for one in there if one.study == name or one.key.startswith(name)]
        if not some:
            raise ResultNotFoundError(
                f"There is no measurement, and no study with one, called {name!r}.",
                hint="See what is there with: bertology list --disk",
            )
        found |= {one.key: one for one in some}
    return list(found.values())
