"""Is every one of several means above a margin? Asked of many heads at once.

A head carries a relation if it beats each of several comparisons. That is an intersection–union
test (Berger 1982): each comparison is tested at the full level, and the head passes if all of them
do, so comparisons cost nothing. Only the number of heads has to be paid for (Holm 1979).

Tests and bounds are Student's over the observations of each comparison, with Hall's correction
(1992) for skewness where the long tail lies on the side that the mean is to be told from: rare
large values there, of which few were seen, would else make it look surer than it is. The lower
bound of the smallest mean is the smallest lower bound, corrected for heads only, as the test is.
For the upper bound all upper bounds must hold together, so it is corrected for both.
`benchmarks/relation_error.py` simulates error and power. Nothing that looks at sixty values helps
against large losses that are so rare that none of them was seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from bertology.errors import DataError
from bertology.stats.intervals import check_level
from bertology.stats.multiplicity import holm

__all__ = ["LeastMeans", "least_means"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LeastMeans:
    """For each of V heads the smallest of its K means; arrays are (V,) but for `means` (K, V)."""

    means: Floats
    value: Floats
    low: Floats
    high: Floats
    p_adjusted: Floats  # two-sided, against a smallest mean of `margin` or less
    n: NDArray[np.int64]  # observations behind the smallest mean
    level: float


def least_means(
    comparisons: Sequence[Floats], *, margin: float = 0.0, level: float = 0.95
) -> LeastMeans:
    """The smallest mean of each head over `comparisons`, which are (V, n) each; n may differ.

    A mean that does not vary is known exactly, as where two comparisons give the same numbers.
    """
    check_level(level, "least_means")
    if not comparisons or any(rows.ndim != 2 or rows.shape[1] < 2 for rows in comparisons):
        shapes = [rows.shape for rows in comparisons]
        raise DataError(
            "The smallest of several means needs at least two observations of each comparison. "
            f"Got shapes {shapes}."
        )
    tail, heads = (1 - level) / 2, len(comparisons[0])
    found = [
        _one(rows, margin, tail / heads, tail / heads / len(comparisons)) for rows in comparisons
    ]
    means, lows, highs, p = (np.stack(side) for side in zip(*found, strict=True))  # (K, V)
    counts = np.array([rows.shape[1] for rows in comparisons])
    return LeastMeans(
        means=means,
        value=means.min(axis=0),
        low=lows.min(axis=0),
        high=highs.min(axis=0),
        p_adjusted=holm(np.minimum(2 * p.max(axis=0), 1.0)),
        n=counts[means.argmin(axis=0)],
        level=level,
    )


def _one(rows: Floats, margin: float, below: float, above: float) -> tuple[Floats, ...]:
    """Means of one comparison, bounds with these tails, and one-sided p-values."""
    n, mean = rows.shape[1], rows.mean(axis=1)
    spread, skew = _spread(rows)
    still = spread <= 0
    away = (mean - margin) / np.where(still, 1.0, spread)
    t = np.sqrt(n) * (away + skew * away**2 / 3 + skew**2 * away**3 / 27 + skew / (6 * n))
    p = np.where(still, np.where(mean > margin, 0.0, 1.0), stdtr(n - 1, -t))
    return mean, _lower(rows, below), -_lower(-rows, above), p


def _lower(rows: Floats, tail: float) -> Floats:
    """The lower bound of each mean: where the test of `_one` would just not reject."""
    n = rows.shape[1]
    spread, skew = _spread(rows)
    wanted = stdtrit(n - 1, 1 - tail) / np.sqrt(n)
    skewed = skew < -1e-6
    safe = np.where(skewed, skew, -1.0)
    corrected = 3 / safe * (np.cbrt(1 + safe * (wanted - safe / (6 * n))) - 1)
    found: Floats = rows.mean(axis=1) - spread * np.where(skewed, corrected, wanted)
    return found


def _spread(rows: Floats) -> tuple[Floats, Floats]:
    """Standard deviations (0 for what does not vary but by rounding) and negative skewness."""
    away = rows - rows.mean(axis=1, keepdims=True)
    spread = rows.std(axis=1, ddof=1)
    spread = np.where(spread <= 1e-12 * np.abs(rows).max(axis=1), 0.0, spread)
    skew = (away**3).mean(axis=1) / np.where(spread > 0, spread, 1.0) ** 3
    return spread, np.where(spread > 0, np.minimum(skew, 0.0), 0.0)
