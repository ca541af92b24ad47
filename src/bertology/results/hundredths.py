"""Tables as readers see them: scores and shares times a hundred, in the unit of the figures.

What is stored, and exported as CSV or Parquet, stays a fraction: programs read that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

_ENDS = ("_low", "_high")


def in_hundredths(table: pd.DataFrame, units: Mapping[str, str]) -> pd.DataFrame:
    """The table with the columns of `units` times a hundred, and their unit in their names.

    The ends of their intervals go with them. Ends that name no column, such as a bare `low`, are
    those of the value right before them, if it has no others, else of the first of `units`.
    """
    names = [str(c) for c in table.columns]
    given = [c for c in units if c in names]
    renamed: dict[str, str] = {}
    before = ""  # the last column that is no bare end
    for name in names:
        owner, end = _owner(name, names)
        if owner in given:
            renamed[name] = f"{owner} ({units[owner]}){end}"
        elif end and owner not in names and given:
            alone = before and f"{before}_low" not in names and table[before].dtype.kind == "f"
            whose = before if alone else given[0]
            if whose not in given:
                continue
            bare = not owner or owner == "simultaneous"
            opening = f"{whose if bare else owner} ({units[whose]})"
            renamed[name] = f"{opening}{f'_{owner}' if bare and owner else ''}{end}"
            continue
        before = name
    scaled = {name: 100 * table[name] for name in renamed if table[name].dtype.kind == "f"}
    return table.assign(**scaled).rename(columns={n: renamed[n] for n in scaled})


def scores_in_hundredths(table: pd.DataFrame) -> pd.DataFrame:
    """A table whose fractions all are scores, times a hundred."""
    scores = [str(c) for c in table.columns if table[c].dtype.kind == "f"]
    return in_hundredths(table, dict.fromkeys(scores, "× 100"))


def rows_in_hundredths(
    table: pd.DataFrame, rows: pd.Series[bool], columns: Sequence[str]
) -> pd.DataFrame:
    """The table with these columns, and the ends of intervals, times a hundred in some rows."""
    names = [str(c) for c in table.columns]
    scaled: dict[str, Any] = {}
    for name in names:
        _, end = _owner(name, names)
        if table[name].dtype.kind == "f" and (name in columns or end):
            scaled[name] = table[name].where(~rows, 100 * table[name])
    return table.assign(**scaled)


def _owner(name: str, names: Sequence[str]) -> tuple[str, str]:
    """What a column is of, and which end of an interval it is: `share_low` of `share`."""
    for end in _ENDS:
        if name == end[1:]:
            return "", end
        if name.endswith(end):
            owner = name.removesuffix(end)
            whole = owner.removesuffix("_simultaneous")
            if whole != owner and whole in names:
                return whole, f"_simultaneous{end}"
            return owner, end
    return name, ""
