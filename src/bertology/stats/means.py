"""Means of many quantities over the same examples, with bounds that hold for all together."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bertology.errors import DataError
from bertology.stats.intervals import check_level
from bertology.stats.partial_means import PartialMeans, partial_means

__all__ = ["means_over_examples"]


def means_over_examples(
    values: ArrayLike, *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> PartialMeans:
    """The mean of each column of `values` (N, V) over examples; none may lack a quantity.

    For measures that every example gives, such as a share or a similarity. Changes of answers,
    which few examples show, are what `paired_bootstrap` is for. The simultaneous bounds are not
    Student's with a stricter quantile: similarities are skewed, and of the means of 144 skewed
    measures over a few hundred examples such bounds miss some far more often than they say.
    """
    check_level(level, "means_over_examples")
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 2 or x.shape[0] < 2 or not x.shape[1] or not np.isfinite(x).all():
        raise DataError(
            "Means over examples need finite values of two examples or more, as (examples, "
            f"quantities). Got shape {x.shape}."
        )
    return partial_means(x.T, level=level, resamples=resamples, seed=seed)
