"""Means over a few units, such as words, whose scores lean to one side: Hall's interval.

Twenty words have a score each: most of them near 1, a few far below. Bounds for any distribution
(`stats.partial_means`, `stats.least_means`) allow for words far beyond all that were seen, and for
twenty of them say next to nothing; they are made for many heads and for rare large values.
Student's interval is short, but misses up to three times too often on the side of the long tail.
Hall (1992) takes the skewness out of Student's t by a cubic that can be turned around:

    t = d + g d² / 3 + g² d³ / 27 + g / 6n,    d = (mean - truth) / spread,    g the skewness

Where nothing is skewed, this is Student's interval. Where one of a dozen words lies far off, the
cubic overshoots: no bound lies farther out than one that holds for all values in the possible
range. `benchmarks/skewed_means.py` simulates how often it misses, beside Student's and those above.
What no interval can know are words that are so rare that none was seen: if one of ten lies far off,
twenty words may have none such.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from bertology.arrays import Floats
from bertology.stats.intervals import Estimate, bounded_mean_bounds, check_level

FEWEST = 5
"""Units; fewer have no interval: of so few, skewness cannot be told from chance."""
_STRAIGHT = 1e-6  # a skewness that is no skewness: the cubic is a line then


def skewed_means(
    values: NDArray[np.floating], level: float = 0.95, *, within: tuple[float, float]
) -> tuple[Floats, Floats, Floats]:
    """Means over the first axis (units) with both bounds, each for its mean alone.

    `within`: where the means must lie, and single values as a rule. Units that all have the same
    value show no spread: there the bounds are those that hold for all values in this range (as many
    others as n would miss by chance lie at its ends). With fewer than five units they are NaN.
    """
    check_level(level, "skewed_means")
    x = np.asarray(values, dtype=np.float64)
    n, mean = len(x), x.mean(axis=0) if len(x) else np.full(x.shape[1:], np.nan)
    if n < FEWEST:
        return mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    spread = x.std(axis=0, ddof=1)
    alike = spread <= 1e-12 * np.maximum(np.abs(mean), 1.0)
    skew = ((x - mean) ** 3).mean(axis=0) / np.where(alike, 1.0, spread) ** 3
    quantile = float(stdtrit(n - 1, (1 + level) / 2))
    low = mean - spread * _inverse(quantile, skew, n)
    high = mean - spread * _inverse(-quantile, skew, n)
    rows = x.reshape(n, -1).T
    lowest, highest = np.minimum(within[0], rows.min(1)), np.maximum(within[1], rows.max(1))
    budget = math.log(2 / (1 - level))
    any_low, any_high = (
        side.reshape(mean.shape)
        for side in bounded_mean_bounds(rows, None, low=lowest, high=highest, budget=budget)
    )
    low = np.where(alike, any_low, np.maximum(low, any_low))
    high = np.where(alike, any_high, np.minimum(high, any_high))
    low, high = np.clip(low, *within), np.clip(high, *within)
    return mean, np.minimum(low, mean), np.maximum(high, mean)


def skewed_mean(
    values: NDArray[np.floating],
    level: float = 0.95,
    *,
    within: tuple[float, float],
    unit: str = "examples",
) -> Estimate | None:
    """One mean that was chosen before looking, over the values that are numbers; None below five.

    On each side the farther of Student's bound and Hall's: with some dozens of values of which most
    are nearly 0, Hall's are a little short, and Student's miss on the side of the long tail.
    """
    x = np.asarray(values, dtype=np.float64)
    x = x[np.isfinite(x)]
    if len(x) < FEWEST:
        return None
    mean, low, high = (float(side) for side in skewed_means(x, level, within=within))
    half = float(stdtrit(len(x) - 1, (1 + level) / 2)) * float(x.std(ddof=1)) / math.sqrt(len(x))
    low, high = min(low, max(mean - half, within[0])), max(high, min(mean + half, within[1]))
    return Estimate(mean, low, high, len(x), level, unit)


def least_skewed_mean(
    rows: Sequence[Floats], level: float = 0.95, *, within: tuple[float, float], unit: str
) -> Estimate:
    """The smallest of the means of some rows (n,) over the same units.

    All must be above a margin for it to be, so that from below each is tested at the full level
    (Berger 1982); from above all bounds must hold together.
    """
    table = np.stack(rows, axis=1)
    mean, low, _ = skewed_means(table, level, within=within)
    high = skewed_means(table, 1 - (1 - level) / len(rows), within=within)[2]
    return Estimate(mean.min(), low.min(), high.min(), len(table), level, unit)


def _inverse(t: float, skew: Floats, n: int) -> Floats:
    """The distance d from mean to truth, in standard deviations, that has this t."""
    line = t / math.sqrt(n) - skew / (6 * n)
    bent = np.abs(skew) > _STRAIGHT
    safe = np.where(bent, skew, 1.0)
    return np.asarray(np.where(bent, 3 * (np.cbrt(1 + safe * line) - 1) / safe, line), np.float64)
