"""The best of several candidates, chosen on one half of the examples and scored on the other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["cross_fitted"]

Floats = NDArray[np.float64]


def cross_fitted(scores: NDArray[np.floating]) -> tuple[Floats, Floats]:
    """What the best candidate scores in each example (N, R), and the mean of all (R, C).

    `scores` are (N, R, C): examples, questions, candidates. For one half of the examples the best
    is chosen on the other half. Halves are the examples of even and of odd number, so that a
    file's order does not matter.
    """
    means = _mean(scores)
    base = np.full(scores.shape[:2], np.nan)
    for half in (0, 1):
        best = _mean(scores[1 - half :: 2]).argmax(axis=-1)  # (R,)
        base[half::2] = np.take_along_axis(scores[half::2], best[None, :, None], axis=2)[..., 0]
    return base, means


def _mean(values: NDArray[np.floating]) -> Floats:
    """Over the first axis, NaN left out; -1 (below any share) where there is nothing else."""
    there = np.isfinite(values)
    total = np.where(there, values, 0).sum(axis=0, dtype=np.float64)
    found: Floats = np.where(there.any(axis=0), total / np.maximum(there.sum(axis=0), 1), -1.0)
    return found
