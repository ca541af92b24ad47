"""A result's tables: a few rows to read, and all of them for the page's buttons."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypedDict

from bertology.report.atlas.naming import counted, in_words
from bertology.report.intervals import with_intervals
from bertology.report.web import Html, element, joined, table
from bertology.results.number_text import whole_number_text

if TYPE_CHECKING:
    import pandas as pd

_ROWS, _COLUMNS = 6, 9
_DIGITS = 5
_OFTEN = 3  # times that each text of a column comes, on average, from where it is written once

Scalar = float | int | str | bool | None


class Repeated(TypedDict):
    """A column of few texts: each of them once, and which one each row has."""

    texts: list[str]
    rows: list[int]


class TableRecord(TypedDict):
    """A table for the page's scripts."""

    columns: list[str]
    values: list[list[Scalar] | Repeated]


def table_data(frame: pd.DataFrame) -> TableRecord:
    """All of a table by columns, for scripts."""
    flat = _flat(frame)
    return {
        "columns": [str(c) for c in flat.columns],
        "values": [_column([_plain(v) for v in flat[c].tolist()]) for c in flat.columns],
    }


def _column(values: list[Scalar]) -> list[Scalar] | Repeated:
    texts = dict.fromkeys(v for v in values if isinstance(v, str))
    whole = all(isinstance(v, str) for v in values)
    if not whole or len(values) < _OFTEN * len(texts) or len(texts) < 2:
        return values
    place = {text: i for i, text in enumerate(texts)}
    return {"texts": list(texts), "rows": [place[v] for v in values if isinstance(v, str)]}


def table_piece(frame: pd.DataFrame, *, name: str, key: str, order: str = "") -> Html:
    """The first rows, with intervals in one cell; buttons get the whole table by its key.

    `order` says which rows come first, such as "largest excess first".
    """
    columns, rows = with_intervals(_flat(frame).head(_ROWS))
    shown = table(
        [in_words(c) for c in columns[:_COLUMNS]],
        [[_cell(v) for v in row[:_COLUMNS]] for row in rows],
    )
    hidden = []
    if len(frame) > _ROWS:
        hidden.append(counted(len(frame) - _ROWS, "more row"))
    if len(columns) > _COLUMNS:
        hidden.append(counted(len(columns) - _COLUMNS, "more column"))
    first = f"The first rows ({order})" if order else "The first rows"
    more = f"{first}; {' and '.join(hidden)}." if hidden else ""
    buttons = element("span", kind="buttons", data_table=key, data_name=name)
    line = element("p", element("b", f"Table: {in_words(name)}. "), more, " ", buttons, kind="soft")
    return element("div", joined([line, shown]), kind="numbers")


def _flat(frame: pd.DataFrame) -> pd.DataFrame:
    named = [n for n in frame.index.names if n is not None]
    return frame.reset_index() if named else frame


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "–" if math.isnan(value) else whole_number_text(value)
    return "–" if value is None else str(value)


def _plain(value: object) -> Scalar:
    """The value as JSON can hold it."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)
