"""Tables to read: a value and the two ends of its interval in one cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bertology.results.number_text import interval_text, number_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["with_intervals"]

# What a bare `low` and `high` are the ends of: the first of these that has no ends of its own.
_BARE = ("mean", "share", "value", "difference")


def with_intervals(table: pd.DataFrame, spec: str = ".3g") -> tuple[list[str], list[list[object]]]:
    """Columns and rows in which `x`, `x_low` and `x_high` are one cell, written by `spec`.

    Ends without a value of their own, such as `simultaneous_low`, become one `…_interval`.
    """
    names = [str(c) for c in table.columns]
    bounds = _bounds(names)
    ends = {end for pair in bounds.values() for end in pair}
    alone = {low: owner for owner, (low, _) in bounds.items() if owner not in names}
    kept: list[str] = []
    columns: list[list[object]] = []
    for name in names:
        owner = alone.get(name, name)
        if name in ends and name not in alone:
            continue
        values = table[name].tolist() if owner == name else None
        kept.append(owner)
        columns.append(_cells(table, values, bounds.get(owner), spec))
    return kept, [list(row) for row in zip(*columns, strict=True)]


def _bounds(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Column to the names of its ends; ends without a column have the name of the new one."""
    found = {}
    for low in (n for n in names if n == "low" or n.endswith("_low")):
        stem = low.removesuffix("low")
        high = f"{stem}high"
        if high in names:
            found[_owner(stem.removesuffix("_"), names)] = low, high
    return found


def _owner(stem: str, names: Sequence[str]) -> str:
    if stem in names:
        return stem
    if stem:
        return f"{stem}_interval"
    return next((n for n in _BARE if n in names and f"{n}_low" not in names), "interval")


def _cells(
    table: pd.DataFrame,
    values: list[object] | None,
    ends: tuple[str, str] | None,
    spec: str,
) -> list[object]:
    if ends is None:
        return values or []
    pairs = zip(*(table[end].tolist() for end in ends), strict=True)
    # What rests on one example has no interval.
    cells: list[object] = [
        "" if low != low and high != high else interval_text(low, high, spec) for low, high in pairs
    ]
    if values is None:
        return cells
    shown = (number_text(v, spec) if isinstance(v, float) else str(v) for v in values)
    return [f"{v} {cell}".rstrip() for v, cell in zip(shown, cells, strict=True)]
