"""CSV and TSV. In TSV a quote is an ordinary character, as corpora have it; CSV quotes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bertology.data.corpus import Corpus
from bertology.data.readers.files import read_text
from bertology.data.readers.request import Request
from bertology.data.readers.separators import Cells, find_separator, named_separator, split_rows
from bertology.data.readers.table import USUAL_NAMES, Row, build, grouped
from bertology.errors import DataError


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The corpus in a .csv or .tsv file."""
    path, request = Path(source), Request.of(source, request)
    rows = _cells(path, request)
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
    return grouped(build(table, names, request, where=path.name), path, request)


def tab_separated(path: Path) -> Cells:
    """The rows of a file in which nothing but tabs separates cells, and nothing is quoted."""
    return split_rows(read_text(path), path.name, separator="\t", quoted=False)


def _cells(path: Path, request: Request) -> Cells:
    text, is_csv = read_text(path), path.suffix.lower() == ".csv"
    quoting, separator = (request.options.get(name) for name in ("quoting", "separator"))
    quoted = is_csv if quoting is None else quoting == "standard"
    if separator is not None:
        separator = named_separator(separator)
    elif not is_csv and "\t" in text.lstrip("\r\n").partition("\n")[0]:
        separator = "\t"
    else:
        separator = find_separator(
            text,
            path.name,
            usual="," if is_csv else "\t",
            quoted=quoted,
            asked=set(request.columns.values()),
            known=USUAL_NAMES,
        )
    return split_rows(text, path.name, separator=separator, quoted=quoted)


def _even(rows: Cells, names: Sequence[str], path: Path) -> Cells:
    for line, row in rows:
        if len(row) != len(names):
            raise DataError(
                f"{path.name}, line {line}: {len(row)} cells where {len(names)} columns are.",
                hint=f"The columns: {', '.join(names)}.",
            )
    return rows
