"""Repairs of vectors that lie in a narrow cone: maps that are learnt on some and applied to others.

`Learnt(vectors).repair(name)` gives a function. Every repair is an affine map, so it can be learnt
on texts that nobody is scored on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats
from bertology.errors import UnknownNameError

Repair = Callable[[Floats], Floats]

REPAIRS: Mapping[str, str] = {
    "none": "as they are",
    "centred": "less the mean",
    "top-removed": "less the mean and the largest principal components",
    "standardised": "each dimension less its mean, by its standard deviation",
    "dominating-removed": "without the dimensions that dominate cosines",
    "whitened": "whitened",
}
"""Repairs, and what vectors are after each."""


class Learnt:
    """Repairs that are learnt from the same vectors (N, D); what several need is found once.

    `components` are taken away by "top-removed", `dimensions` by "dominating-removed".
    """

    def __init__(self, vectors: Floats, *, components: int = 1, dimensions: int = 3) -> None:
        self.vectors = np.asarray(vectors, np.float64)
        self.middle, self.width = self.vectors.mean(axis=0), self.vectors.shape[1]
        self.components, self.dimensions = components, dimensions

    @cached_property
    def _spectrum(self) -> tuple[Floats, Floats]:
        """Variances along the principal axes, the smallest first, and the axes as columns."""
        away = self.vectors - self.middle
        variances, axes = np.linalg.eigh(away.T @ away / len(away))
        return variances, axes

    def repair(self, name: str) -> Repair:
        """One repair, as a function of vectors (M, D)."""
        middle, width = self.middle, self.width
        match name:
            case "none":
                return lambda x: np.asarray(x, np.float64)
            case "centred":
                return lambda x: x - middle
            case "top-removed":  # All-but-the-top (Mu and Viswanath 2018)
                top = self._spectrum[1][:, width - min(self.components, width - 1) :]
                return lambda x: (x - middle) - ((x - middle) @ top) @ top.T
            case "standardised":
                spread = self.vectors.std(axis=0)
                flat = spread <= 1e-9 * max(float(spread.max()), 1e-300)
                scale = np.where(flat, np.inf, spread)
                return lambda x: (x - middle) / scale
            case "dominating-removed":
                kept = np.ones(width)
                kept[dominating(self.vectors)[: min(self.dimensions, width - 1)]] = 0.0
                return lambda x: x * kept
            case "whitened":
                variances, axes = self._spectrum
                share, sphere = shrinkage(self.vectors)
                shrunk = (1 - share) * variances + share * sphere  # along the same axes
                least = 1e-9 * max(float(shrunk.max()), 1e-300)
                root = np.sqrt(np.maximum(shrunk, least))
                return lambda x: ((x - middle) @ axes) / root
        raise UnknownNameError("repair", name, REPAIRS)


def dominating(vectors: Floats) -> NDArray[np.int64]:
    """Dimensions by their part in the mean cosine of two different vectors, the largest first.

    After Timkey and van Schijndel (2021); over all pairs, by one sum instead of pairs.
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units = vectors / np.where(lengths > 0, lengths, 1.0)
    parts = units.sum(axis=0) ** 2 - (units**2).sum(axis=0)
    return np.argsort(-parts, kind="stable")


def shrinkage(vectors: Floats) -> tuple[float, float]:
    """How far a covariance is drawn towards a sphere, 0 to 1, and the sphere's variance.

    After Ledoit and Wolf (2004): with many vectors for each dimension it is nearly 0; with fewer
    vectors than dimensions the plain covariance could not be inverted.
    """
    n, width = vectors.shape
    away = vectors - vectors.mean(axis=0)
    plain = away.T @ away / n
    sphere = float(np.trace(plain)) / width
    squares = (away**2).sum(axis=1)
    # How far single products lie from their mean, against how far the mean lies from a sphere.
    noise = float((squares**2).sum() / n - (plain**2).sum()) / n
    far = float((plain**2).sum()) - width * sphere**2
    return (min(max(noise, 0.0) / far, 1.0) if far > 0 else 1.0), sphere
