"""Tables as they are shown: the strongest rows first, the number that says so beside its names.

What is stored keeps its order, head by head; a reader of the first twenty of 144 rows wants those
that matter.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

Ranking = str
"""A column, largest values first; `|column|`: the largest sizes first, whatever their sign."""

_USUAL = "difference"  # what ablations tell of a head, or of a set of heads
_OF_HEADS = ("head", "heads")
NAMES = ("relation", "class", "layer", "head", "heads", "set", "n")
"""Columns that say what a row is about."""


def ranking_of(table: pd.DataFrame, given: Ranking | None) -> Ranking | None:
    """What a table is ranked by: what was given, or the change of a score by head; else None."""
    if given is not None and given.strip("|") in table:
        return given
    usual = _USUAL in table and any(name in table for name in _OF_HEADS)
    return f"|{_USUAL}|" if usual else None


def strongest_first(table: pd.DataFrame, ranking: Ranking) -> pd.DataFrame:
    """The rows by rank, and the ranked column with its bounds right after the names.

    Rows without a value come last; equal ones keep their order.
    """
    from pandas.api.types import is_numeric_dtype

    column = ranking.strip("|")
    values = table[column].abs() if ranking.startswith("|") else table[column]
    order = values.reset_index(drop=True).sort_values(ascending=False, kind="stable").index
    columns = [str(name) for name in table.columns]
    own = [f"{column}_low", f"{column}_high"]
    bounds = own if own[0] in columns else ["simultaneous_low", "simultaneous_high"]
    texts = takewhile(lambda name: not is_numeric_dtype(table[name]), columns)
    first = list(texts)  # which score, which lemma: names too, whatever they are called
    first += [n for n in columns if n in NAMES and n not in first]
    first += [n for n in (column, *bounds) if n in columns and n not in first]
    return table.iloc[order.to_numpy()][first + [n for n in columns if n not in first]]
