"""`bertology list`, `show` and `export`: what is in a store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bertology.cli.command import command
from bertology.cli.console import columns_that_fit, say, show_table
from bertology.cli.option_groups import StoreOptions
from bertology.cli.typer_options import argument, required
from bertology.errors import UnknownNameError
from bertology.parameters import flag, parameter

if TYPE_CHECKING:
    import pandas as pd

    from bertology.results.result import Result

_ROWS = 20
_LONG = 40  # characters of a cell
_INPUT = -1  # as a layer in tables
_SHORT = 24  # rows; tables after the first are shown if they are not longer

_IDENTITY = (
    "The identity of the result, or its first characters if no other has the same; latest: the "
    "newest one."
)


@dataclass(frozen=True, kw_only=True)
class ListOptions(StoreOptions):
    """The options of `list`."""

    study: str | None = parameter(None, "Only results of this study.")
    disk: bool = flag("Show what was measured and stays, and how many bytes it takes.")


@dataclass(frozen=True, kw_only=True)
class ShowOptions(StoreOptions):
    """The options of `show`."""

    identity: str = argument(_IDENTITY)
    rows: int = parameter(_ROWS, "How many rows of the main table to show.", minimum=0)


@dataclass(frozen=True, kw_only=True)
class ExportOptions(StoreOptions):
    """The options of `export`."""

    identity: str = argument(_IDENTITY)
    format: str = required(
        "csv, parquet, tex (LaTeX): tables. latex: their ten strongest rows, for a paper. "
        "svg, png, pdf: figures. all: all of them.",
        metavar="FORMAT,…",
    )
    to: Path = required(
        "The folder for the files. It is made if it does not exist.", metavar="FOLDER"
    )
    width: str | None = parameter(
        None,
        "For figures in a paper: as wide as a column or a page, with type for that width, and "
        "without titles (the file of captions tells what they show).",
        choices=("column", "page"),
    )
    force: bool = flag("Replace files of the same names that hold something else.")


@command(
    "list",
    [ListOptions],
    examples=[
        "bertology list",
        "bertology list --disk",
        "bertology list --study head-ablation --store s3://lab",
    ],
)
def list_results(options: ListOptions) -> None:
    """List the stored results, newest first."""
    from bertology.results.store import Store

    store, study = options.store, options.study
    if options.disk:
        from bertology.cli.conclude import show_disk

        show_disk(Store(store), study)
        return
    found = Store(store).list(study)
    if not found and study is not None:
        say(f"No results of {study!r} in {store!r}. See all with: bertology list --store {store}")
        return
    if not found:
        say(f"No results in {store!r}. Make one with: bertology run STUDY --model M --task T")
        return
    show_table(
        ("identity", "study", "model", "corpus", "made", "seconds"),
        (
            (
                p.identity[:8],
                p.study,
                p.model.get("name"),
                (p.corpus or {}).get("name"),
                p.created,
                round(p.duration, 1),
            )
            for p in found
        ),
    )


@command(
    "show",
    [ShowOptions],
    examples=["bertology show latest", "bertology show 3fa9 --rows 200"],
)
def show(options: ShowOptions) -> None:
    """Show a stored result: its parameters, its main table and its verdicts on claims."""
    result, folder = _load(options.store, options.identity)
    show_result(result, rows=options.rows)
    say(f"Result:  {folder}")


@command(
    "export",
    [ExportOptions],
    examples=[
        "bertology export 3fa9c1 --format csv --to tables",
        "bertology export 3fa9c1 --format pdf --to figures",
        "bertology export latest --format pdf,latex --width column --to paper",
    ],
)
def export(options: ExportOptions) -> None:
    """Write the tables or figures of a stored result to files."""
    from bertology.report.export import FORMATS
    from bertology.report.export import export as write

    names = [name.strip() for name in options.format.split(",")]
    formats = FORMATS if options.format == "all" else names
    for name in formats:
        if name not in FORMATS:
            raise UnknownNameError("--format", name, [*FORMATS, "all"])
    result, _ = _load(options.store, options.identity)
    written = write(result, options.to, formats, width=options.width, force=options.force)
    if not written:
        say(f"{result.provenance.study} has nothing to export as {options.format}.")
    for path in written:
        say(str(path))


def _load(store: str, identity: str) -> tuple[Result, str]:
    """A stored result as its study's own class, and its folder."""
    import bertology.studies  # noqa: F401 - registers the classes that read results
    from bertology.results.store import Store

    place = Store(store)
    return place.load(identity), place.folder(identity)


