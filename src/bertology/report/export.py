"""A result's tables and figures as files for papers and other programs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bertology.errors import StoreError, UnknownNameError
from bertology.report.latex import as_latex, strongest_as_latex
from bertology.results.files import LocalFiles
from bertology.results.formats import table_to_bytes
from bertology.results.rendering import FIGURE_FORMATS, render

if TYPE_CHECKING:
    import pandas as pd

    from bertology.results.result import Result


def _csv(table: pd.DataFrame) -> bytes:
    import pandas as pd

    # A bare count of the rows is no information; any other index is.
    counted = isinstance(table.index, pd.RangeIndex) and table.index.name is None
    return table.to_csv(index=not counted).encode()


def _tex(table: pd.DataFrame) -> bytes:
    return as_latex(table).encode()


_TABLES: dict[str, Callable[[pd.DataFrame], bytes]] = {
    "csv": _csv,
    "tex": _tex,
    "parquet": table_to_bytes,
}
_EXCERPT = "latex"
FORMATS = (*_TABLES, _EXCERPT, *FIGURE_FORMATS)


def export(
    result: Result,
    folder: str | os.PathLike[str],
    formats: Sequence[str] = ("csv", "svg"),
    *,
    prefix: str | None = None,
    width: str | None = None,
    force: bool = False,
) -> list[Path]:
    """Write every table and every figure of `result` to `folder` in each of `formats`.

    Tables go to csv, parquet, tex (LaTeX, all rows) and latex (the ten strongest, for a paper),
    figures to svg, png and pdf, with a text of their captions. Gives the files written.
    Their names begin with study and identity, or with `prefix`. A file that is there and holds
    something else is replaced only with `force`. With a `width`, `column` or `page`, figures are
    for a paper: of this width and without titles.
    """
    for name in formats:
        if name not in FORMATS:
            raise UnknownNameError("export format", name, FORMATS)
    target = LocalFiles(os.fspath(folder), os.fspath(folder))
    begin = f"{result.provenance.study}-{result.identity[:8]}-" if prefix is None else prefix
    written = []
    for name, data in _contents(result, formats, width):
        path = Path(folder) / f"{begin}{name}"
        if not force and path.is_file() and path.read_bytes() != data:
            raise StoreError(
                f"{path} is there already, and holds something else.",
                hint="Choose another folder, or replace it with --force (in Python: force=True).",
            )
        target.write(path.name, data)
        written.append(path)
    return written


def _captions(result: Result) -> str:
    """What the result says, then what each of its figures shows."""
    told = [f"{name}: {drawing.caption}" for name, drawing in result.figures().items()]
    return "\n\n".join([f"{result.about}: {result.answer}", *told]) + "\n"


def _contents(
    result: Result, formats: Sequence[str], width: str | None
) -> Iterator[tuple[str, bytes]]:
    for format in formats:
        if format in _TABLES:
            for name, table in result.tables.items():
                yield f"{name}.{format}", _TABLES[format](table)
        elif format == _EXCERPT:
            for name in result.tables:
                yield f"{name}-strongest.tex", strongest_as_latex(result, name).encode()
    chosen = [format for format in formats if format in FIGURE_FORMATS]
    if chosen and result.figures():
        yield "captions.txt", _captions(result).encode()
        title = None if width is None else ""
        for name in result.figures():
            figure = result.plot(name, title=title, width=width)
            for format in chosen:
                yield f"{name}.{format}", render(figure, format)
                figure.set_layout_engine("none")  # everything has its place; finding it is slow
