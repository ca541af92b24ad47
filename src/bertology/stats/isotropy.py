"""How evenly vectors fill their space: by directions, by variances, by a partition function.

All but the partition function need sums only: of unit vectors, of states, and of outer products.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bertology.arrays import Floats


def cosine_by_dimension(units: Floats, squares: Floats, count: float, pairs: float) -> Floats:
    """What each dimension (…, width) adds to the mean cosine of pairs of different texts.

    `units` are sums of unit vectors; `squares` those of the squared sums of each text; `count` is
    the number of vectors, and `pairs` adds up the squared number of each text. The sum over
    dimensions is the mean cosine itself (Timkey and van Schijndel 2021).
    """
    found: Floats = (units**2 - squares) / (count**2 - pairs)
    return found


def covariance(states: Floats, moments: Floats, count: float) -> Floats:
    """(…, width, width) of sums of states and of their outer products."""
    mean = states / count
    found: Floats = moments / count - mean[..., :, None] * mean[..., None, :]
    return found


def participation(covariances: Floats) -> Floats:
    """(Σ λ)² / Σ λ² of the eigenvalues λ: how many directions have variance, from 1 to the width.

    Both sums are known without eigenvalues: the trace, and the sum of the squared entries.
    """
    trace = np.trace(covariances, axis1=-2, axis2=-1)
    found: Floats = trace**2 / np.maximum((covariances**2).sum(axis=(-2, -1)), 1e-300)
    return found


def isoscore(covariances: Floats) -> Floats:
    """IsoScore (Rudman et al. 2022): 1 where all directions vary alike, 0 where only one does.

    The variances of principal components are scaled to the length √n of the vector of ones; their
    distance from it, over the largest that there can be, is the defect; the score is the share of
    dimensions that are used, brought to [0, 1].
    """
    n = covariances.shape[-1]
    # Σ λ / |λ|, and so the distance √(2n - 2√n Σ λ / |λ|), follow from the participation ratio.
    distance = 2 * n - 2 * np.sqrt(n * participation(covariances))
    defect = np.clip(distance, 0, None) / (2 * (n - np.sqrt(n)))  # squared
    used = (n - defect * (n - np.sqrt(n))) ** 2 / n**2
    found: Floats = (n * used - 1) / (n - 1)
    return found


@dataclass(frozen=True)
class Partition:
    """Mu and Viswanath's partition function Z(c) = Σ exp(c·x) over directions c."""

    ratio: float
    """The smallest over the largest: 1 where all directions are alike."""
    spread: float
    """The standard deviation of Z over its mean: 0 where all directions are alike."""


def partition(states: Floats, directions: Floats) -> Partition:
    """Over `directions` (width, k), each both ways, since an eigenvector has no sign."""
    along = states @ directions  # (N, k)
    both = np.concatenate([along, -along], axis=1)
    top = both.max(axis=0)
    log = top + np.log(np.exp(both - top).mean(axis=0))  # exp of long vectors would overflow
    z = np.exp(log - log.max())
    return Partition(float(z.min()), float(z.std() / z.mean()))
