"""The best of several candidates, chosen on one half of the examples and scored on the other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def cross_fitted(scores: NDArray[np.floating]) -> tuple[Floats, Floats]:
    """What the best candidate scores in each example (N, R), and the mean of all (R, C).

    `scores` are (N, R, C): examples, questions, candidates; see `picked_on_other_half`.
    """
    best = picked_on_other_half(scores)[..., None]
    return np.take_along_axis(scores, best, axis=2)[..., 0].astype(np.float64), _mean(scores)


def picked_on_other_half(scores: NDArray[np.floating], *, together: int = 1) -> NDArray[np.int64]:
    """The candidate (N, R) that for one half of the examples is the best on the other half.

    Halves are the examples of even and of odd number, so that a file's order does not matter. Where
    neighbours are not independent (twins, such as the two sentences of a Winograd schema, of which
    what is right in one is wrong in the other), so many stay `together` in one half.
    """
    picked = np.empty(scores.shape[:2], np.int64)
    second = (np.arange(len(scores)) // together) % 2 == 1
    for half in (second, ~second):
        picked[half] = _mean(scores[~half]).argmax(axis=-1)  # (R,)
    return picked


def _mean(values: NDArray[np.floating]) -> Floats:
    """Over the first axis, NaN left out; -1 (below any share) where there is nothing else."""
    there = np.isfinite(values)
    total = np.where(there, values, 0).sum(axis=0, dtype=np.float64)
    found: Floats = np.where(there.any(axis=0), total / np.maximum(there.sum(axis=0), 1), -1.0)
    return found
