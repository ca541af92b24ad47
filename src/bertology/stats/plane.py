"""Things in a plane, as far apart there as their distances say: multidimensional scaling."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertology.errors import DataError

Floats = NDArray[np.float64]
_ROUNDS, _ENOUGH = 1000, 1e-7


def in_the_plane(distances: ArrayLike) -> tuple[Floats, float]:
    """Places (K, 2) and how badly they fit: Kruskal's stress, 0 to 1, where 0.1 is a fair fit.

    Metric scaling by majorization (SMACOF; de Leeuw 1977) from the classical solution (Torgerson
    1952), so nothing is drawn at random and the same distances give the same picture. The farthest
    place on each axis is on its positive side.
    """
    d = np.asarray(distances, np.float64)
    if d.ndim != 2 or d.shape[0] != d.shape[1] or not np.isfinite(d).all():
        raise DataError(f"Distances of all pairs are needed, none of them NaN. Got {d.shape}.")
    places, total = _classical(d), float((d**2).sum())
    if total == 0:
        return places, 0.0
    now = _raw(places, d)
    for _ in range(_ROUNDS):
        apart = _apart(places)
        ratio = np.divide(d, apart, out=np.zeros_like(d), where=apart > 0)
        moved = (ratio.sum(1)[:, None] * places - ratio @ places) / len(d)
        before, now, places = now, _raw(moved, d), moved
        if before - now <= _ENOUGH * total:
            break
    _, axes = np.linalg.eigh(places.T @ places)  # the widest direction to the right
    places = places @ axes[:, ::-1]
    far = np.abs(places).argmax(axis=0)
    signs = np.where(places[far, np.arange(2)] < 0, -1.0, 1.0)
    return places * signs, float(np.sqrt(now / total))


def _classical(d: Floats) -> Floats:
    k = len(d)
    centre = np.eye(k) - 1 / k
    values, vectors = np.linalg.eigh(-centre @ (d**2) @ centre / 2)
    found = np.zeros((k, 2))
    for at in range(min(2, k)):
        found[:, at] = vectors[:, -1 - at] * np.sqrt(max(values[-1 - at], 0.0))
    return found


def _apart(places: Floats) -> Floats:
    found: Floats = np.sqrt(((places[:, None] - places) ** 2).sum(-1))
    return found


def _raw(places: Floats, d: Floats) -> float:
    return float(((_apart(places) - d) ** 2).sum())
