"""Is the best of many surely better than each of the others, over the same observations?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from bertology.errors import DataError
from bertology.stats.multiplicity import holm

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Leading:
    """By how much each row lies behind the best one, (V,); the best one's own p-value is NaN."""

    best: int
    behind: Floats
    p_adjusted: Floats


def leading(values: Floats) -> Leading:
    """Compare the row of `values` (V, N) with the largest mean with every other row.

    Student's paired tests over observations, two-sided, with Holm's correction for the number of
    rows, and never smaller than the test of signs allows. The best was chosen after looking: of
    rows that are all alike, its lead over the next is the smallest of its leads, so the choice
    makes no false verdict more likely.
    """
    if values.ndim != 2 or values.shape[1] < 2:
        raise DataError(f"A leader needs two observations or more. Got shape {values.shape}.")
    n, mean = values.shape[1], values.mean(axis=1)
    best = int(mean.argmax())
    difference = values[best] - values
    behind = difference.mean(axis=1)
    error = difference.std(axis=1, ddof=1) / np.sqrt(n)
    t = behind / np.where(error > 0, error, 1.0)
    p = np.where(error > 0, 2 * stdtr(n - 1, -np.abs(t)), 0.0)
    # Differences of a few observations may be equal by chance: no test of signs could do better.
    p = np.maximum(p, np.minimum(1.0, 2.0 ** (1 - (difference != 0).sum(axis=1))))
    others = np.arange(len(values)) != best
    adjusted = np.full(len(values), np.nan)
    adjusted[others] = holm(p[others])
    return Leading(best, behind, adjusted)
