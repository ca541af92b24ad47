"""Means of many quantities over the same examples, some of which lack some quantities.

A sentence without a noun says nothing about attention to nouns. Each mean is over the examples
that have its quantity; the bounds treat it as a ratio of two means over all examples, where an
example without the quantity has influence zero. The bounds are those of `stats.paired`, centred on
the mean. They assume a largest possible deviation of one example: the largest that was observed,
or `reach` if that is larger, made larger still when there are few values (among five values the
largest possible one was probably not observed). With fewer than thirty values, Student's bounds
(with Bonferroni's correction for all rows) are computed as well, and the wider ones are given. A
few values that are all equal have no spread, which tells nothing of how sure their mean is: such
bounds include 0 unless a test of signs would exclude it.

Where values are rarely large, none of these may have been seen, and bounds from what was seen miss
too often: with 3 % of large values among 200 examples, some bound of 144 misses in a third of all
samples. Where it is known how large a value can be (a cosine, a share), say so by `support`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, ndtri_exp, stdtr, stdtrit

from bertology.errors import DataError
from bertology.stats.extremes import Extreme, largest_of, smallest_of
from bertology.stats.intervals import (
    Estimate,
    bounded_mean_bounds,
    check_level,
    evidence_against_zero,
)
from bertology.stats.multiplicity import max_statistics, step_down
from bertology.stats.row_blocks import RowBlocks, in_blocks

__all__ = ["PartialMeans", "partial_means"]

Floats = NDArray[np.float64]

FEW = 30  # values; with fewer, the observed spread and correlations are not reliable


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

    def estimate(self, at: int) -> Estimate | None:
        """One of them with its simultaneous interval, valid even if it was chosen afterwards.

        None where it rests on fewer than two examples.
        """
        return self.smallest(np.arange(self.value.size) == at)

    def smallest(self, among: NDArray[np.bool_] | None = None) -> Estimate | None:
        """The smallest of those that have an interval; see `stats.extremes`."""
        return self._extreme(smallest_of, among)

    def largest(self, among: NDArray[np.bool_] | None = None) -> Estimate | None:
        """The largest of those that have an interval."""
        return self._extreme(largest_of, among)

    def _extreme(self, of: Extreme, among: NDArray[np.bool_] | None) -> Estimate | None:
        some = slice(None) if among is None else among
        sides = (self.value, self.simultaneous_low, self.simultaneous_high)
        return of(*(side[some] for side in sides), n=self.n[some], level=self.level)


def partial_means(
    values: ArrayLike | RowBlocks,
    *,
    reach: float = 0.0,
    within: tuple[float, float] = (-math.inf, math.inf),
    support: tuple[float, float] | None = None,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> PartialMeans:
    """The mean of each row of `values` (V, N); NaN where an example lacks the quantity.

    `reach`: a deviation from the mean that must be allowed for even if none so large was seen, such
    as 1 for hits and misses. `within`: where the means must lie; bounds beyond are cut off.
    `support`: where every single value must lie; then simultaneous bounds and p-values allow for
    rare large values of which none was seen, up to these ends, whatever the sample looks like.
    Rows with fewer than two values have no interval and take no part in the correction. Rows that
    are too many to be held together come as `RowBlocks`.
    """
    check_level(level, "partial_means")
    blocks = values if isinstance(values, RowBlocks) else in_blocks(_checked(values))
    seen = [_seen(block, reach) for block in blocks]
    mean, spread, most, against, n = (np.concatenate(column) for column in zip(*seen, strict=True))
    half = stdtrit(np.maximum(n - 1, 1), (1 + level) / 2) * spread
    known = n > 1
    low, high = (np.where(known, mean + sign * half, np.nan) for sign in (-1, 1))
    all_low, all_high, p = (np.full(mean.size, np.nan) for _ in range(3))
    if known.any():
        influences = RowBlocks(lambda: (_influence(block)[0] for block in blocks))
        null = max_statistics(influences, resamples=resamples, seed=seed)
        critical = float(np.quantile(null.max(axis=1), level))
        budget = -float(log_ndtr(-critical))  # as `stats.paired.simultaneous` spends it
        if support is None:
            below, above = _bounds(influences, most[known], budget)
            strict, against_all = _students(mean[known], spread[known], n[known], level)
            below, above = np.minimum(below, -strict), np.maximum(above, strict)
            all_low[known], all_high[known] = mean[known] + below, mean[known] + above
        else:
            against_all = np.zeros(int(known.sum()))
            ends = [_supported(block, support, budget) for block in blocks]
            all_low[known], all_high[known], against[known] = np.concatenate(ends, axis=1)
        stepped = step_down(np.maximum(-ndtri_exp(-against[known]), 0.0), null)
        p[known] = np.maximum(stepped, against_all)
    low, high, all_low, all_high = (np.clip(b, *within) for b in (low, high, all_low, all_high))
    return PartialMeans(mean, low, high, all_low, all_high, p, n.astype(np.int64), level)


def _checked(values: ArrayLike) -> NDArray[np.generic]:
    x = np.asarray(values)
    if x.ndim != 2 or not x.size:
        raise DataError(f"Means need an array of quantities by examples. Got shape {x.shape}.")
    return x


def _influence(block: NDArray[np.generic]) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """What each example does to the mean, of rows that have an interval; all means, all counts."""
    x = np.asarray(block, dtype=np.float64)
    there = np.isfinite(x)
    n = there.sum(axis=1)
    safe = np.maximum(n, 1)
    mean = np.where(n > 0, np.where(there, x, 0).sum(axis=1) / safe, np.nan)
    known = n > 1
    away = np.where(there[known], x[known] - mean[known, None], 0)
    return away * (x.shape[1] / safe)[known, None], mean, n


def _seen(
    block: NDArray[np.generic], reach: float
) -> tuple[Floats, Floats, Floats, Floats, NDArray[np.int64]]:
    """Of each row: mean, its error, what one example may do, evidence against 0, and count."""
    influence, mean, n = _influence(block)
    known, size = n > 1, influence.shape[1]
    spread, most, against = np.zeros(mean.size), np.zeros(mean.size), np.zeros(mean.size)
    squares = (influence**2).sum(axis=1) / size**2 * n[known]  # about the mean, over n
    spread[known] = np.sqrt(squares / (n[known] - 1))
    largest = np.abs(influence).max(axis=1, initial=0) * (
        1 + FEW / n[known]
    )  # allow for unseen values
    most[known] = np.maximum(largest, reach * size / n[known])
    # As far below 0 as the bounds allow one example to be: then they exclude 0 where p says so.
    worst = np.maximum(most[known] - np.abs(mean[known]), 1e-12 * most[known])
    against[known] = evidence_against_zero(influence + mean[known, None], None, reach=worst)
    return mean, spread, most, against, n


def _bounds(influences: Iterable[Floats], most: Floats, budget: float) -> tuple[Floats, Floats]:
    """Bounds of the means of influences, block by block."""
    below, above, at = np.empty(most.size), np.empty(most.size), 0
    for block in influences:
        some = slice(at, at + len(block))
        below[some], above[some] = bounded_mean_bounds(
            block, None, low=-most[some], high=most[some], budget=budget
        )
        at += len(block)
    return below, above


def _supported(
    block: NDArray[np.generic], support: tuple[float, float], budget: float
) -> NDArray[np.float64]:
    """Bounds and evidence against 0 (3, rows) of values that must lie within `support`."""
    x = np.asarray(block, dtype=np.float64)
    there = np.isfinite(x)
    known = there.sum(axis=1) > 1
    values, counts = np.where(there, x, support[0])[known], there[known].astype(np.float64)
    low, high = bounded_mean_bounds(values, counts, low=support[0], high=support[1], budget=budget)
    reach = np.full(len(values), max(map(abs, support)))
    against = evidence_against_zero(np.where(counts > 0, values, 0.0), counts, reach=reach)
    return np.stack([low, high, against])


def _students(
    mean: Floats, spread: Floats, n: NDArray[np.int64], level: float
) -> tuple[Floats, Floats]:
    """Half-widths and p-values by Student and Bonferroni for means of few values; else 0."""
    half = stdtrit(n - 1, 1 - (1 - level) / 2 / n.size) * spread
    varies = spread > 1e-12 * np.abs(mean)
    sizes = np.abs(mean) / np.where(varies, spread, 1.0)
    alike = np.where(mean == 0, 0.0, 2.0 ** (1 - n))  # the smallest that a test of signs can give
    p = np.minimum(n.size * np.where(varies, 2 * stdtr(n - 1, -sizes), alike), 1.0)
    half = np.where(varies | (p < 1 - level), half, np.abs(mean))
    return np.where(n < FEW, half, 0.0), np.where(n < FEW, p, 0.0)
