"""CSV and TSV. In TSV a quote is an ordinary character, as corpora have it; CSV quotes."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from bertology.data.corpus import Corpus
from bertology.data.readers import Request
from bertology.data.readers.files import read_text
from bertology.data.readers.table import USUAL_NAMES, Row, build, grouped
from bertology.errors import DataError, ParameterError


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


# What separates the cells of a table: told by the user, or by the first rows of the file.
#
# Spreadsheets of many countries write `;` into files called .csv, and some write tabs.

NAMES = {",": "comma", ";": "semicolon", "\t": "tab"}
_LOOKED_AT = 500  # rows
_LONGEST_CELL = 2**27
# The line that spreadsheets put first to tell each other: sep=;
_TOLD = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)

Cells = list[tuple[int, list[str]]]
"""Rows as lists of cells, each with the number of its last line."""


def named_separator(given: object) -> str:
    """The separator that a user names: `semicolon`, or the character itself."""
    by_name = {name: character for character, name in NAMES.items()}
    text = by_name.get(str(given).strip().lower(), str(given))
    if len(text) != 1 or text in '"\r\n':
        must = f"be {', '.join(by_name)} or a single character"
        raise ParameterError("separator", "load_corpus", must, given)
    return text


def find_separator(
    text: str, where: str, *, usual: str, quoted: bool, asked: Set[str], known: Set[str]
) -> str:
    """What separates the cells of `text`, a file that is called `where` in messages.

    Whatever cuts the first row, and gives every row as many cells. Where that is so of two, the
    one that makes columns of the names that were `asked` for, or of any that is `known`; where
    that does not decide, the user is asked.
    """
    if told := _TOLD.match(text):
        return told[1]
    looks = [look for look in (_looked_at(text, s, quoted) for s in NAMES) if len(look.first) > 1]
    if not looks:
        return usual
    looks = [look for look in looks if look.even] or looks
    looks = [look for look in looks if asked and asked <= set(look.first)] or looks
    if len(looks) > 1:
        looks = [look for look in looks if not known.isdisjoint(look.first)] or looks
    if len(looks) == 1:
        return looks[0].separator
    shown = " or ".join(f"{NAMES[x.separator]}s ({len(x.first)} columns)" for x in looks)
    first = NAMES[looks[0].separator]
    raise DataError(
        f"{where}: it is not clear whether its cells are separated by {shown}.",
        hint=f"Say it with separator={first} (--columns separator={first} on the command line).",
    )


@dataclass(frozen=True)
class _Look:
    """How the first rows look, cut by one separator."""

    separator: str
    first: Sequence[str]  # the cells of the first row
    even: bool  # whether all rows have as many


def _looked_at(text: str, separator: str, quoted: bool) -> _Look:
    rows: list[list[str]] = []
    even = True
    try:
        rows.extend(row for _, row in islice(_rows(text, separator, quoted), _LOOKED_AT))
    except csv.Error:
        even = False
    first = rows[0] if rows else []
    return _Look(separator, first, even and all(len(row) == len(first) for row in rows))


def split_rows(text: str, where: str, *, separator: str, quoted: bool) -> Cells:
    """All rows; blank lines, and a first line such as `sep=;`, are left out."""
    try:
        rows = list(_rows(text, separator, quoted))
    except csv.Error as error:
        raise DataError(
            f"{where}, {error}.",
            hint="A quote inside a quoted cell is written twice; or load it with quoting='none'.",
        ) from None
    return rows[1:] if _TOLD.match(text) else rows


def _rows(text: str, separator: str, quoted: bool) -> Iterator[tuple[int, list[str]]]:
    if not quoted:
        # csv.reader would take a lone carriage return for a line's end; corpora have them inside.
        lines = (line.removesuffix("\r") for line in text.split("\n"))
        yield from ((n, line.split(separator)) for n, line in enumerate(lines, 1) if line.strip())
        return
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    before = csv.field_size_limit(_LONGEST_CELL)
    try:
        yield from ((reader.line_num, row) for row in reader if row)
    except csv.Error as error:
        raise csv.Error(f"line {reader.line_num}: {error}") from None
    finally:
        csv.field_size_limit(before)
