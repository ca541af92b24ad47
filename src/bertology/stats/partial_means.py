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
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, ndtri_exp, stdtr, stdtrit

from bertology.arrays import Floats
from bertology.errors import DataError
from bertology.stats.best_of_many import Extreme, largest_of, smallest_of
from bertology.stats.intervals import (
    Estimate,
    bounded_mean_bounds,
    check_level,
    distinct,
    evidence_against_zero,
)
from bertology.stats.multiplicity import RowBlocks, in_blocks, max_statistics, step_down
from bertology.stats.signed_roots import SignedRoots, ends_are_seen

FEW = 30  # values; with fewer, the observed spread and correlations are not reliable


@dataclass(frozen=True)
class PartialMeans:
    """Means (V,) with pointwise intervals, and with bounds and p-values that hold for all."""

    value: Floats
    low: Floats
    high: Floats
    simultaneous_low: Floats
    simultaneous_high: Floats
    alone_low: Floats  # bounds of the same kind for one mean that was not picked
    alone_high: Floats
    p_adjusted: Floats  # against a mean of 0
    n: NDArray[np.int64]
    level: float

    def estimate(self, at: int) -> Estimate | None:
        """One of them with its simultaneous interval, valid even if it was chosen afterwards.

        None where it rests on fewer than two examples.
        """
        only = np.arange(self.value.size) == at
        return self._extreme(smallest_of, only, self.simultaneous_low, self.simultaneous_high)

    def smallest(self, among: NDArray[np.bool_] | None = None) -> Estimate | None:
        """The smallest of those that have an interval; see `stats.extremes`.

        From below no correction is due: it is enough that the bound of the truly smallest holds.
        """
        return self._extreme(smallest_of, among, self.alone_low, self.simultaneous_high)

    def largest(self, among: NDArray[np.bool_] | None = None) -> Estimate | None:
        """The largest of those that have an interval; from above no correction is due."""
        return self._extreme(largest_of, among, self.simultaneous_low, self.alone_high)

    def _extreme(
        self, of: Extreme, among: NDArray[np.bool_] | None, low: Floats, high: Floats
    ) -> Estimate | None:
        some = slice(None) if among is None else among
        sides = (side[some] for side in (self.value, low, high))
        return of(*sides, n=self.n[some], level=self.level)


def partial_means(
    values: ArrayLike | RowBlocks,
    *,
    reach: float = 0.0,
    within: tuple[float, float] = (-math.inf, math.inf),
    support: tuple[float, float] | None = None,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    among: int | None = None,
) -> PartialMeans:
    """The mean of each row of `values` (V, N); NaN where an example lacks the quantity.

    `reach`: a deviation from the mean that must be allowed for even if none so large was seen, such
    as 1 for hits and misses. `within`: where the means must lie; bounds beyond are cut off.
    `support`: where every single value must lie; then simultaneous bounds and p-values allow for
    rare large values of which none was seen, up to these ends, whatever the sample looks like.
    Rows with fewer than two values have no interval and take no part in the correction. Rows that
    are too many to be held together come as `RowBlocks`. `among`: so many rows are looked at in
    all, of which these are some; bounds and p-values then are Bonferroni's for all of them, which
    needs no resamples. For thousands of rows that is hardly wider.
    """
    check_level(level, "partial_means")
    blocks = values if isinstance(values, RowBlocks) else in_blocks(_checked(values))
    seen = [_seen(block, reach) for block in blocks]
    mean, spread, most, against, n, freedom, half_step = (
        np.concatenate(column) for column in zip(*seen, strict=True)
    )
    half = stdtrit(np.maximum(n - 1, 1), (1 + level) / 2) * spread
    known = n > 1
    low, high = (np.where(known, mean + sign * half, np.nan) for sign in (-1, 1))
    all_low, all_high, one_low, one_high, p = (np.full(mean.size, np.nan) for _ in range(5))
    if known.any():
        influences = RowBlocks(lambda: (_influence(block)[0] for block in blocks))
        roots = SignedRoots(freedom[known], half_step[known])
        if support is not None:
            seen_ends = np.concatenate([ends_are_seen(block, *support) for block in blocks])
            roots = roots.where(seen_ends[known])
        # The tail on one side, for one row and for all.
        one = math.log((1 - level) / 2)
        if among is None:
            null = max_statistics(influences, resamples=resamples, seed=seed)
            critical = float(np.quantile(null.max(axis=1), level))
            each, rows = float(log_ndtr(-critical)), int(known.sum())
        else:
            each, rows = one - math.log(among), among
        alone, together = roots.budget(one), roots.budget(each)
        against_all = np.zeros(int(known.sum()))
        if support is None:
            few = mean[known], spread[known], n[known], level
            bounds = _bounds(influences, most[known], (alone, together))
            for lower, upper, of, (below, above) in (
                (one_low, one_high, 1, bounds[0]),
                (all_low, all_high, rows, bounds[1]),
            ):
                strict, against_all = _students(*few, of)
                lower[known] = mean[known] + np.minimum(below, -strict)
                upper[known] = mean[known] + np.maximum(above, strict)
        else:
            ends = _supported(blocks, support, (together, alone))
            filled = (all_low, all_high, one_low, one_high, against)
            for row, found in zip(filled, ends, strict=True):
                row[known] = found
        tails = roots.log_tail(against[known])
        if among is None:
            adjusted = step_down(np.maximum(-ndtri_exp(tails), 0.0), null)
        else:
            adjusted = np.minimum(2 * among * np.exp(tails), 1.0)
        p[known] = np.maximum(adjusted, against_all)
    low, high, all_low, all_high, one_low, one_high = (
        np.clip(b, *within) for b in (low, high, all_low, all_high, one_low, one_high)
    )
    sides = (low, high, all_low, all_high, one_low, one_high)
    return PartialMeans(mean, *sides, p, n.astype(np.int64), level)


