"""Repairs of vectors that lie in a narrow cone: maps that are learnt on some and applied to others.

`learn(name, vectors)` gives a function. Every repair is an affine map, so it can be learnt on texts
that nobody is scored on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from bertology.errors import UnknownNameError

__all__ = ["REPAIRS", "dominating", "learn", "shrunk_covariance"]

Floats = NDArray[np.float64]
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


def learn(name: str, vectors: Floats, *, components: int = 1, dimensions: int = 3) -> Repair:
    """A repair that is learnt from `vectors` (N, D), as a function of vectors (M, D).

    `components` are taken away by "top-removed", `dimensions` by "dominating-removed".
    """
    if name not in REPAIRS:
        raise UnknownNameError("repair", name, REPAIRS)
    given = np.asarray(vectors, np.float64)
    middle, width = given.mean(axis=0), given.shape[1]
    if name == "none":
        return lambda x: np.asarray(x, np.float64)
    if name == "centred":
        return lambda x: x - middle
    if name == "top-removed":
        # All-but-the-top (Mu and Viswanath 2018).
        _, axes = _spectrum(given)
        top = axes[:, : min(components, width - 1)]
        return lambda x: (x - middle) - ((x - middle) @ top) @ top.T
    if name == "standardised":
        spread = given.std(axis=0)
        scale = np.where(spread > 1e-9 * max(float(spread.max()), 1e-300), spread, np.inf)
        return lambda x: (x - middle) / scale
    if name == "dominating-removed":
        kept = np.ones(width)
        kept[dominating(given)[: min(dimensions, width - 1)]] = 0.0
        return lambda x: x * kept
    variances, axes = np.linalg.eigh(shrunk_covariance(given))
    scale = np.sqrt(np.maximum(variances, 1e-9 * max(float(variances.max()), 1e-300)))
    return lambda x: ((x - middle) @ axes) / scale


def dominating(vectors: Floats) -> NDArray[np.int64]:
    """Dimensions by their part in the mean cosine of two different vectors, the largest first.

    After Timkey and van Schijndel (2021); over all pairs, by one sum instead of pairs.
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units = vectors / np.where(lengths > 0, lengths, 1.0)
    parts = units.sum(axis=0) ** 2 - (units**2).sum(axis=0)
    return np.argsort(-parts, kind="stable")


def _spectrum(vectors: Floats) -> tuple[Floats, Floats]:
    """Variances along the principal axes, the largest first, and the axes as columns."""
    variances, axes = np.linalg.eigh(np.cov(vectors.T, bias=True).reshape(vectors.shape[1], -1))
    return variances[::-1], axes[:, ::-1]


def shrunk_covariance(vectors: Floats) -> Floats:
    """The covariance, drawn towards a sphere as far as few vectors ask for (Ledoit and Wolf 2004).

    With many vectors for each dimension it is nearly the plain one; with fewer vectors than
    dimensions the plain one could not be inverted.
    """
    n, width = vectors.shape
    away = vectors - vectors.mean(axis=0)
    plain = away.T @ away / n
    sphere = float(np.trace(plain)) / width
    squares = away**2
    # How far single products lie from their mean, against how far the mean lies from a sphere.
    noise = float((squares.T @ squares).sum() / n - (plain**2).sum()) / n
    far = float(((plain - sphere * np.eye(width)) ** 2).sum())
    share = min(max(noise, 0.0) / far, 1.0) if far > 0 else 1.0
    found: Floats = (1 - share) * plain
    found.flat[:: width + 1] += share * sphere
    return found
