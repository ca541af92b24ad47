"""Tables to read: a value and the two ends of its interval in one cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bertology.results.number_text import interval_text, number_text
from bertology.results.ranking import NAMES

if TYPE_CHECKING:
    import pandas as pd

# What a bare `low` and `high` are the ends of: the first of these that has no ends of its own.
_BARE = ("mean", "share", "value", "difference")
_ENDS = ("low", "high")
_TOGETHER = "simultaneous"  # the mark of bounds that hold for all rows together


def with_intervals(table: pd.DataFrame, spec: str = ".3g") -> tuple[list[str], list[list[object]]]:
    """Columns and rows in which `x`, `x_low` and `x_high` are one cell, written by `spec`.

    Where a value has bounds that hold for all rows together (`simultaneous_low`), these are shown
    in place of those that hold for its row alone: rows are chosen after looking. Ends without a
    value of their own, such as `alone_low`, become one `…_interval`.
    """
    table = _corrected(table)
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


def needed_columns(table: pd.DataFrame) -> dict[str, int]:
    """How much a reader needs each column of `with_intervals`: 0 for what is never left out.

    These are the names of rows, values with bounds that are corrected for the number of rows, and
    whether they are sure. Then come adjusted p-values (1), other intervals (2), and the rest (3).
    """
    names = [str(c) for c in table.columns]
    whole = _bounds([str(c) for c in _corrected(table).columns])
    marked = {n.removesuffix(f"_{_TOGETHER}_low") for n in names if n.endswith(f"_{_TOGETHER}_low")}
    if f"{_TOGETHER}_low" in names:
        marked.add(_valued(names))
    for name in (n for n in names if n.endswith("sure")):
        of_it = name.removesuffix("sure")  # `loss_sure` is of the first interval of the loss
        marked.add(next((n for n in whole if n.startswith(of_it)), name))
    ranks = dict.fromkeys(whole, 2) | dict.fromkeys(marked, 0)
    for name in names:
        if name.endswith("sure") or name in NAMES:
            ranks[name] = 0
        elif name.endswith("adjusted"):
            ranks[name] = 1
    return {n: ranks.get(n, 3) for n in (*names, *whole)}


def _corrected(table: pd.DataFrame) -> pd.DataFrame:
    """The table with corrected bounds in place of others of the same value."""
    names = [str(c) for c in table.columns]
    replaced, renamed = set(), {}
    for low in (n for n in names if n.endswith(f"{_TOGETHER}_low")):
        stem = low.removesuffix(f"{_TOGETHER}_low")
        owner = stem.removesuffix("_") or _valued(names)
        if owner not in names:
            continue
        own = stem if stem else f"{owner}_"
        for end in _ENDS:
            replaced |= {f"{stem}{end}", f"{own}{end}"} & set(names)
            renamed[f"{stem}{_TOGETHER}_{end}"] = f"{own}{end}"
    return table.drop(columns=list(replaced)).rename(columns=renamed)


def _valued(names: Sequence[str]) -> str:
    """What bare corrected bounds are of: the usual, or the last value before them."""
    usual = next((n for n in _BARE if n in names and f"{n}_low" not in names), None)
    before = names[: names.index(f"{_TOGETHER}_low")]
    values = [n for n in before if n not in _ENDS and not n.endswith(("_low", "_high"))]
    return usual or (values[-1] if values else "")


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
