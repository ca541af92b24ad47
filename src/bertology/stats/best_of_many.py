"""The best of many: how good it is once chosen, and whether it is surely better than the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NotRequired, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr

from bertology.arrays import Floats
from bertology.errors import DataError
from bertology.stats.intervals import Estimate
from bertology.stats.multiplicity import holm

# The best or the worst of many estimates, as one estimate that is fit to be printed.
#
# The value and the near bound are those of one row, the one that did best; the far bound is the
# farthest of all, since another row than the one that did best here may truly be the best. So [low,
# high] covers the best of the true values, and value and lower bound can be found in one row of the
# table. Near bounds must hold for all rows together, since the row was picked. Far bounds need not:
# it is enough that the bound of the truly best row holds, whichever it is. So "the largest is below
# x" is shown where every row alone is surely below x (an intersection–union test, Berger 1982).

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


# The best of several candidates, chosen on one half of the examples and scored on the other.


def cross_fitted(scores: NDArray[np.floating]) -> tuple[Floats, Floats]:
    """What the best candidate scores in each example (N, R), and the mean of all (R, C).

    `scores` are (N, R, C): examples, questions, candidates; see `picked_on_other_half`.
    """
    best = picked_on_other_half(scores)[..., None]
    return np.take_along_axis(scores, best, axis=2)[..., 0].astype(np.float64), _mean(scores)


def picked_on_other_half(
    scores: NDArray[np.floating], *, together: int | NDArray[np.int64] = 1
) -> NDArray[np.int64]:
    """The candidate (N, R) that for one half of the examples is the best on the other half.

    Halves are the examples of even and of odd number, so that a file's order does not matter. Where
    neighbours are not independent (twins, such as the two sentences of a Winograd schema, of which
    what is right in one is wrong in the other), so many stay `together` in one half; or those of
    one group, where the group of each example is given.
    """
    picked = np.empty(scores.shape[:2], np.int64)
    group = np.arange(len(scores)) // together if isinstance(together, int) else together
    second = group % 2 == 1
    for half in (second, ~second):
        picked[half] = _mean(scores[~half]).argmax(axis=-1)  # (R,)
    return picked


def _mean(values: NDArray[np.floating]) -> Floats:
    """Over the first axis, NaN left out; -1 (below any share) where there is nothing else."""
    there = np.isfinite(values)
    total = np.where(there, values, 0).sum(axis=0, dtype=np.float64)
    found: Floats = np.where(there.any(axis=0), total / np.maximum(there.sum(axis=0), 1), -1.0)
    return found


# Is the best of many surely better than each of the others, over the same observations?


@dataclass(frozen=True)
class Leading:
    """By how much each row lies behind the best one, (V,); the best one's own p-value is NaN."""

    best: int
    behind: Floats
    p_adjusted: Floats


def leading(values: Floats) -> Leading:
    """Compare the row of `values` (V, N) with the largest mean with every other row.

    Student's paired tests over observations, two-sided, with Holm's correction for the number of
    rows, and never smaller than the test of signs allows. The best was chosen after looking: of
    rows that are all alike, its lead over the next is the smallest of its leads, so the choice
    makes no false verdict more likely.
    """
    if values.ndim != 2 or values.shape[1] < 2:
        raise DataError(f"A leader needs two observations or more. Got shape {values.shape}.")
    n, mean = values.shape[1], values.mean(axis=1)
    best = int(mean.argmax())
    difference = values[best] - values
    behind = difference.mean(axis=1)
    error = difference.std(axis=1, ddof=1) / np.sqrt(n)
    t = behind / np.where(error > 0, error, 1.0)
    p = np.where(error > 0, 2 * stdtr(n - 1, -np.abs(t)), 0.0)
    # Differences of a few observations may be equal by chance: no test of signs could do better.
    p = np.maximum(p, np.minimum(1.0, 2.0 ** (1 - (difference != 0).sum(axis=1))))
    others = np.arange(len(values)) != best
    adjusted = np.full(len(values), np.nan)
    adjusted[others] = holm(p[others])
    return Leading(best, behind, adjusted)
