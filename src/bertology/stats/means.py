"""Means of many quantities over the same examples, with bounds that hold for all together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, stdtrit

from bertology.errors import DataError
from bertology.stats.intervals import check_level
from bertology.stats.multiplicity import max_statistics

__all__ = ["Means", "means_over_examples"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Means:
    """All arrays are (V,): `low` and `high` hold one by one, the simultaneous ones together."""

    value: Floats
    low: Floats
    high: Floats
    simultaneous_low: Floats
    simultaneous_high: Floats


def means_over_examples(
    values: ArrayLike, *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Means:
    """The mean of each column of `values` (N, V) over examples, with Student's bounds.

    For measures that every example gives, such as a share or a similarity. Changes of answers,
    which few examples show, are what `paired_bootstrap` is for. The simultaneous bounds
    use the largest of the columns' correlated t-statistics (max-T); the quantile of the normal
    is exchanged for Student's of the same tail, since spreads are estimated as well.
    """
    check_level(level, "means_over_examples")
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 2 or x.shape[0] < 2 or not x.shape[1] or not np.isfinite(x).all():
        raise DataError(
            "Means over examples need finite values of two examples or more, as (examples, "
            f"quantities). Got shape {x.shape}."
        )
    n = x.shape[0]
    mean, error = x.mean(axis=0), x.std(axis=0, ddof=1) / np.sqrt(n)
    null = max_statistics(x.T, resamples=resamples, seed=seed)
    critical = float(np.quantile(null.max(axis=1), level))
    alone, together = (stdtrit(n - 1, tail) * error for tail in ((1 + level) / 2, ndtr(critical)))
    return Means(mean, mean - alone, mean + alone, mean - together, mean + together)
