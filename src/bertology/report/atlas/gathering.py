"""Which stored results belong to a model: its own, and those of models fine-tuned from it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from bertology.errors import ResultNotFoundError, UnknownNameError
from bertology.report.atlas.naming import Entry, entries_of, short_name

if TYPE_CHECKING:
    from bertology.results.provenance import Provenance
    from bertology.results.store import Store

_SHORTEST = 6  # characters of a fingerprint that are taken for one
_CLASSIFIERS = ("classification", "token-classification")
Provenances = Sequence["Provenance"]


@dataclass(frozen=True)
class TaskModel:
    """A model that was fine-tuned from the one at hand."""

    title: str  # the task, as far as is known
    name: str  # of the model; a folder, mostly
    provenances: tuple[Provenance, ...]


@dataclass(frozen=True)
class Subject:
    """A model and everything that the page shows about it."""

    name: str
    model: dict[str, Any]  # name, family, shape … as provenance has them
    entries: tuple[Entry, ...]
    tasks: tuple[str, ...] = ()
    left_out: int = 0  # results of earlier models of the same name

    @property
    def grid(self) -> tuple[int, int]:
        """Layers and heads."""
        shape = self.model.get("shape") or {}
        return int(shape.get("layers") or 0), int(shape.get("heads") or 0)


def gather(
    store: Store,
    model: str,
    task: str | None = None,
    *,
    to_learn: Callable[[str, str], str | None] = lambda model, task: None,
    compared: bool = False,
) -> Subject:
    """The results of `model` (a name, a folder or a fingerprint), and of what was made from it.

    `task` leaves out what belongs to other tasks. Of results that differ in the version of their
    study alone, the newest counts. `to_learn` gives the hint for a task that no model has learnt.
    `compared`: a model that has no results, and that others were compared with, will do.
    """
    listed = _newest(store.list())
    if compared and (known := _only_compared(listed, model)) is not None:
        return known
    meant, named = _meant(store, listed, model)
    same_name = [p for p in listed if _name(p) in meant]
    prints = named or _current(same_name)
    own = [p for p in listed if p.model["fingerprint"] in prints]
    origins = [o for o in map(_origin, listed) if o.get("name") in meant]
    tasks = _tasks(listed, own, origins)
    kept = tasks if task is None else _chosen(tasks, task, model, to_learn(model, task))
    if task is not None:
        others = {t.title for t in tasks} - {t.title for t in kept}
        own = [p for p in own if (p.corpus or {}).get("name") not in others]
    groups = [("", own), *((t.title, t.provenances) for t in kept)]
    loaded = [(title, [store.load(p) for p in group]) for title, group in groups]
    return Subject(
        name=short_name(_name(same_name[0]) if same_name else min(meant)),
        model=_described(own or same_name) or _described_before(origins[0], kept),
        entries=entries_of(loaded),
        tasks=tuple(t.title for t in kept),
        left_out=_left_out(same_name, prints),
    )


def _only_compared(listed: Provenances, asked: str) -> Subject | None:
    """A model that is known only as one that others were compared with."""
    own = {name for p in listed for name in (_name(p), str(_origin(p).get("name") or ""))}
    others = [o for p in listed for o in p.others.values() if o.get("name")]
    named = [o for o in others if asked in (o["name"], short_name(str(o["name"])))]
    if not named or {asked, *(str(o["name"]) for o in named)} & (own | set(map(short_name, own))):
        return None
    return Subject(short_name(str(named[0]["name"])), dict(named[0]), ())


def _name(provenance: Provenance) -> str:
    return str(provenance.model.get("name", ""))


def _meant(store: Store, listed: Provenances, asked: str) -> tuple[set[str], set[str]]:
    """The full names that `asked` stands for; with the fingerprints, if it is one."""
    # A model may be known only as the one that others were fine-tuned from.
    before = {str(_origin(p).get("name") or "") for p in listed} - {""}
    names = sorted({*map(_name, listed), *before})
    place = os.path.abspath(os.path.expanduser(asked))
    exact = {n for n in names if n == asked or os.path.abspath(os.path.expanduser(n)) == place}
    if exact:
        return exact, set()
    in_folders = {n for n in names if short_name(n) != n}
    short = {n for n in names if short_name(n) == asked}
    short |= {n for n in in_folders if os.path.basename(n.rstrip("/")) == asked}
    places = {_place(n) for n in short}
    if len(places) > 1:
        raise ResultNotFoundError(
            f"{asked!r} is the name of {len(places)} models in the store {store.url!r}.",
            hint=f"Name one of: {', '.join(sorted(places))}",
        )
    if short:
        return short, set()
    by_print = [p for p in listed if str(p.model["fingerprint"]).startswith(asked)]
    if len(asked) < _SHORTEST or not by_print:
        raise _nothing(store, asked, sorted({short_name(n) for n in names}))
    return {_name(p) for p in by_print}, {p.model["fingerprint"] for p in by_print}


def _nothing(store: Store, asked: str, names: Sequence[str]) -> ResultNotFoundError:
    there = f"It has results of: {', '.join(names)}." if names else "It is empty."
    where = "" if store.url == "results" else f" --store {store.url}"
    near = get_close_matches(asked, names, n=1)
    return ResultNotFoundError(
        f"The store {store.url!r} has no results of {asked!r}. {there}",
        hint=f"Did you mean {near[0]!r}?"
        if near
        else "Fill it with one of:\n"
        f"  bertology report {asked} --measure{where}\n"
        f"  bertology verify {asked} --store {store.url}\n"
        f"  bertology run attention-maps --model {asked} --corpus grammar{where}",
    )


def _newest(listed: Iterable[Provenance]) -> list[Provenance]:
    """Without results that a newer one of the same study has replaced; newest first.

    Of one measurement that was concluded at several levels, the newest conclusion counts: they
    would be taken for several tasks.
    """
    found: dict[str, Provenance] = {}
    for p in sorted(listed, key=lambda p: (p.study_version, p.created), reverse=True):
        corpus = None if p.corpus is None else p.corpus["fingerprint"]
        others = {name: other["fingerprint"] for name, other in p.others.items()}
        asked = {name: value for name, value in p.parameters.items() if name not in others}
        about = [p.study, p.model["fingerprint"], corpus, asked, others, p.results]
        measured = [p.study, p.measured["key"]] if p.measured else about
        found.setdefault(json.dumps(measured, sort_keys=True), p)
    return sorted(found.values(), key=lambda p: (p.created, p.identity), reverse=True)


def _current(same_name: Provenances) -> set[str]:
    """The newest fingerprint for each head: earlier weights may have the same name."""
    newest: dict[str, str] = {}
    for p in same_name:  # newest first
        newest.setdefault(str(p.model.get("head")), p.model["fingerprint"])
    return set(newest.values())


def _left_out(same_name: Provenances, prints: set[str]) -> int:
    """How many results are of other weights with the same head."""
    heads = {p.model.get("head") for p in same_name if p.model["fingerprint"] in prints}
    others = [p for p in same_name if p.model["fingerprint"] not in prints]
    return sum(p.model.get("head") in heads for p in others)


def _origin(provenance: Provenance) -> dict[str, Any]:
    """The model before fine-tuning, where the result knows it."""
    return provenance.model.get("tuned_from") or {}


def _tasks(
    listed: Provenances, own: Provenances, origins: Sequence[dict[str, Any]]
) -> list[TaskModel]:
    """Models made from this one, as their folder's record says or as a study compared them."""
    made = _made_from(listed, own, origins)
    prints = {p.model["fingerprint"] for p in made}
    children: dict[str, tuple[Provenance, ...]] = {}
    titles: dict[str, str] = {}
    for places in _same_weights(listed, {_place(_name(p)) for p in made}, prints):
        of_it = [p for p in listed if _place(_name(p)) in places]
        kept = _ours(of_it, prints)
        if kept:
            name = min(places)
            children[name] = tuple(p for p in of_it if p.model["fingerprint"] in kept)
            titles[name] = _task_of(children[name], name)
    return [TaskModel(_apart(titles, n), n, group) for n, group in sorted(children.items())]


