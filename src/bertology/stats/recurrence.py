"""What recurs over runs: things that survive more often than chance, and whether runs agree at all.

Chance is that in every run (or task) any of its things might have been left: the values of a row
are put in a random order, all things alike or only those of one group (a layer), so that each row
keeps its size and each group its share. What is left in one run says nothing of another then. So
rows must be what is independent under chance: runs, or tasks with their seeds together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit
from scipy.stats import rankdata

from bertology.arrays import Floats
from bertology.stats.intervals import Estimate, check_level

_HELD = 1 << 22  # values that are put in order together


def surely_often(
    kinds: Sequence[Floats], *, level: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> tuple[list[Floats], float]:
    """P-values of sums over rows, corrected for all things of all kinds; and the limit at `level`.

    Each of `kinds` is (rows, groups, things); things are mixed within rows and groups. The
    statistic of a thing is how many standard deviations its sum lies above that of chance, and the
    correction is by the largest of all things (Westfall and Young 1993), which is exact for any
    number of rows. P-values are (groups, things); the limit is of that statistic.
    """
    found = [_deviations(kind) for kind in kinds]
    rng, largest = np.random.default_rng(seed), np.full(resamples, -np.inf)
    for kind in kinds:
        for at, mixed in _mixed(kind, resamples, rng):
            most = _deviations(mixed).reshape(len(mixed), -1).max(1)
            largest[at] = np.maximum(largest[at], most)
    p = [((largest >= one[..., None] - 1e-9).sum(-1) + 1) / (resamples + 1) for one in found]
    return p, float(np.quantile(largest, level))


def recurs(rows: Floats, *, resamples: int = 10_000, seed: int = 0) -> float:
    """The p-value of rows (rows, groups, things) agreeing on things beyond what groups tell.

    The statistic is the sum of squared sums, which is Cochran's within groups.
    """
    found, rng, reached = _squares(rows), np.random.default_rng(seed), 0
    for _, mixed in _mixed(rows, resamples, rng):
        reached += int(np.count_nonzero(_squares(mixed) >= found * (1 - 1e-12)))
    return (1 + reached) / (1 + resamples)


def runs_needed(share: float, things: int, level: float = 0.95) -> int | None:
    """With how many runs a thing that survives in all is sure; None if all survive by chance.

    `share` survives by chance, and one of so many things is looked for (Bonferroni).
    """
    if not 0 < share < 1:
        return None
    return max(1, math.ceil(math.log((1 - level) / things) / math.log(share)))


def _deviations(rows: Floats) -> Floats:
    """(…, groups, things) of (…, rows, groups, things): sums in standard deviations of chance."""
    sums = rows.sum(-3, keepdims=True)
    error = np.sqrt(rows.var(-1, keepdims=True).sum(-3, keepdims=True))
    above = sums - rows.mean(-1, keepdims=True).sum(-3, keepdims=True)
    safe = np.maximum(error, 1e-12)
    return np.asarray(np.where(error > 1e-9, above / safe, 0.0).squeeze(-3), np.float64)


def _squares(rows: Floats) -> Floats:
    found: Floats = (rows.sum(-3) ** 2).sum((-2, -1))
    return found


def _mixed(
    rows: Floats, resamples: int, rng: np.random.Generator
) -> Iterator[tuple[slice, Floats]]:
    """Batches of random orders within rows and groups, and their places among all resamples."""
    size = max(1, _HELD // rows.size)
    for start in range(0, resamples, size):
        at = slice(start, min(start + size, resamples))
        yield at, rng.permuted(np.broadcast_to(rows, (at.stop - start, *rows.shape)), axis=-1)


# Heads compared within layers: shares of two sides, and ranks of two numbers.
#
# What differs from layer to layer (or any other group) is no difference of heads then. Heads are
# what is counted: the interval says what other heads of the same kind might have given.

FEWEST = 5  # values on each side


def share_difference_within(
    shares: ArrayLike, first: ArrayLike, groups: ArrayLike, level: float = 0.95
) -> Estimate | None:
    """The mean share (0 to 1) of what `first` marks less that of the others, within each group.

    Groups that have both count, each by how well it tells the two apart. The interval is Welch's;
    each side is as uncertain as with one more share of 0 and one of 1 (Agresti and Caffo 2000), so
    that a few heads which all have 0 are not taken for many. None where fewer than five a side are
    left.
    """
    check_level(level, "share_difference_within")
    y, x = (np.asarray(v, dtype=np.float64).ravel() for v in (shares, first))
    _, group = np.unique(np.asarray(groups).ravel(), return_inverse=True)
    marked = np.bincount(group, weights=x)
    others = np.bincount(group) - marked
    kept = ((marked > 0) & (others > 0))[group]
    sides = [kept & (x == 1), kept & (x == 0)]
    if min(int(side.sum()) for side in sides) < FEWEST:
        return None
    weight = marked * others / np.maximum(marked + others, 1)
    weight /= weight.sum()
    means = [
        np.bincount(group[side], weights=y[side], minlength=len(marked))
        / np.maximum(np.bincount(group[side], minlength=len(marked)), 1)
        for side in sides
    ]
    value = float(weight @ (means[0] - means[1]))
    middle = (marked * means[0] + others * means[1]) / np.maximum(marked + others, 1)
    share = marked / np.maximum(marked + others, 1)
    left = y - middle[group] - value * (x - share[group])  # of one difference for all groups
    freedom = max(int(kept.sum()) - int((weight > 0).sum()) - 1, 1)
    errors = []
    for side, size in zip(sides, (marked, others), strict=True):
        n = int(side.sum())
        near = (y[side].sum() + 1) / (n + 2)
        spread = (left[side] ** 2).sum() * kept.sum() / freedom + near**2 + (1 - near) ** 2
        each = np.divide(weight**2, size, out=np.zeros_like(weight), where=size > 0)
        errors.append((spread / (n + 2) * float(each.sum()), n))
    whole = sum(error for error, _ in errors)
    welch = whole**2 / sum(error**2 / (n - 1) for error, n in errors)
    half = float(stdtrit(welch, (1 + level) / 2)) * np.sqrt(whole)
    low, high = max(value - half, -1.0), min(value + half, 1.0)
    return Estimate(value, low, high, int(kept.sum()), level, "heads", freedom=welch)


def rank_association_within(
    one: ArrayLike,
    other: ArrayLike,
    groups: ArrayLike,
    *,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> tuple[Estimate, float] | None:
    """Spearman's ρ of ranks within each group, and its two-sided p-value by random orders there.

    The interval holds the values that such orders, moved by them on Fisher's scale, would not
    contradict. None where one of the two is the same all over every group.
    """
    check_level(level, "rank_association_within")
    a, b = (np.asarray(v, dtype=np.float64).ravel() for v in (one, other))
    group = np.asarray(groups).ravel()
    members = [np.flatnonzero(group == name) for name in np.unique(group)]
    a, b = (_centred_ranks(v, members) for v in (a, b))
    length = float(np.sqrt((a @ a) * (b @ b)))
    if length < 1e-9:
        return None
    rng, null = np.random.default_rng(seed), np.zeros(resamples)
    for some in members:
        null += rng.permuted(np.tile(b[some], (resamples, 1)), axis=1) @ a[some]
    null /= length
    value = float(a @ b) / length
    p = float((1 + (np.abs(null) >= abs(value) - 1e-9).sum()) / (1 + resamples))
    tail = (1 - level) / 2
    below, above = np.quantile(_fisher(null), [tail, 1 - tail])
    at = _fisher(np.array(value))
    low, high = float(np.tanh(at - above)), float(np.tanh(at - below))
    return Estimate(value, min(low, value), max(high, value), len(a), level, "heads"), p


def _centred_ranks(values: Floats, members: list[NDArray[np.intp]]) -> Floats:
    """Ranks in the own group, as shares of its size, around 0."""
    found = np.zeros(len(values))
    for some in members:
        found[some] = (rankdata(values[some]) - (len(some) + 1) / 2) / len(some)
    return found


def _fisher(rho: Floats) -> Floats:
    return np.asarray(np.arctanh(np.clip(rho, -1 + 1e-9, 1 - 1e-9)), np.float64)
