"""How sure a score is, over the examples that it was measured on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from bertology.errors import DataError
from bertology.metrics import Metric
from bertology.stats.intervals import (
    Estimate,
    bounded_mean_bounds,
    check_level,
    percentile_interval,
)
from bertology.stats.paired import bootstrap_weights


def score_interval(
    metric: Metric,
    statistics: NDArray[np.float64],
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Estimate:
    """The score of `statistics` (N, K), as `metric.statistics` gives them, with its interval.

    A share of right answers has Clopper and Pearson's exact interval, other scores that of a
    bootstrap over examples. Where no resample differs (no answer is wrong), the bounds of a mean
    that lies where scores lie stand for it: no resample can show an error that did not occur.
    """
    check_level(level, "score_interval")
    n = len(statistics)
    if not n:
        raise DataError("A score needs at least one example.")
    value, tail = float(metric.finish(statistics.sum(axis=0))), (1 - level) / 2
    if metric.counts_right:
        right = round(value * n)
        low = betaincinv(right, n - right + 1, tail) if right else 0.0
        high = betaincinv(right + 1, n - right, 1 - tail) if right < n else 1.0
        return Estimate(value, low, high, n, level)
    drawn = metric.finish(bootstrap_weights(n, resamples, seed).astype(np.float64) @ statistics)
    low, high = (float(end) for end in percentile_interval(drawn, level))
    if low == high:
        lowest, highest = metric.within
        ends = bounded_mean_bounds(
            np.array([[value]]), np.array([[n]]), low=lowest, high=highest, budget=-np.log(tail)
        )
        low, high = (float(end[0]) for end in ends)
    return Estimate(value, min(low, value), max(high, value), n, level)
