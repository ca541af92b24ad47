"""Tables as they are shown: the strongest rows first, the number that says so beside its names.

What is stored keeps its order, head by head; a reader of the first twenty of 144 rows wants those
that matter. Sure ones come before others, as in sentences, which name the strongest of the sure
ones: a large effect that may be chance tells less than a smaller one that is none.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

Ranking = str
"""A column, largest values first; `|column|`: the largest sizes first, whatever their sign;
`-column`: the smallest values first."""

_USUAL = "difference"  # what ablations tell of a head, or of a set of heads
_OF_HEADS = ("head", "heads")
NAMES = ("relation", "class", "layer", "head", "heads", "set", "n")
"""Columns that say what a row is about."""


def column_of(ranking: Ranking) -> str:
    """The column that rows are ranked by."""
    return ranking.strip("|-")


def ranking_of(table: pd.DataFrame, given: Ranking | None) -> Ranking | None:
    """What a table is ranked by: what was given, or the change of a score by head; else None."""
    if given is not None and column_of(given) in table:
        return given
    usual = _USUAL in table and any(name in table for name in _OF_HEADS)
    return f"|{_USUAL}|" if usual else None


def order_told(table: pd.DataFrame, ranking: Ranking) -> str:
    """How `strongest_first` orders the rows, in words."""
    which = "smallest" if ranking.startswith("-") else "largest"
    told = f"{which} {column_of(ranking).replace('_', ' ')} first"
    sure = _surely(table, ranking)
    return f"sure ones before others, {told}" if sure.any() and not sure.all() else told


def strongest_first(table: pd.DataFrame, ranking: Ranking) -> pd.DataFrame:
    """The rows by rank, and the ranked column with its bounds right after the names.

    Rows without a value come last; equal ones keep their order.
    """
    import pandas as pd
    from pandas.api.types import is_numeric_dtype

    column = column_of(ranking)
    values = table[column].abs() if ranking.startswith("|") else table[column]
    signed = -values if ranking.startswith("-") else values
    ranks = pd.DataFrame({"sure": _surely(table, ranking), "value": signed.to_numpy()})
    order = ranks.sort_values(["sure", "value"], ascending=False, kind="stable").index
    columns = [str(name) for name in table.columns]
    own = [f"{column}_low", f"{column}_high"]
    bounds = own if own[0] in columns else ["simultaneous_low", "simultaneous_high"]
    texts = takewhile(lambda name: not is_numeric_dtype(table[name]), columns)
    first = list(texts)  # which score, which lemma: names too, whatever they are called
    first += [n for n in columns if n in NAMES and n not in first]
    first += [n for n in (column, *bounds) if n in columns and n not in first]
    return table.iloc[order.to_numpy()][first + [n for n in columns if n not in first]]


def _surely(table: pd.DataFrame, ranking: Ranking) -> NDArray[np.bool_]:
    """Rows of which it is sure: by their `sure`, else where the interval of the number says so."""
    if "sure" in table and table["sure"].dtype == bool:
        return table["sure"].to_numpy()
    low, high = (f"{column_of(ranking)}_{end}" for end in ("low", "high"))
    if low not in table or high not in table or ranking.startswith("-"):
        return np.zeros(len(table), bool)
    below = ranking.startswith("|") & (table[high] < 0)
    return ((table[low] > 0) | below).to_numpy()
