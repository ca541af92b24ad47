"""Is every one of several means above a margin? Asked of many heads at once.

A head carries a relation if it beats each of several comparisons. That is an intersection–union
test (Berger 1982): each comparison is tested at the full level, and the head passes if all of them
do, so comparisons cost nothing. Only the number of heads has to be paid for (Holm 1979).

Differences of words are bounded and may be skewed, and to pay for 144 heads takes tails in which
Student's t is wrong by far. So tests and bounds are those of `intervals.bounded_mean_bounds`:
which means could values have that differ from the seen ones by so much likelihood, if some lie
farther out than any seen? How much farther is a guess from the sample: the farthest value seen on
that side, 1 + 30 / n times as far from the mean. Likelihood bounds probability as Chernoff has it,
which is safe for any number of values and strict for many: from a hundred on its signed root is
taken as Student's t, with values up to 1 + 60 / n times as far out. With fewer than thirty, values
may also lie as far beyond the margin as the mean is on this side of it, so that nothing is surer
than the test of signs. Values are differences, and 0 is none: right answers of two models differ
in a few of a hundred. So few signs may agree by chance, and there losses may be as large as gains;
below thirty that differ, the law is that of their number (`stats.signed_roots`).
`benchmarks/relation_error.py` simulates error and power, beside Student's t, Hall's and others, and
`benchmarks/verdict_errors.py` for rare differences. Nothing that looks at sixty values helps
against large losses that are so rare that none of them was seen.

The lower bound of the smallest mean is the smallest lower bound, corrected for heads only, as the
test is. For the upper bound all upper bounds must hold together, so it is corrected for both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from bertology.arrays import Floats
from bertology.errors import DataError
from bertology.stats.intervals import (
    Estimate,
    check_level,
    evidence_against_zero,
    upper_mean_bound,
)
from bertology.stats.multiplicity import holm
from bertology.stats.partial_means import FEW
from bertology.stats.signed_roots import SignedRoots

MANY = 100  # values; from here on the signed root of a likelihood is nearly Student's t
_STRICT = 8  # tasks that a claim may be judged on together
_HALVINGS = 40  # of the range in which degrees of freedom are looked for


@dataclass(frozen=True)
class LeastMeans:
    """For each of V heads the smallest of its K means; arrays are (V,) but for `means` (K, V)."""

    means: Floats
    value: Floats
    low: Floats
    high: Floats
    p_adjusted: Floats  # two-sided, against a smallest mean of `margin` or less
    n: NDArray[np.int64]  # observations behind the smallest mean
    level: float


def least_means(
    comparisons: Sequence[Floats], *, margin: float = 0.0, level: float = 0.95
) -> LeastMeans:
    """The smallest mean of each head over `comparisons`, which are (V, n) each; n may differ.

    Thirty values or more that do not vary have a mean that is known exactly, as where two
    comparisons give the same numbers.
    """
    check_level(level, "least_means")
    if not comparisons or any(rows.ndim != 2 or rows.shape[1] < 2 for rows in comparisons):
        shapes = [rows.shape for rows in comparisons]
        raise DataError(
            "The smallest of several means needs at least two observations of each comparison. "
            f"Got shapes {shapes}."
        )
    tail, heads = (1 - level) / 2, len(comparisons[0])
    found = [
        _one(rows, margin, tail / heads, tail / heads / len(comparisons)) for rows in comparisons
    ]
    means, lows, highs, p = (np.stack(side) for side in zip(*found, strict=True))  # (K, V)
    counts = np.array([rows.shape[1] for rows in comparisons])
    return LeastMeans(
        means=means,
        value=means.min(axis=0),
        low=lows.min(axis=0),
        high=highs.min(axis=0),
        p_adjusted=holm(np.minimum(2 * p.max(axis=0), 1.0)),
        n=counts[means.argmin(axis=0)],
        level=level,
    )


def fewest_observations(heads: int, level: float = 0.95) -> int:
    """With fewer observations no head can be sure: so many signs may agree by chance."""
    return int(np.floor(np.log2(2 * heads / (1 - level)))) + 1


def _one(rows: Floats, margin: float, below: float, above: float) -> tuple[Floats, ...]:
    """Means of one comparison, bounds with these tails, and one-sided p-values."""
    mean, reach = rows.mean(axis=1), _reach(rows, margin, below)
    # As far on the other side of the margin as a value may lie; no room for any means surely above.
    room = np.maximum(reach - (mean - margin), 1e-12 * np.maximum(reach, np.abs(mean - margin)))
    above_it = np.where((mean > margin)[:, None], rows - margin, 0.0)
    evidence = evidence_against_zero(above_it, None, reach=np.maximum(room, 1e-300))
    p = np.where(mean > margin, np.exp(_law(rows).log_tail(evidence)), 1.0)
    return mean, -_upper(-rows, -margin, below), _upper(rows, margin, above), p


def _upper(rows: Floats, margin: float, tail: float) -> Floats:
    """The upper bound of each mean: where the test of `_one` would just not reject."""
    mean, reach = rows.mean(axis=1), _reach(-rows, -margin, tail)
    budget = _law(rows).budget(float(np.log(tail)))
    lowest = rows.min(axis=1)
    bound = upper_mean_bound(rows, None, low=lowest, high=mean + reach, budget=budget)
    found: Floats = np.maximum(bound, mean)
    return found


def _law(rows: Floats) -> SignedRoots:
    """Student's law of a hundred values and more; that of the few that make a mean, if few do."""
    n, roots = rows.shape[1], SignedRoots.of(rows)
    freedom = np.where(_differing(rows) < FEW, roots.freedom, n - 1.0)
    return SignedRoots(freedom, roots.half_step).where(np.full(len(rows), n >= MANY))


