"""Means of many quantities over the same examples, some of which lack some quantities.

A sentence without a noun says nothing about attention to nouns. Each mean is over the examples
that have its quantity; the bounds treat it as a ratio of two means over all examples, whose
influences are zero where the quantity is absent. The bounds are those of `stats.paired`, set
around the mean: what one example may do is the largest deviation seen, or more where one says so,
and more the fewer there are: in five values the largest of all has hardly been seen. Under thirty,
Student's bounds (Bonferroni's for all rows) hold as well, and the wider ones are given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, ndtri_exp, stdtr, stdtrit

from bertology.errors import DataError
from bertology.stats.intervals import (
    Estimate,
    bounded_mean_bounds,
    check_level,
    evidence_against_zero,
)
from bertology.stats.multiplicity import max_statistics, step_down

__all__ = ["PartialMeans", "partial_means"]

Floats = NDArray[np.float64]

FEW = 30  # values; with fewer, the spread and the correlations that were seen mean little


@dataclass(frozen=True)
class PartialMeans:
    """Means (V,) with pointwise intervals, and with bounds and p-values that hold for all."""

    value: Floats
    low: Floats
    high: Floats
    simultaneous_low: Floats
    simultaneous_high: Floats
    p_adjusted: Floats  # against a mean of 0
    n: NDArray[np.int64]
    level: float

    def estimate(self, at: int) -> Estimate:
        """One of them with its simultaneous interval: fit to be claimed after looking at all."""
        low, high = self.simultaneous_low[at], self.simultaneous_high[at]
        return Estimate(self.value[at], low, high, int(self.n[at]), self.level)


def partial_means(
    values: ArrayLike,
    *,
    reach: float = 0.0,
    within: tuple[float, float] = (-math.inf, math.inf),
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> PartialMeans:
    """The mean of each row of `values` (V, N); NaN where an example lacks the quantity.

    `reach`: a deviation from the mean that must be allowed for even if none so large was seen, such
    as 1 for hits and misses. `within`: where the means must lie; bounds beyond are cut off. Rows
    with fewer than two values have no interval and take no part in the correction.
    """
    check_level(level, "partial_means")
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 2 or not x.size:
        raise DataError(f"Means need an array of quantities by examples. Got shape {x.shape}.")
    there = np.isfinite(x)
    n = there.sum(axis=1)
    safe = np.maximum(n, 1)
    mean = np.where(n > 0, np.where(there, x, 0).sum(axis=1) / safe, np.nan)
    away = np.where(there, x - mean[:, None], 0)
    spread = np.sqrt((away**2).sum(axis=1) / np.maximum(n - 1, 1) / safe)
    half = stdtrit(np.maximum(n - 1, 1), (1 + level) / 2) * spread
    known = n > 1
    low, high = (np.where(known, mean + sign * half, np.nan) for sign in (-1, 1))
    all_low, all_high, p = (np.full(len(x), np.nan) for _ in range(3))
    if known.any():
        scale = (x.shape[1] / safe)[known]
        influence = away[known] * scale[:, None]
        del away  # as large as what was given
        null = max_statistics(influence, resamples=resamples, seed=seed)
        critical = float(np.quantile(null.max(axis=1), level))
        budget = -float(log_ndtr(-critical))  # as `stats.paired.simultaneous` spends it
        seen = np.abs(influence).max(axis=1) * (1 + FEW / n[known])  # and a little unseen
        most = np.maximum(seen, reach * scale)
        below, above = bounded_mean_bounds(influence, None, low=-most, high=most, budget=budget)
        strict, against_all = _students(mean[known], spread[known], n[known], level)
        below, above = np.minimum(below, -strict), np.maximum(above, strict)
        all_low[known], all_high[known] = mean[known] + below, mean[known] + above
        against = evidence_against_zero(
            influence + mean[known][:, None], None, reach=most + np.abs(mean[known])
        )
        stepped = step_down(np.maximum(-ndtri_exp(-against), 0.0), null)
        p[known] = np.maximum(stepped, against_all)
    low, high, all_low, all_high = (np.clip(b, *within) for b in (low, high, all_low, all_high))
    return PartialMeans(mean, low, high, all_low, all_high, p, n.astype(np.int64), level)


def _students(
    mean: Floats, spread: Floats, n: NDArray[np.int64], level: float
) -> tuple[Floats, Floats]:
    """Half-widths and p-values by Student and Bonferroni for means of few values; else 0."""
    half = stdtrit(n - 1, 1 - (1 - level) / 2 / n.size) * spread
    sizes = np.abs(mean) / np.where(spread > 0, spread, 1.0)
    p = np.where(spread > 0, np.minimum(2 * n.size * stdtr(n - 1, -sizes), 1.0), 0.0)
    return np.where(n < FEW, half, 0.0), np.where(n < FEW, p, 0.0)
