"""One sentence that answers a question: the number, its interval, and how sure it is.

`Result.answer` is made of these pieces. What was picked among many (the best of 144 heads) keeps
bounds that hold for all of them together; a sentence says "surely" only where a test or such bounds
do. Layers and heads are counted from 0, as everywhere.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bertology.arrays import Bools
from bertology.results.number_text import interval_text, number_text
from bertology.stats import Estimate

if TYPE_CHECKING:
    import pandas as pd

    from bertology.results.measures import Measure
    from bertology.results.verdicts import Verdict

NOTHING_SURE = "Nothing is sure"


@dataclass(frozen=True)
class Found:
    """One value among those of all heads or layers."""

    name: str
    """`head 9.2`, `layer 4`."""
    estimate: Estimate
    sure: bool | None
    """None: it was not tested."""


def percent(found: Estimate, spec: str = ".0f", *, limits: Sequence[float] = (0.0,)) -> str:
    """`71 % [66, 75]`: a share; `limits` are shares of which one must see where they lie."""
    value, low, high = (100 * x for x in (found.value, found.low, found.high))
    return f"{number_text(value, spec)} %{_ends(low, high, spec, [100 * x for x in limits])}"


def points(found: Estimate, spec: str = ".1f") -> str:
    """`2.5 points [0.4, 4.6]`: a difference of scores or shares."""
    value, low, high = (100 * x for x in (found.value, found.low, found.high))
    shown = number_text(value, spec)
    one = "point" if shown.lstrip("+-") in ("1", "1.0") else "points"
    return f"{shown} {one}{_ends(low, high, spec)}"


def plain(found: Estimate, spec: str = ".2g", unit: str = "") -> str:
    """`0.12 [0.08, 0.16] nats`: any other number."""
    ends = _ends(found.low, found.high, spec)
    return f"{number_text(found.value, spec)}{ends}{f' {unit}' if unit else ''}"


def _ends(low: float, high: float, spec: str, limits: Sequence[float] = (0.0,)) -> str:
    if math.isnan(low) or math.isnan(high):
        return " (no interval)"
    return f" {interval_text(low, high, spec, limits=limits)}"


def head_name(row: pd.Series[Any]) -> str:
    """`head 9.2` of a row with layer and head, `layer 4` of one with a layer only."""
    layer = int(row["layer"])
    return f"head {layer}.{int(row['head'])}" if "head" in row else f"layer {layer}"


def of_row(
    row: pd.Series[Any], columns: tuple[str, str, str], *, n: int = 1, level: float = 0.95
) -> Estimate:
    """Value and bounds of a row."""
    value, low, high = (float(row[c]) for c in columns)
    return Estimate(value, low, high, n, level)


def largest_row(table: pd.DataFrame, column: str, *, size: bool = False) -> pd.Series[Any]:
    """The row with the largest value of a column, or the farthest from 0 (`size`)."""
    values = (table[column].abs() if size else table[column]).to_numpy(dtype=float)
    return table.iloc[int(np.nanargmax(values))]


def strongest(
    measure: Measure, *, n: int, level: float, together: bool = True, size: bool = False
) -> Found:
    """The largest value of a measure, among the sure ones if there are any.

    `together`: its bounds hold for all places together. If not, they are widened until they do:
    the place is picked after looking. `size`: the farthest from 0, whatever its sign.
    """
    values = np.abs(measure.values) if size else measure.values
    among = np.isfinite(values)
    sure = _surely(measure, size=size)
    if (sure & among).any():
        among = among & sure
    at = np.unravel_index(int(np.where(among, values, -np.inf).argmax()), values.shape)
    low, high = (math.nan if b is None else float(b[at]) for b in (measure.low, measure.high))
    found = Estimate(float(measure.values[at]), low, high, n, level)
    if not together:
        found = replace(found.at_level(1 - (1 - level) / values.size), level=level)
    name = f"head {at[0]}.{at[1]}" if measure.of_heads else f"layer {at[0]}"
    return Found(name, found, None if measure.sure is None else bool(measure.sure[at]))


def _surely(measure: Measure, *, size: bool) -> Bools:
    """Places of which it is sure: by their tests, else where their intervals say so."""
    if measure.sure is not None:
        return measure.sure
    if measure.low is None or measure.high is None:
        return np.zeros(measure.values.shape, bool)
    return (measure.low > 0) | (size & (measure.high < 0))


def strongest_of(measures: Sequence[Measure], *, n: int, level: float) -> tuple[Measure, Found]:
    """The strongest of several measures whose tests hold for all together; sure ones first."""
    found = [strongest(measure, n=n, level=level) for measure in measures]
    best = max(range(len(found)), key=lambda at: (bool(found[at].sure), found[at].estimate.value))
    return measures[best], found[best]


def listed(names: Iterable[object], most: int | None = None) -> str:
    """`a, b and c`, or `a, b and 3 more` where there are more than `most`.

    `none` of nothing: a sentence about what was found is asked for where nothing was, too.
    """
    every = [*map(str, names)] or ["none"]
    named = every[:most]
    if more := len(every) - len(named):
        named.append(f"{more} more")
    *first, last = named
    return f"{', '.join(first)} and {last}" if first else last


def raised(text: str) -> str:
    """The text as a sentence begins; names in it keep their letters."""
    return text[:1].upper() + text[1:]


def verdicts_told(verdicts: Iterable[Verdict]) -> str:
    """`Of 5 claims 2 hold, 1 fails and 2 are open.`; empty where none was judged."""
    counts = Counter(v.outcome.value for v in verdicts if v.outcome.value != "not-applicable")
    if not counts:
        return ""
    words = {
        "holds": ("holds", "hold"),
        "size-open": ("has an open size", "have an open size"),
        "fails": ("fails", "fail"),
        "negligible": ("is negligible", "are negligible"),
        "inconclusive": ("is open", "are open"),
    }
    told = [f"{counts[o]} {w[counts[o] > 1]}" for o, w in words.items() if counts[o]]
    n = sum(counts.values())
    return f"Of {n} claim{'s' * (n > 1)} {listed(told)}."


def default_answer(
    measures: Sequence[Measure],
    evidence: Mapping[str, Estimate],
    verdicts: Iterable[Verdict],
    facts: Mapping[str, Any],
) -> str:
    """From the strongest head or layer, or the first quantity of the evidence; then the claims."""
    told = _of_measure(measures, facts) or _of_evidence(evidence)
    told = told or f"{NOTHING_SURE}: this result has no number with an interval."
    return f"{told} {verdicts_told(verdicts)}".rstrip()


def _of_measure(measures: Sequence[Measure], facts: Mapping[str, Any]) -> str:
    known = [m for m in measures if m.low is not None and not m.kinds]
    if not known or not np.isfinite(known[0].values).any():
        return ""
    measure = known[0]
    n = int(facts.get("examples", 1))
    level = float(facts.get("level", 0.95))
    found = strongest(
        measure, n=n, level=level, together=measure.sure is not None, size=measure.middle == 0
    )
    if math.isnan(found.estimate.low):
        return ""
    of = f"{measure.title[:1].lower()}{measure.title[1:]}"
    shown = plain(found.estimate, ".3g", measure.unit)
    if found.sure is None:
        return f"{found.name[:1].upper()}{found.name[1:]} comes first: {of} {shown}."
    opening = "Surely" if found.sure else NOTHING_SURE
    return f"{opening}: {of} is largest in {found.name}, {shown}."


def _of_evidence(evidence: Mapping[str, Estimate]) -> str:
    for name, found in evidence.items():
        if not math.isnan(found.low):
            words = name.replace("_", " ")
            return f"The {words} is {plain(found, '.3g')}, over {found.n:,} {found.unit}."
    return ""
