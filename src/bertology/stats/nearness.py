"""Are members of a group nearer to each other than to what is like them in other groups?

Distances between all pairs say little by themselves: in a random model deep layers attend broadly,
broad maps are all near each other, and so heads of one layer are a quarter nearer to each other
than to others (12 layers × 12 heads, spread of weights 0.3). So members are exchanged only with
those that are alike in some property, and the groups are compared with what such exchanges give.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertology.errors import DataError
from bertology.stats.intervals import Estimate, check_level

Floats = NDArray[np.float64]
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
