"""A few runs that differ in their seed only: means, and tests of paired differences.

Student's intervals, because with three to ten runs nothing less strict is honest. Without an
interval there is no verdict, so one run decides nothing; nor do runs that agree to the last digit,
which tells how coarse a score is and not how sure.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertology.stats.intervals import Estimate, check_level, mean_interval
from bertology.stats.multiplicity import holm

__all__ = ["adjusted", "paired_p", "repeated"]

Floats = NDArray[np.float64]


def repeated(
    values: ArrayLike,
    level: float = 0.95,
    *,
    within: tuple[float, float] = (-math.inf, math.inf),
) -> Estimate:
    """The mean over runs; its bounds are NaN where the runs cannot give any.

    `within`: where the values must lie; bounds beyond are cut off, for there the mean cannot be.
    """
    check_level(level, "repeated")
    x = np.asarray(values, dtype=np.float64).ravel()
    if not x.size or not np.isfinite(x).all():
        return Estimate(math.nan, math.nan, math.nan, x.size, level, unit="seeds")
    if x.size < 2 or _same(x):
        return Estimate(x.mean(), math.nan, math.nan, x.size, level, unit="seeds")
    found = mean_interval(x, level).counting("seeds")
    lowest, highest = within
    return replace(found, low=max(found.low, lowest), high=min(found.high, highest))


def paired_p(differences: ArrayLike) -> float:
    """Student's two-sided test that the mean of paired differences is 0; NaN without a spread."""
    from scipy.special import stdtr

    x = np.asarray(differences, dtype=np.float64).ravel()
    if x.size < 2 or not np.isfinite(x).all() or _same(x):
        return math.nan
    t = abs(x.mean()) / (x.std(ddof=1) / math.sqrt(x.size))
    return float(2 * stdtr(x.size - 1, -t))


def adjusted(p: ArrayLike) -> Floats:
    """Holm's p-values over those that there are; NaN stays NaN."""
    values = np.asarray(p, dtype=np.float64)
    known = ~np.isnan(values)
    out = np.full_like(values, math.nan)
    out[known] = holm(values[known])
    return out


def _same(x: Floats) -> bool:
    return float(np.ptp(x)) <= 1e-12 * max(1.0, float(np.abs(x).max()))
