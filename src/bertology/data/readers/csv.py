"""CSV and TSV. In TSV a quote is an ordinary character, as corpora have it; CSV quotes."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from bertology.data.corpus import Corpus
from bertology.data.readers.files import read_text
from bertology.data.readers.request import Request
from bertology.data.readers.table import Row, build
from bertology.errors import DataError

__all__ = ["cells", "read"]

_LONGEST_CELL = 2**27


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The corpus in a .csv or .tsv file."""
    path, request = Path(source), Request.of(source, request)
    quoting = request.options.get("quoting")
    rows = cells(path, quoted=None if quoting is None else quoting == "standard")
    header = request.options.get("header", True)
    if header is True:
        (_, names), rows = rows[0], rows[1:]
    elif header is False:
        names = [str(i) for i in range(len(rows[0][1]))]
    else:
        names = [str(name) for name in header]
    repeated = sorted({n for n in names if names.count(n) > 1})
    if repeated:
        raise DataError(f"{path.name}: the column {repeated[0]!r} occurs more than once.")
    table = [
        Row(line, dict(zip(names, row, strict=True))) for line, row in _even(rows, names, path)
    ]
    return build(table, names, request, where=path.name)


def cells(path: Path, *, quoted: bool | None = None) -> list[tuple[int, list[str]]]:
    """Rows as lists of cells, each with the number of its last line; blank lines are left out."""
    tabs = path.suffix.lower() != ".csv"
    quoted = not tabs if quoted is None else quoted
    text = read_text(path)
    if not quoted:
        # csv.reader would take a lone carriage return for a line's end; corpora have them inside.
        lines = (line.removesuffix("\r") for line in text.split("\n"))
        delimiter = "\t" if tabs else ","
        return [(n, line.split(delimiter)) for n, line in enumerate(lines, 1) if line.strip()]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter="\t" if tabs else ",", strict=True)
    before = csv.field_size_limit(_LONGEST_CELL)
    try:
        return [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise DataError(
            f"{path.name}, line {reader.line_num}: {error}.",
            hint="A quote inside a quoted cell is written twice; or load it with quoting='none'.",
        ) from None
    finally:
        csv.field_size_limit(before)


def _even(
    rows: Sequence[tuple[int, list[str]]], names: Sequence[str], path: Path
) -> Sequence[tuple[int, list[str]]]:
    for line, row in rows:
        if len(row) != len(names):
            raise DataError(
                f"{path.name}, line {line}: {len(row)} cells where {len(names)} columns are.",
                hint=f"The columns: {', '.join(names)}.",
            )
    return rows
