"""Scores in which every class weighs the same, so that one constant answer is worth nothing.

With C classes any constant answer scores 1/C, however many examples each class has.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def weights_by_class(labels: ArrayLike) -> Floats:
    """(N,) weights with the sum 1; each class that is there has the same share of it."""
    _, number, counts = np.unique(np.asarray(labels), return_inverse=True, return_counts=True)
    return np.asarray(1 / (len(counts) * counts[number]), dtype=np.float64)


def balanced_accuracy(said: ArrayLike, labels: ArrayLike) -> float:
    """The mean over classes of the share of their examples that are told right."""
    right = np.asarray(said) == np.asarray(labels)
    return float(weights_by_class(labels) @ right)