def means_with_tests(
    values: ArrayLike, *, among: int, reach: float = 0.0, level: float = 0.95
) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """As `partial_means` among so many rows, without bounds: means, p-values and counts.

    Bounds take ten times as long, and of thousands of rows few are looked at.
    """
    mean, spread, _, against, n, *law = _seen(_checked(values), reach)
    known, p = n > 1, np.full(mean.size, np.nan)
    _, few = _students(mean[known], spread[known], n[known], level, among)
    tails = SignedRoots(*law)[known].log_tail(against[known])
    p[known] = np.maximum(np.minimum(2 * among * np.exp(tails), 1.0), few)
    return mean, p, n.astype(np.int64)


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
) -> tuple[Floats, Floats, Floats, Floats, NDArray[np.int64], Floats, Floats]:
    """Of each row: mean, its error, what one example may do, evidence against 0, and count.

    And the law of the evidence's signed root (`SignedRoots`).
    """
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
    if known.any():
        values, counts = distinct(influence + mean[known, None])
        against[known] = evidence_against_zero(values, counts, reach=worst)
    law = SignedRoots.of(block)
    return mean, spread, most, against, n, law.freedom, law.half_step


def _bounds(
    influences: Iterable[Floats], most: Floats, budgets: tuple[Floats, ...]
) -> list[tuple[Floats, Floats]]:
    """Bounds of the means of influences by each budget, block by block."""
    found, at = [(np.empty(most.size), np.empty(most.size)) for _ in budgets], 0
    for block in influences:
        some = slice(at, at + len(block))
        values, counts = distinct(block) if len(block) else (block, None)
        for (below, above), budget in zip(found, budgets, strict=True):
            below[some], above[some] = bounded_mean_bounds(
                values, counts, low=-most[some], high=most[some], budget=budget[some]
            )
        at += len(block)
    return found


def _supported(
    blocks: Iterable[NDArray[np.generic]],
    support: tuple[float, float],
    budgets: tuple[Floats, ...],
) -> NDArray[np.float64]:
    """Both bounds for each budget, and evidence against 0, of values within `support`."""
    found, at = list[NDArray[np.float64]](), 0
    for block in blocks:
        x = np.asarray(block, dtype=np.float64)
        there = np.isfinite(x)
        known = there.sum(axis=1) > 1
        values, counts = np.where(there, x, support[0])[known], there[known].astype(np.float64)
        of = partial(bounded_mean_bounds, values, counts, low=support[0], high=support[1])
        some = slice(at, at + len(values))
        bounds = [side for budget in budgets for side in of(budget=budget[some])]
        reach = np.full(len(values), max(map(abs, support)))
        against = evidence_against_zero(np.where(counts > 0, values, 0.0), counts, reach=reach)
        found.append(np.stack([*bounds, against]))
        at += len(values)
    return np.concatenate(found, axis=1)


def _students(
    mean: Floats, spread: Floats, n: NDArray[np.int64], level: float, rows: int
) -> tuple[Floats, Floats]:
    """Half-widths and p-values by Student for means of few values, for `rows` together; else 0."""
    half = stdtrit(n - 1, 1 - (1 - level) / 2 / rows) * spread
    varies = spread > 1e-12 * np.abs(mean)
    sizes = np.abs(mean) / np.where(varies, spread, 1.0)
    alike = np.where(mean == 0, 0.0, 2.0 ** (1 - n))  # the smallest that a test of signs can give
    p = np.minimum(rows * np.where(varies, 2 * stdtr(n - 1, -sizes), alike), 1.0)
    half = np.where(varies | (p < 1 - level), half, np.abs(mean))
    return np.where(n < FEW, half, 0.0), np.where(n < FEW, p, 0.0)