def _differing(rows: Floats) -> Floats:
    """How many values differ from 0: so many of one size have the same spread about it."""
    size = np.abs(rows).max(axis=1, keepdims=True)
    squares = np.divide(rows, size, out=np.zeros_like(rows), where=size > 0) ** 2
    whole, fourth = squares.sum(axis=1), (squares**2).sum(axis=1)
    count: Floats = np.divide(whole**2, fourth, out=np.zeros_like(whole), where=fourth > 0)
    return count


def _reach(rows: Floats, margin: float, tail: float) -> Floats:
    """How far below its mean a value of each row may lie, also one that was not seen."""
    n, mean = rows.shape[1], rows.mean(axis=1)
    seen = mean - rows.min(axis=1)
    seen = np.where(seen <= 1e-12 * np.abs(rows).max(axis=1), 0.0, seen)  # rounding
    reach: Floats = (1 + (FEW if n < MANY else 2 * FEW) / n) * seen
    if n < FEW:
        reach = np.maximum(reach, 2 * np.abs(mean - margin))
    few = _differing(rows) < -np.log2(tail)  # their signs may agree by chance
    farther: Floats = np.where(few, np.maximum(reach, mean + np.abs(rows).max(axis=1)), reach)
    return farther


def least_estimate(at: Callable[[float], Sequence[Estimate]], *, level: float) -> Estimate:
    """The smallest of some estimates, which `at` gives at any level; NaN where one has no bound.

    All must be above a margin for it to be, so that from below each is tested at the full level;
    from above all bounds must hold together. The lowest bound may be that of another estimate than
    the smallest, one with a long arm of few observations: degrees of freedom are such that at
    stricter levels the lower bound moves at least as far as those of all do.
    """
    strict = 1 - (1 - level) / _STRICT
    each, stricter = list(at(level)), at(strict)
    together = at(1 - (1 - level) / len(each))
    smallest = min(each, key=lambda one: one.value)
    low = float(np.min([one.low for one in each]))
    high = max(float(np.min([one.high for one in together])), smallest.value)
    lowest = min(each, key=lambda one: one.low)
    known = min(one.freedom or one.n - 1 for one in each)
    found = replace(
        smallest, low=low, high=high, level=level, lasting=lowest.lasting, remedy=lowest.remedy
    )
    if not low < smallest.value:
        return replace(found, freedom=known)
    arm = smallest.value - min(one.low for one in stricter)
    low = min(low, smallest.value - arm / _growth(1.0, level, strict))  # no law grows faster
    freedom = _freedom_of(arm / (smallest.value - low), level, strict, known)
    return replace(found, low=low, freedom=freedom)


def _growth(freedom: float, level: float, strict: float) -> float:
    """How much longer Student's interval is at a stricter level."""
    usual, far = (float(stdtrit(freedom, (1 + at) / 2)) for at in (level, strict))
    return far / usual


def _freedom_of(growth: float, level: float, strict: float, most: float) -> float:
    """Degrees of freedom, one to `most`, with which intervals grow so much between two levels."""
    low, high = 1.0, max(float(most), 1.0)
    if _growth(high, level, strict) >= growth:
        return high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = _growth(middle, level, strict) >= growth
        low, high = (middle, high) if enough else (low, middle)
    return low
