"""A straight line through a few things: its slope, with the things as they are, or as draws.

Where the things are fixed, the slope is a weighted sum of what was measured of each (a contrast),
and is as sure as these measurements are. Where they stand for others of their kind, how far they
lie from the line says how much a slope may come by chance: Student's interval of the slope of a
regression, with as many degrees of freedom as there are things beyond two.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from bertology.arrays import Floats
from bertology.errors import DataError
from bertology.stats.crossed import joint_freedom
from bertology.stats.intervals import Estimate

FEWEST = 3  # things; any two lie on a line


def slope_weights(places: ArrayLike) -> Floats:
    """Weights that make the slope of the line of least squares out of values at these places."""
    x = np.asarray(places, dtype=np.float64)
    apart = x - x.mean()
    if x.size < 2 or not np.isfinite(x).all() or not apart.any():
        raise DataError(f"A slope needs two places or more that differ. Got {x.tolist()}.")
    return np.asarray(apart / (apart @ apart))


def among_others(places: ArrayLike, values: ArrayLike, fixed: Estimate, unit: str) -> Estimate:
    """The slope with the things taken as draws from others of their kind.

    `fixed`: the slope of these things as they are. Its arms and that of the distances from the line
    are put together as squares: what is drawn for all things alike, such as examples, does not show
    in distances from the line. What was drawn for each alone is in both, so that it counts twice
    and intervals err to the wide side. Bounds are NaN where there are fewer than three things.
    """
    x, y = (np.asarray(v, dtype=np.float64) for v in (places, values))
    weights, n = slope_weights(x), x.size
    found = replace(fixed, n=n, unit=unit, tested=None, needed=None)
    if n < FEWEST or math.isnan(fixed.low):
        return replace(found, low=math.nan, high=math.nan)
    left = y - y.mean() - (weights @ y) * (x - x.mean())
    spread = math.sqrt(float(left @ left) / (n - 2))
    arm = float(stdtrit(n - 2, (1 + fixed.level) / 2)) * spread * math.sqrt(weights @ weights)
    below, above = fixed.value - fixed.low, fixed.high - fixed.value
    own = (below + above) / 2
    whole = math.hypot(arm, own)
    free = fixed.n - 1.0 if fixed.freedom is None else fixed.freedom
    return replace(
        found,
        low=fixed.value - math.hypot(arm, below),
        high=fixed.value + math.hypot(arm, above),
        lasting=own / whole if whole else 0.0,
        freedom=joint_freedom((arm, n - 2), (own, max(free, 1.0)), fixed.level),
        remedy=f"more {unit} would narrow it",
    )
