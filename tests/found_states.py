"""A result as it would be if nothing in it were sure, exactly one thing, or everything.

What a study says of its numbers is made of its tables and arrays alone, so these are what is
changed: intervals are widened until they exclude nothing, or drawn together around their value, and
p-values and what is called sure go with them. Columns are known by their names (`x`, `x_low`,
`x_high`, `x_p`, `x_sure`), as everywhere in the house, so that no study need say anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from bertology.results.result import Result

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from numpy.typing import NDArray

State = Literal["nothing", "one", "all"]
STATES: tuple[State, ...] = ("nothing", "one", "all")
_EVIDENCE = "evidence"
_OF_OTHER_BOUNDS = ("needed", "tested", "foreseen")


def in_state(result: Result, state: State) -> Result:
    """The same result with nothing, one row of each table, or everything sure."""
    tables = {name: _table(table, state) for name, table in result.tables.items()}
    return replace(result, tables=tables, arrays=_arrays(result.arrays, state))


def _sure(known: NDArray[np.bool_], state: State) -> NDArray[np.bool_]:
    """Which places are sure: of one, the last that has an interval, which no table has first."""
    if state == "one":
        only = np.zeros_like(known)
        only.flat[np.flatnonzero(known)[-1:]] = True
        return only
    return known if state == "all" else np.zeros_like(known)


def _intervals(table: pd.DataFrame) -> Iterator[tuple[str, str, str]]:
    """Value, low and high: ends without a value of their name are of the last number before."""
    names, before = [str(c) for c in table.columns], ""
    for name in names:
        stem = name.removesuffix("low")
        if name != stem and f"{stem}high" in names:
            own = stem.removesuffix("_")
            owner = next(
                (n for n in (own, own.removesuffix("_simultaneous")) if n in names), before
            )
            if owner:
                yield owner, name, f"{stem}high"
        elif table[name].dtype.kind == "f" and not name.endswith("high"):
            before = name


def _table(table: pd.DataFrame, state: State) -> pd.DataFrame:
    found = {c: [table[n].to_numpy(dtype=float) for n in c] for c in _intervals(table)}
    ends = [end for given in found.values() for end in given[1:]]
    known = np.isfinite(ends).all(axis=0) if ends else np.ones(len(table), bool)
    sure = _sure(known if known.any() else np.isfinite(ends).any(axis=0), state)
    made: dict[str, NDArray[np.generic]] = {}
    for names, given in found.items():
        made |= dict(zip(names, _moved(*given, sure), strict=True))
    for name in map(str, table.columns):
        if table[name].dtype == bool:  # `sure`, and what else is found or not
            made[name] = sure
        elif name == "sure" and table[name].dtype.kind not in "bf":  # in words: which way
            made[name] = np.where(sure, "better", "")
        elif re.fullmatch(r"(.*_)?p(_.*)?", name) and table[name].dtype.kind == "f":
            made[name] = np.where(sure, 0.0, 1.0)
    moved = table.copy()
    for name, values in made.items():
        moved[name] = values
    return moved


def _arrays(arrays: xr.Dataset, state: State) -> xr.Dataset:
    made = arrays.copy()
    for low in [str(n) for n in arrays if str(n).endswith("_low")]:
        name, high = low.removesuffix("_low"), low.removesuffix("low") + "high"
        if name in arrays and high in arrays:
            given = [arrays[n].to_numpy().astype(float) for n in (name, low, high)]
            sure = _sure(np.isfinite(given).all(axis=0), state)
            for n, values in zip((name, low, high), _moved(*given, sure), strict=True):
                made[n] = arrays[n].copy(data=values)
    if _EVIDENCE in arrays:
        values = arrays[_EVIDENCE].to_numpy().copy()
        sure = _sure(np.isfinite(values[:, :3]).all(axis=1), state)
        values[:, :3] = np.stack(_moved(*values[:, :3].T, sure), axis=1)
        made[_EVIDENCE] = arrays[_EVIDENCE].copy(data=values)
        # What is sure is so beyond its controls.
        gone = _OF_OTHER_BOUNDS if state == "nothing" else (*_OF_OTHER_BOUNDS, "controls")
        kept = {k: v for k, v in arrays[_EVIDENCE].attrs.items() if k not in gone}
        made[_EVIDENCE].attrs = kept
    return made


def _moved(
    values: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    sure: NDArray[np.bool_],
) -> tuple[NDArray[np.float64], ...]:
    """Values and bounds: sure ones above zero and narrow, others too wide to say anything."""
    given = np.abs([v[np.isfinite(v)].max(initial=0.0) for v in np.abs([values, low, high])])
    far = 10 * max(1.0, float(given.max()))
    size = np.where(np.abs(values) > 1e-6, np.abs(values), far / 100)
    unknown = ~np.isfinite(low) | ~np.isfinite(high)
    return (
        np.where(sure, size, values),
        np.where(unknown, low, np.where(sure, 0.99 * size, -far)),
        np.where(unknown, high, np.where(sure, 1.01 * size, far)),
    )


def first_heads(result: Result) -> set[str]:
    """The heads in the first rows of tables as they are shown: `3.5`."""
    shown = [result.shown(name) for name in result.tables]
    first = [table.iloc[0] for table in shown if {"layer", "head"} <= {*table} and len(table)]
    return {f"{int(row['layer'])}.{int(row['head'])}" for row in first}


_DENIED = re.compile(r"\b(not|no|none|nothing|never|cannot|0)\b", re.IGNORECASE)
_FOUND = re.compile(r"\bsurely\b|^(Yes|Some of it|Some of them|Clearly)\b", re.IGNORECASE)
_UNFOUND = re.compile(r"^(Nothing is sure|Not sure|Not surely|Open)\b|\bnot surely\b")


def contradictions(result: Result, state: State) -> Iterator[str]:
    """What is said to be sure where nothing is, and to be open where everything is sure.

    What could not be judged stays so in every state, and its reason may be said.
    """
    answer = result.answer
    not_judged = {why.removeprefix("not judged: ") for why in result.reasons().values()}
    for clause in re.split(r"[;.](?:\s|$)", f"{answer} {result.headline()}"):
        if state == "nothing" and _FOUND.search(clause.strip()) and not _DENIED.search(clause):
            yield clause
    if any(why and why in answer for why in not_judged):
        return
    for clause in re.split(r"[;.](?:\s|$)", answer):
        if state == "all" and _UNFOUND.search(clause.strip()):
            yield clause
