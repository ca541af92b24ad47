"""Published tables with a known header: every row as a mapping, wrong columns refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from bertology.data.readers.files import read_text
from bertology.data.readers.separators import split_rows
from bertology.errors import DataError


def known_rows(
    path: Path, columns: Iterable[str], *, skip: str = ""
) -> Iterator[tuple[str, dict[str, str]]]:
    """Where each row stands, for messages, and its cells by column.

    Tabs separate the cells of a .tsv and quotes are characters in it; a .csv has commas and quotes.
    `columns` must be there; others may be. Rows that begin with `skip` are left out.
    """
    is_csv = path.suffix.lower() == ".csv"
    text = read_text(path)
    cells = split_rows(text, path.name, separator="," if is_csv else "\t", quoted=is_csv)
    (_, header), *rows = cells
    missing = [name for name in columns if name not in header]
    if missing:
        raise DataError(
            f"{path.name} has no column {missing[0]!r}.",
            hint=f"Its columns: {', '.join(header)}. Wanted: {', '.join(columns)}.",
        )
    if not rows:
        raise DataError(f"{path.name} has a header and no rows.")
    for number, row in rows:
        if skip and row[0].startswith(skip):
            continue
        at = f"{path.name}, line {number}"
        if len(row) != len(header):
            raise DataError(f"{at}: {len(row)} cells where {len(header)} columns are.")
        yield at, dict(zip(header, row, strict=True))
