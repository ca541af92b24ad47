"""A few runs that differ in their seed only: means, and tests of differences, paired or not.

Student's intervals, because with three to ten runs nothing less strict is honest. Without an
interval there is no verdict, so one run decides nothing; nor do runs that agree to the last digit,
which tells how coarse a score is and not how sure.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtr, stdtridf, stdtrit

from bertology.arrays import Floats
from bertology.stats.intervals import Estimate, check_level, mean_interval
from bertology.stats.multiplicity import holm


def repeated(
    values: ArrayLike,
    level: float = 0.95,
    *,
    within: tuple[float, float] = (-math.inf, math.inf),
    grain: float = 0.0,
) -> Estimate:
    """The mean over runs; its bounds are NaN where the runs cannot give any.

    `within`: where the values must lie; bounds beyond are cut off, for there the mean cannot be.
    `grain`: values are told in steps of this size, so that they are not known any better: their
    standard deviation is taken for no less than that of rounding, a step over the root of 12.
    """
    check_level(level, "repeated")
    x = np.asarray(values, dtype=np.float64).ravel()
    if not x.size or not np.isfinite(x).all():
        return Estimate(math.nan, math.nan, math.nan, x.size, level, unit="seeds")
    if x.size < 2 or (_same(x) and not grain):
        return Estimate(x.mean(), math.nan, math.nan, x.size, level, unit="seeds")
    rounded = grain / math.sqrt(12)
    if x.std(ddof=1) >= rounded:
        return _cut(mean_interval(x, level).counting("seeds"), within)
    half = float(stdtrit(x.size - 1, (1 + level) / 2)) * rounded / math.sqrt(x.size)
    found = Estimate(x.mean(), x.mean() - half, x.mean() + half, x.size, level, unit="seeds")
    return _cut(found, within)


def paired_p(differences: ArrayLike) -> float:
    """Student's two-sided test that the mean of paired differences is 0; NaN without a spread."""
    x = np.asarray(differences, dtype=np.float64).ravel()
    if x.size < 2 or not np.isfinite(x).all() or _same(x):
        return math.nan
    t = abs(x.mean()) / (x.std(ddof=1) / math.sqrt(x.size))
    return float(2 * stdtr(x.size - 1, -t))


def unpaired(
    one: ArrayLike,
    other: ArrayLike,
    level: float = 0.95,
    *,
    within: tuple[float, float] = (-math.inf, math.inf),
    units: tuple[str, str] = ("seeds", "seeds"),
) -> Estimate:
    """How much higher the mean of one group is, where nothing is paired and spreads may differ.

    Cochran and Cox's interval: each group brings Student's quantile for its own size, weighted by
    the squared error of its mean. Welch's, with one number of degrees of freedom for both, is too
    narrow where a group of three has the larger spread (`benchmarks/random_classifiers.py`).
    `units` are what is drawn in each group. The estimate counts those of the group that makes
    the interval wide; more of the same leaves what the other group adds (`lasting`).
    """
    check_level(level, "unpaired")
    x, y = (np.asarray(group, dtype=np.float64).ravel() for group in (one, other))
    if not (x.size and y.size and np.isfinite(x).all() and np.isfinite(y).all()):
        return Estimate(math.nan, math.nan, math.nan, min(x.size, y.size), level, units[0])
    value = float(x.mean() - y.mean())
    errors = _errors(x, y, level)
    if errors is None:
        fewest = min(((x.size, units[0]), (y.size, units[1])))
        return Estimate(value, math.nan, math.nan, fewest[0], level, fewest[1])
    squared, freedom = errors
    half = stdtrit(freedom, (1 + level) / 2) * math.sqrt(squared.sum())
    at = int(squared.argmax())
    found = Estimate(
        value,
        value - half,
        value + half,
        (x.size, y.size)[at],
        level,
        units[at],
        lasting=math.sqrt(squared[1 - at] / squared.sum()),
        remedy=f"more {' and '.join(dict.fromkeys(units))} would narrow it",
        freedom=freedom,
    )
    return _cut(found, within)


def unpaired_p(one: ArrayLike, other: ArrayLike) -> float:
    """The two-sided test of `unpaired` that two means are the same; NaN without a spread."""
    x, y = (np.asarray(group, dtype=np.float64).ravel() for group in (one, other))
    if (
        not (np.isfinite(x).all() and np.isfinite(y).all())
        or (errors := _errors(x, y, 0.95)) is None
    ):
        return math.nan
    squared, freedom = errors
    return float(2 * stdtr(freedom, -abs(x.mean() - y.mean()) / math.sqrt(squared.sum())))


def _errors(x: Floats, y: Floats, level: float) -> tuple[Floats, float] | None:
    """Squared standard errors of two means, and the degrees of freedom of their difference.

    These are the ones that have Cochran and Cox's quantile at `level`.
    """
    if min(x.size, y.size) < 2 or (_same(x) and _same(y)):
        return None
    squared = np.array([x.var(ddof=1) / x.size, y.var(ddof=1) / y.size])
    if _same(x) or _same(y):
        # Not surely without a spread: the smaller group is not trusted more than it would be alone.
        return squared, float(min(x.size, y.size) - 1)
    tail = (1 + level) / 2
    quantiles = stdtrit(np.array([x.size - 1, y.size - 1]), tail)
    return squared, float(stdtridf(tail, quantiles @ squared / squared.sum()))


def adjusted(p: ArrayLike) -> Floats:
    """Holm's p-values over those that there are; NaN stays NaN."""
    values = np.asarray(p, dtype=np.float64)
    known = ~np.isnan(values)
    out = np.full_like(values, math.nan)
    out[known] = holm(values[known])
    return out


def _cut(found: Estimate, within: tuple[float, float]) -> Estimate:
    lowest, highest = within
    return replace(found, low=max(found.low, lowest), high=min(found.high, highest))


def _same(x: Floats) -> bool:
    return float(np.ptp(x)) <= 1e-12 * max(1.0, float(np.abs(x).max()))
