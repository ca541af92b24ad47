"""Distances between things: are groups nearer within, and how the things lie in a plane."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertology.arrays import Floats
from bertology.errors import DataError
from bertology.stats.intervals import Estimate, check_level

# Are members of a group nearer to each other than to what is like them in other groups?
#
# Distances between all pairs say little by themselves: in a random model deep layers attend
# broadly, broad maps are all near each other, and so heads of one layer are a quarter nearer to
# each other than to others (12 layers × 12 heads, spread of weights 0.3). So members are exchanged
# only with those that are alike in some property, and the groups are compared with what such
# exchanges give.

_AT_ONCE = 64  # exchanges that are looked at together


def nearer_within(
    distances: ArrayLike,
    groups: ArrayLike,
    alike: ArrayLike,
    *,
    size: int,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    unit: str = "things",
) -> Estimate | None:
    """By which share distances within groups are below those of exchanged members.

    `distances` are (K, K), `groups` the number of each one's group. Members are sorted by `alike`
    and cut into sets of about `size`; only members of a set are exchanged, so groups keep their
    sizes. The interval holds the shares that the exchanges would not contradict. None where no
    exchange changes anything: groups then differ so much in `alike` that nothing can be compared.
    """
    check_level(level, "nearer_within")
    d, group, likeness = np.asarray(distances, np.float64), np.asarray(groups), np.asarray(alike)
    if d.ndim != 2 or d.shape != (group.size, group.size) or likeness.shape != group.shape:
        raise DataError(f"Distances of {group.size} things are needed. Got shape {d.shape}.")
    _, number = np.unique(group, return_inverse=True)
    counts = np.bincount(number)
    pairs = int((counts * (counts - 1)).sum())
    if not pairs:
        return None
    d = d * ~np.eye(len(d), dtype=bool)
    rng, null = np.random.default_rng(seed), []
    # Those that are just alike come in any order, or sets would be groups.
    order = np.lexsort((rng.permutation(len(d)), likeness))
    sets = np.array_split(order, max(1, round(len(d) / size)))
    for start in range(0, resamples, _AT_ONCE):
        drawn = np.tile(number, (min(_AT_ONCE, resamples - start), 1))
        for some in sets:
            drawn[:, some] = rng.permuted(drawn[:, some], axis=1)
        null.append(_within(d, drawn, len(counts)) / pairs)
    found, expected = float(_within(d, number[None], len(counts))[0]) / pairs, np.concatenate(null)
    usual, spread = float(expected.mean()), float(expected.std())
    if usual <= 0 or spread <= 1e-9 * usual:
        return None
    value, shifts = 1 - found / usual, 1 - expected / usual
    tail = (1 - level) / 2
    low, high = np.quantile(shifts, [tail, 1 - tail])
    # Counted with the one that was observed, as in every test by permutation.
    p = min(1.0, 2 * min(_share(shifts >= value - 1e-12), _share(shifts <= value + 1e-12)))
    estimate = Estimate(value, value - high, value - low, len(d), level, unit, tested=(0.0, p))
    return estimate.at_level(level)


def _share(as_far: NDArray[np.bool_]) -> float:
    return float((1 + as_far.sum()) / (1 + as_far.size))


def _within(distances: Floats, groups: NDArray[np.int64], count: int) -> Floats:
    """The sum of distances within groups for each assignment (R, K)."""
    member = groups[..., None] == np.arange(count)  # (R, K, groups)
    near = np.einsum("kl,rlg->rkg", distances, member.astype(np.float64), optimize=True)
    found: Floats = np.einsum("rkg,rkg->r", near, member)
    return found


# Things in a plane, as far apart there as their distances say: multidimensional scaling.

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
