"""`bertology report MODEL`: all stored results of a model, on one page."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from bertology.cli.command import command, command_line
from bertology.cli.console import say, say_next, show_table, warn
from bertology.cli.option_groups import ACROSS_CLAIMS, DeviceOptions, SourceOptions, StoreOptions
from bertology.cli.typer_options import argument
from bertology.drafts import write_whole
from bertology.errors import BertologyError, ParameterError, ResultNotFoundError, StoreError
from bertology.parameters import flag, option_name, parameter

if TYPE_CHECKING:
    from bertology.report.atlas.about import About
    from bertology.report.atlas.compare import Side
    from bertology.report.atlas.gathering import Subject
    from bertology.report.atlas.side_by_side import LeftOut
    from bertology.results.store import Store

_CORPUS = "grammar"  # what --measure reads


@dataclass(frozen=True, kw_only=True)
class _MeasuredOptions(SourceOptions):
    """What `--measure` reads."""

    panel: ClassVar[str | None] = "Data of --measure"
    corpus: str | None = parameter(
        None, "The texts that the studies read: name, path or hub id. If not given: grammar."
    )
    split: str | None = parameter(None, "Which split of them. If not given: validation.")
    limit: int | None = parameter(
        None,
        "So many of them, drawn at random. If not given: 300; all of a recorded task.",
        minimum=1,
    )


@dataclass(frozen=True, kw_only=True)
class ReportOptions(StoreOptions, DeviceOptions, _MeasuredOptions):
    """The options of `report`."""

    model: str = argument("A model in the store: its name, its folder or its fingerprint.")
    task: str | None = parameter(
        None,
        "Of the models fine-tuned from it, only those on this task. With --measure, the studies "
        "read its data; it may then be your own file.",
    )
    compare: str | None = parameter(
        None,
        "Compare with another model, such as the one that MODEL was compressed from, or with MODEL "
        "fine-tuned on this task. With --measure, both models are measured, and also asked about "
        "agreement, the task, pairs as in HANS, outliers and what probes read.",
    )
    to: Path | None = parameter(
        None, "The file of the page. If not given: MODEL.html here.", metavar="FILE"
    )
    measure: bool = flag(
        "First run a standard set of quick studies, unless their results are stored: on sentences "
        "of the bundled grammar, or on data of your own (--task or --corpus)."
    )
    across_claims: bool = flag(ACROSS_CLAIMS)
    export: Path | None = parameter(
        None, "Also write every figure as SVG, PNG and PDF, and every table as CSV and LaTeX.",
        metavar="FOLDER",
    )  # fmt: skip


@command(
    "report",
    [ReportOptions],
    examples=[
        "bertology report bertology-mini --measure",
        "bertology report my-model --measure --task test.csv --columns text=review,label=stars",
        "bertology report bertology-mini --store reproductions/dark-secrets/results",
        "bertology report bertology-mini --compare mrpc --to before-and-after.html",
        "bertology report small --compare small-original --measure",
        "bertology report bertology-mini --export figures",
    ],
    needs_input=True,
)
def report(options: ReportOptions) -> None:
    """Write one page about a model from stored results: heads, layers, studies and claims.

    The page is a single HTML file. It needs no network and opens in any browser.
    """
    import bertology.studies  # noqa: F401 - registers the classes that read results
    from bertology.report.atlas.gathering import gather, is_task
    from bertology.report.atlas.naming import counted
    from bertology.report.atlas.page import atlas_page
    from bertology.results.store import Store

    store, model, task = Store(options.store), options.model, options.task
    # Refuse options that would have no effect
    for f in fields(_MeasuredOptions):
        value = getattr(options, f.name)
        if value not in (None, ()) and not options.measure:
            raise ParameterError(f"--{f.name}", "report", "be given together with --measure", value)
    if options.task is not None and options.corpus is not None:
        must = "be left out when --task is given"
        raise ParameterError("--corpus", "report", must, options.corpus)
    left_out: list[LeftOut] = []
    if options.measure:
        left_out = _measure(model, store, options)
        # Data that no model was fine-tuned on leave out no other.
        titles = gather(store, model).tasks if task is not None else ()
        task = task if any(is_task(title, str(task)) for title in titles) else None
    subject = gather(store, model, task, to_learn=_to_learn)
    compared = None
    if options.compare is not None:
        compared = _compared(store, subject, model, task, options.compare)
    say(f"Drawing {counted(len(subject.entries), 'result')} of {subject.name} …")
    with _progress("drawing", len(subject.entries)) as drawn:
        page = atlas_page(
            subject,
            _about,
            compared,
            drawn=drawn,
            left_out=left_out,
            across_claims=options.across_claims,
        )
    target = options.to or Path(f"{subject.name.replace('/', '-')}.html")
    _write(target, page)
    if compared is not None:
        _show_beside(compared, left_out)
    say(f"Page:  {target} ({len(page.encode()) / 1e6:.1f} MB)")
    if options.export is not None:
        _export(subject, options.export, compared)
    origin = subject.model.get("tuned_from")
    if origin is None or _to_learn(model, str(origin.get("task"))) is not None:
        # `model` may be short, or a fingerprint. A model of your own data cannot be verified: the
        # plans of papers know tasks by their names.
        say_next(f"bertology verify {shlex.quote(str(subject.model.get('name') or model))}")


@contextmanager
def _progress(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar while figures are drawn."""
    from bertology.run.progress import choose_progress

    progress = choose_progress(None)
    progress.start(title, total)
    try:
        yield progress.advance
    finally:
        progress.stop()


