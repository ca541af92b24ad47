"""How much evidence an error rate takes: Chernoff's bound, or Student's law of the signed root.

Likelihood bounds (`intervals.bounded_mean_bounds`) bound probability as Chernoff has it: a mean is
excluded once the evidence against it, in nats, is above log(1 / tail). That holds for any number of
values and is strict: intervals are 1.4 times as wide as Student's. The signed root of twice the
evidence is nearly normal where many values make the mean, and then a shorter interval keeps the
promise too. How many values there are does not tell: of a hundred answers of which one is wrong, a
single one makes the mean, and an interval at Student's width would miss in one of seven samples.

So Student's law is taken with as many values as truly make the spread,

    (Σ d²)² / Σ d⁴,    d the distances from the mean:

of n normal values a third of them, of rare events their number, of all alike none. Where that is
few, Student's quantile is the larger one and Chernoff's bound stays. Counts move in steps, and a
test that takes the probability of half of the last step for nothing errs by it: half a step is
added (the continuity correction). `benchmarks/verdict_errors.py` simulates error and power.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from bertology.arrays import Bools, Floats

_AT_AN_END = 8  # values; of fewer, a sample may well have none where some are
_SAME = 1e-9  # values that are so much closer than the largest is large are the same


@dataclass(frozen=True)
class SignedRoots:
    """Of each of V means: the law that the signed root of its evidence follows."""

    freedom: Floats  # degrees of freedom; below one there is none, and Chernoff's bound holds
    half_step: Floats  # in standard errors

    @classmethod
    def of(cls, values: NDArray[np.generic]) -> Self:
        """Of the values (V, N) behind each mean; NaN where there is none."""
        x = np.asarray(values, dtype=np.float64)
        there = np.isfinite(x)
        mean = np.where(there, x, 0.0).sum(axis=1) / np.maximum(there.sum(axis=1), 1)
        squares = np.where(there, x - mean[:, None], 0.0) ** 2
        spread, fourth = squares.sum(axis=1), (squares**2).sum(axis=1)
        size = np.abs(np.where(there, x, 0.0)).max(axis=1, initial=0.0)
        varies = spread > (_SAME * size) ** 2
        making = np.divide(spread**2, fourth, out=np.zeros_like(spread), where=varies)
        steps = np.diff(np.sort(np.where(there, x, np.nan), axis=1), axis=1)
        apart = steps > _SAME * size[:, None]
        step = np.where(apart, steps, np.inf).min(axis=1, initial=np.inf)
        half = np.where(varies & np.isfinite(step), step / 2, 0.0)
        return cls(making - 1, half / np.sqrt(np.where(varies, spread, 1.0)))

    @classmethod
    def within(cls, values: NDArray[np.generic], low: float, high: float) -> Self:
        """As `of`, as if a value had been seen at each end of where values may lie.

        A rare value far out may be missing, and the spread of the others says nothing of it.
        """
        ends = np.broadcast_to(np.array([low, high]), (len(values), 2))
        return cls.of(np.concatenate([values, ends], axis=1))

    def where(self, known: Bools) -> SignedRoots:
        """The same law where it is known to hold; elsewhere Chernoff's bound."""
        return SignedRoots(np.where(known, self.freedom, 0.0), self.half_step)

    def __getitem__(self, rows: NDArray[np.bool_]) -> SignedRoots:
        """Of some of the means."""
        return SignedRoots(self.freedom[rows], self.half_step[rows])

    def budget(self, log_tail: float) -> Floats:
        """Nats (V,) of evidence that leave a tail of this logarithm."""
        known = self.freedom >= 1
        freedom = np.where(known, self.freedom, 1.0)
        root = self.half_step - stdtrit(freedom, np.exp(log_tail))
        found: Floats = np.where(known, np.minimum(root**2 / 2, -log_tail), -log_tail)
        return found

    def log_tail(self, evidence: Floats) -> Floats:
        """The logarithm (V,) of the tail that so much evidence leaves: `budget` turned around."""
        known = self.freedom >= 1
        root = np.sqrt(2 * evidence) - self.half_step
        tail = stdtr(np.where(known, self.freedom, 1.0), -root)
        law = np.log(np.maximum(tail, 1e-300))
        found: Floats = np.where(known, np.minimum(law, -evidence), -evidence)
        return found


def ends_are_seen(values: NDArray[np.generic], low: float, high: float) -> Bools:
    """Rows (V,) with enough values near both ends of where values may lie.

    Of other rows a rare value far out may be missing altogether, and the spread of those that are
    there says nothing of it.
    """
    x = np.asarray(values, dtype=np.float64)
    there = np.isfinite(x)
    mean = np.where(there, x, 0.0).sum(axis=1) / np.maximum(there.sum(axis=1), 1)
    below = (x < (low + mean)[:, None] / 2).sum(axis=1)
    above = (x > (high + mean)[:, None] / 2).sum(axis=1)
    seen: Bools = np.minimum(below, above) >= _AT_AN_END
    return seen