def _place(name: str) -> str:
    """Where a model lies, however its path was given; other names stay what they are."""
    path = "/" in name or name.startswith(("~", "."))
    return os.path.abspath(os.path.expanduser(name)) if path else name


def _same_weights(listed: Provenances, places: set[str], made: set[str]) -> list[set[str]]:
    """The places, together where one model lies at several.

    A relative path given in another folder means another place here; the weights decide.
    """
    groups: list[tuple[set[str], set[str]]] = []
    for place in sorted(places):
        prints = _current([p for p in listed if _place(_name(p)) == place]) & made
        alike = [group for group in groups if group[1] & prints]
        groups = [group for group in groups if group not in alike]
        groups.append(({place}.union(*(g[0] for g in alike)), prints.union(*(g[1] for g in alike))))
    return [found for found, _ in groups]


def _ours(of_it: Provenances, made: set[str]) -> set[str]:
    """A folder's current weights, without those that were fine-tuned again from another model.

    The same weights have a fingerprint for each head, and not every result says where its own came
    from: it goes with those of the folder that do.
    """
    current = _current(of_it)
    told = {p.model["fingerprint"] for p in of_it if p.model.get("tuned_from") or _before(p)}
    return current - (told - made) if current & made else set()


def _before(provenance: Provenance) -> dict[str, Any]:
    return provenance.others.get("before") or {}


