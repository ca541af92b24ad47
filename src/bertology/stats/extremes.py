"""The best or the worst of many estimates, as one estimate that is fit to be printed.

The value and the near bound are those of one row, the one that did best; the far bound is the
farthest of all, since another row than the one that did best here may truly be the best. So
[low, high] covers the best of the true values, and value and lower bound can be found in one row of
the table. Near bounds must hold for all rows together, since the row was picked. Far bounds need
not: it is enough that the bound of the truly best row holds, whichever it is. So "the largest is
below x" is shown where every row alone is surely below x (an intersection–union test, Berger 1982).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NotRequired, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from bertology.stats.intervals import Estimate

Extreme = Callable[..., Estimate | None]
"""One of the two functions below."""


class About(TypedDict):
    """What is known of all rows; `n` may differ by row."""

    n: ArrayLike
    level: float
    unit: NotRequired[str]


def largest_of(
    value: ArrayLike, low: ArrayLike, high: ArrayLike, **about: Unpack[About]
) -> Estimate | None:
    """The largest of those that have bounds; None where none has."""
    rows = [np.asarray(side, dtype=np.float64).ravel() for side in (value, low, high)]
    known = np.isfinite(rows[1]) & np.isfinite(rows[2])
    if not known.any():
        return None
    values, lows, highs = (side[known] for side in rows)
    counts = np.broadcast_to(np.asarray(about["n"]), known.shape)[known]
    at, unit = int(values.argmax()), about.get("unit", "examples")
    return Estimate(values[at], lows[at], highs.max(), int(counts[at]), about["level"], unit)


def smallest_of(
    value: ArrayLike, low: ArrayLike, high: ArrayLike, **about: Unpack[About]
) -> Estimate | None:
    """The smallest of those that have bounds; None where none has."""
    turned = [np.negative(np.asarray(side, dtype=np.float64)) for side in (value, high, low)]
    found = largest_of(turned[0], turned[1], turned[2], **about)
    if found is None:
        return None
    return replace(found, value=-found.value, low=-found.high, high=-found.low)