def _about(study: str) -> About:
    """A study's own description; empty if the study is not installed."""
    from bertology.errors import UnknownNameError
    from bertology.report.atlas.about import About, read_about
    from bertology.studies import find_question
    from bertology.studies.study import Study

    try:
        kind = find_question(study)
    except UnknownNameError:
        return About()
    if not issubclass(kind, Study):  # combined from stored results; nothing is run
        return read_about(kind.__doc__)
    defaults = {f.name: list(f.default) if isinstance(f.default, tuple) else f.default
                for f in fields(kind)}  # fmt: skip
    called = {f.name: option_name(f) for f in fields(kind)}
    return read_about(kind.__doc__, defaults=defaults, options=called, task=kind.needs.task)


def _compared(
    store: Store, subject: Subject, model: str, task: str | None, other: str
) -> tuple[Side, Side]:
    """The two sides of a comparison: MODEL, and another model or MODEL after another task."""
    from bertology.report.atlas.compare import Side, two_models
    from bertology.report.atlas.gathering import gather, is_task

    whole = gather(store, model)
    if not any(is_task(title, other) for title in whole.tasks):
        found = _other(store, other, model)
        if found.name == subject.name:
            found = replace(found, name="/".join(Path(other).parts[-2:]))
        return two_models(subject, found)
    before = f"{whole.name} fine-tuned on {task}" if task else whole.name
    described = None if task else whole.model
    first = tuple(e for e in subject.entries if is_task(e.task, task or ""))
    second = tuple(e for e in whole.entries if is_task(e.task, other))
    return Side(before, first, model=described), Side(f"{whole.name} fine-tuned on {other}", second)


def _other(store: Store, other: str, model: str) -> Subject:
    """Another model; where it is none, but a task, the command that teaches MODEL the task."""
    from bertology.report.atlas.gathering import gather

    try:
        return gather(store, other, compared=True)
    except ResultNotFoundError as error:
        hint = _to_learn(model, other)
        if hint is None:
            raise
        problem = f"No model fine-tuned from {model!r} on {other!r} has results in {store.url!r}."
        raise ResultNotFoundError(problem, hint=hint) from error


def _to_learn(model: str, wanted: str) -> str | None:
    """The command that fine-tunes a model on what is asked for, if it is a task that is known."""
    from bertology.data import catalog
    from bertology.errors import UnknownNameError

    try:
        entry = catalog.get(wanted)
    except UnknownNameError:
        return None
    if entry.task is None:
        return None
    return f"Fine-tune it with: bertology finetune {shlex.quote(model)} {shlex.quote(wanted)}"


def _measure(model: str, store: Store, options: ReportOptions) -> list[LeftOut]:
    """Run quick studies on one model, or on both; what cannot be run is told, and left out."""
    from bertology.run.api import make_session
    from bertology.run.loading import resolve_corpus
    from bertology.run.measuring import EXAMPLES, Measuring, recorded_task

    texts = resolve_corpus(
        options.task or options.corpus or _CORPUS,
        must_have_task=options.task is not None,
        split=options.split or "validation",
        limit=options.limit or EXAMPLES,
        **options.reading("report"),
    )
    other = _to_measure(store, options)
    task = texts if options.task is not None else None
    if task is None and other is not None:
        task = recorded_task(model, options.limit) or recorded_task(other, options.limit)
    measuring = Measuring(
        make_session(store, command=command_line()),
        texts,
        task,
        limit=options.limit,
        device=options.device,
        tell=say,
    )
    measuring.run(model, compared=other is not None)
    if other is not None:
        say(f"The same of {other}:")
        measuring.run(other, compared=True)
    if other is None:
        for one in measuring.left_out:
            warn(f"{one.study} was left out: {one.why}")
    return measuring.left_out


def _to_measure(store: Store, options: ReportOptions) -> str | None:
    """The other model, if it is one that can be loaded; a task or what is stored alone is none."""
    from bertology.report.atlas.gathering import gather, is_task
    from bertology.run.loading import ModelSource

    other = options.compare
    if other is None:
        return None
    try:
        if any(is_task(title, other) for title in gather(store, options.model).tasks):
            return None
    except ResultNotFoundError:
        pass  # nothing is stored of it yet
    try:
        ModelSource(other, device="cpu").load("saved")
    except BertologyError as error:
        try:
            gather(store, other, compared=True)
        except ResultNotFoundError:
            raise error from None
        warn(f"{other} cannot be opened, so that stored results are compared: {error.problem}")
        return None
    return other


def _show_beside(compared: tuple[Side, Side], left_out: Sequence[LeftOut]) -> None:
    """Print what both models have, what flips, and what cannot be compared."""
    from bertology.report.atlas.side_by_side import beside_tables, side_by_side

    found = side_by_side(*compared, left_out)
    if found.rows:
        for title, columns, rows in beside_tables(found):
            show_table(columns, rows, title=title)
        say("* The interval of the difference excludes 0.")
    for data, flipped in found.flips.items():
        say(f"{data}: {flipped.sentence(*found.names)}")
    for text in found.lacking:
        warn(f"not compared: {text}")


def _export(subject: Subject, folder: Path, compared: tuple[Side, Side] | None) -> None:
    from bertology.report.atlas.export import export_atlas
    from bertology.report.atlas.side_by_side import export_beside, side_by_side

    try:
        with _progress("exporting", len(subject.entries)) as drawn:
            written = export_atlas(subject, folder, drawn=drawn)
        if compared is not None:
            written += export_beside(side_by_side(*compared), folder)
    except OSError as error:
        raise StoreError(
            f"{folder} cannot be written: {error.strerror or error}.",
            hint="Choose another folder with --export.",
        ) from error
    say(f"Files: {len(written)} in {folder}")


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written: {error.strerror or error}.",
            hint="Choose another file with --to.",
        ) from error