def _made_from(
    listed: Provenances, own: Provenances, origins: Sequence[dict[str, Any]]
) -> list[Provenance]:
    """Results whose weights are known to come from the model at hand; newest first."""
    prints, names = {p.model["fingerprint"] for p in own}, {_name(p) for p in own}
    if not own:  # the newest weights that bore the name
        prints, names = {o["fingerprint"] for o in origins[:1]}, set()
    base_seen = any(p.model.get("head") == "base" for p in own)
    found = []
    for p in listed:
        origin = _origin(p)
        made = origin.get("fingerprint") in prints or _before(p).get("fingerprint") in prints
        made = made or (not base_seen and origin.get("name") in names)
        if made and p.model["fingerprint"] not in prints:
            found.append(p)
    return found


def _task_of(group: Provenances, name: str) -> str:
    """What a model learnt: as it was recorded, else what its classifier was scored on.

    Texts that its attention was looked at over do not say it.
    """
    told = [str(task) for p in group if (task := _origin(p).get("task"))]
    scored = [p.corpus_name for p in group if p.model.get("head") in _CLASSIFIERS]
    known = [task for task in (*told, *scored) if task]
    return known[0] if known else f"an unknown task ({_folder(name)})"


def _folder(name: str) -> str:
    return "/".join(os.path.normpath(name).split(os.sep)[-2:])


def _apart(titles: dict[str, str], name: str) -> str:
    """A task's title; with the folder where several models were fine-tuned on the same task."""
    title = titles[name]
    alike = [n for n, t in titles.items() if t == title]
    if len(alike) == 1:
        return title
    return f"{title} ({_folder(name)})"


def is_task(title: str, wanted: str) -> bool:
    """Whether a title is of the task; `task (folder)` is where several models learnt it."""
    return title == wanted or title.startswith(f"{wanted} (")


def _chosen(
    tasks: Sequence[TaskModel], wanted: str, model: str, hint: str | None
) -> list[TaskModel]:
    chosen = [t for t in tasks if is_task(t.title, wanted)]
    if not chosen:
        raise UnknownNameError(f"task of {model}", wanted, [t.title for t in tasks], hint=hint)
    return chosen


def _described(own: Provenances) -> dict[str, Any]:
    """What is known of the model; the bare model's description first."""
    ordered = sorted(own, key=lambda p: p.model.get("head") != "base")
    facts: dict[str, Any] = {}
    for p in ordered:
        for name, value in p.model.items():
            facts.setdefault(name, value)
    return facts


def _described_before(origin: dict[str, Any], tasks: Sequence[TaskModel]) -> dict[str, Any]:
    """The same of a model that has no result of its own: what fine-tuning did not change."""
    group = [p.model for t in tasks for p in t.provenances]
    found = {"name": origin.get("name"), "fingerprint": origin.get("fingerprint")}
    for name in ("family", "shape"):
        if group and name in group[0]:
            found[name] = group[0][name]
    return found
