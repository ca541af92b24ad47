"""Means of many quantities over the same examples, some of which lack some quantities.

A sentence without a noun says nothing about attention to nouns. Each mean is over the examples
that have its quantity; the bounds treat it as a ratio of two means over all examples, whose
influences are zero where the quantity is absent. The bounds are those of `stats.paired`, set
around the mean: what one example may do is the largest deviation seen, or more where one says so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, ndtri_exp, stdtrit

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
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> PartialMeans:
    """The mean of each row of `values` (V, N); NaN where an example lacks the quantity.

    `reach`: a deviation from the mean that must be allowed for even if none so large was seen, such
    as 1 for hits and misses. Rows with fewer than two values have no interval and take no part
    in the correction.
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
        null = max_statistics(influence, resamples=resamples, seed=seed)
        critical = float(np.quantile(null.max(axis=1), level))
        budget = -float(log_ndtr(-critical))  # as `stats.paired.simultaneous` spends it
        most = np.maximum(np.abs(influence).max(axis=1), reach * scale)
        below, above = bounded_mean_bounds(influence, None, low=-most, high=most, budget=budget)
        all_low[known], all_high[known] = mean[known] + below, mean[known] + above
        against = evidence_against_zero(
            influence + mean[known][:, None], None, reach=most + np.abs(mean[known])
        )
        p[known] = step_down(np.maximum(-ndtri_exp(-against), 0.0), null)
    return PartialMeans(mean, low, high, all_low, all_high, p, n.astype(np.int64), level)