def _examples(result: Result) -> str:
    """How many examples were studied, how many were given, and how many the corpus has."""
    there = (result.provenance.corpus or {}).get("size")
    seen = result.arrays.attrs.get("examples", there)
    noun = "example" if there == 1 else "examples"
    drawn = result.provenance.drawn_note
    if seen == there:
        return f"{there} {noun} {drawn}".rstrip()
    return f"{seen} of {there} {noun}" + (f", which were {drawn}" if drawn else "")


def _cut(cell: object) -> object:
    """Shorten a name that is too long for a table, such as a set of sixty heads."""
    return f"{cell[:_LONG]}…" if isinstance(cell, str) and len(cell) > _LONG + 1 else cell


def show_result(result: Result, *, rows: int = _ROWS) -> None:
    """Print study, parameters, tables and verdicts."""
    p = result.provenance
    say(result.answer, style="bold")
    over = f" over {p.corpus['name']} ({_examples(result)})" if p.corpus else ""
    say(f"{p.study} of {p.model.get('name')}{over}")
    settings = ", ".join(f"{k} = {v}" for k, v in p.parameters.items() if v not in (None, []))
    say(f"{settings or 'no parameters'}; {p.duration:.1f} s; {p.created}; {result.identity}")
    if p.labels_note:
        say(p.labels_note)
    for note in result.notes():
        # On standard output, so that it stays with the result in a file.
        say(note, style="yellow")
    if result.headline():
        say(result.headline())
    for i, name in enumerate(result.tables):
        if i == 0 or len(result.tables[name]) <= _SHORT:
            _show_table(result, name, rows)
        else:
            say(f"Table {name}: {len(result.tables[name])} rows; see it with bertology export")
    verdicts = result.verdicts()
    if verdicts:
        from bertology.results.rules import TERMINAL_STYLES
        from bertology.results.verdicts import statement_text

        show_table(
            ("verdict", "claim", "measured"),
            (
                (v.outcome.in_words, f"{statement_text(v.claim)}\n{v.claim.id}", v.measured)
                for v in verdicts
            ),
            title="Claims of the literature, judged on this result",
            styles=TERMINAL_STYLES,
        )


def _measured(cells: Sequence[object]) -> bool:
    """Whether a column holds measured numbers, alone or with their intervals."""
    return any(isinstance(c, float) or (isinstance(c, str) and c.endswith("]")) for c in cells)


def _is_prose(cells: Sequence[Sequence[object]]) -> bool:
    """Whether a table has long texts only, which would be cut before they differ."""
    every = [cell for row in cells for cell in row]
    texts = [cell for cell in every if isinstance(cell, str)]
    return len(texts) == len(every) > 0 and max(map(len, texts)) > _LONG


def _count(table: pd.DataFrame) -> str:
    return f"{len(table)} row{'' if len(table) == 1 else 's'}"


def _numbering(table: pd.DataFrame) -> str:
    """How layers and heads are counted, where a table has any."""
    names = [str(name) for name in table.columns]
    if not any("layer" in name or "head" in name for name in names):
        return ""
    said = "; layers and heads count from 0"
    if "layer" in table and (table["layer"] == _INPUT).any():
        said += f", {_INPUT} is what enters layer 0"
    return said


def _show_table(result: Result, name: str, rows: int) -> None:
    from bertology.report.intervals import needed_columns, with_intervals

    table, order = result.in_units(name, result.shown(name)), result.order_of(name)
    shown = table.head(rows)
    named = [n for n in table.index.names if n is not None]
    if named:
        shown = shown.reset_index()
    columns, cells = with_intervals(shown)
    if _is_prose(cells):
        say(f"{name} ({_count(table)})")
        for row in cells:
            for column, cell in zip(columns, row, strict=True):
                say(f"  {column}: {cell}")
            say("")
        return
    cells = [[_cut(cell) for cell in row] for row in cells]
    ranks = needed_columns(shown)
    first = next((i for i, row in enumerate(zip(*cells, strict=True)) if _measured(row)), 0)
    # What stands before the first number are names too.
    needed = [0 if i <= first else ranks[name] for i, name in enumerate(columns)]
    fitting = columns_that_fit(columns, cells, needed)
    left = [name for i, name in enumerate(columns) if i not in fitting]
    show_table(
        [columns[i] for i in fitting],
        [[row[i] for i in fitting] for row in cells],
        title=f"{name} ({_count(table)}{order and f', {order}'}{_numbering(shown)})",
    )
    more = len(table) - rows
    left_out = [f"{more} more row{'' if more == 1 else 's'}"] if more > 0 else []
    if left:
        left_out.append(f"the column{'s' * (len(left) > 1)} {', '.join(left)}")
    if left_out:
        say(f"… {' and '.join(left_out)}: see all with bertology export --format csv")
