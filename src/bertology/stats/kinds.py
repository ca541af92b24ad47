"""Do things of one kind differ from those of another, where the same items were asked of each?

Two questions are kept apart. Of these very things, such as eleven languages: items are what varies,
and all of them read the same ones, so that differences are paired. Of things of that kind: the
things vary, and there are few of them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtr, stdtrit

from bertology.arrays import Floats
from bertology.stats.intervals import Estimate, rank_correlation

_ALL = 20_000  # ways to exchange things that are gone through; of more, so many are drawn


def over_items(
    rows: Floats, weights: ArrayLike, *, level: float = 0.95, unit: str = "sentences"
) -> tuple[Estimate, float]:
    """The weighted sum of means of things over items, and its two-sided p-value.

    `rows` are (things, numbers, items): the mean of a thing is that of its numbers, each over the
    items that say something of it (NaN: nothing). Each item moves the sum by its influence on all
    of these means, so that what things have in common of an item cancels; Student's interval.
    """
    there = np.isfinite(rows)
    count = np.maximum(there.sum(axis=-1, keepdims=True), 1)
    mean = np.where(there, rows, 0.0).sum(axis=-1, keepdims=True) / count
    each = np.where(there, rows - mean, 0.0) / count  # (things, numbers, items)
    weight = np.asarray(weights, float)
    moved = weight @ each.mean(axis=1)
    value = float(weight @ mean[..., 0].mean(axis=1))
    n = int(there.any(axis=(0, 1)).sum())
    if n < 2:
        return Estimate(value, math.nan, math.nan, n, level, unit), 1.0
    error = math.sqrt(float((moved**2).sum()) * n / (n - 1))
    half = float(stdtrit(n - 1, (1 + level) / 2)) * error
    p = 2 * float(stdtr(n - 1, -abs(value) / error)) if error > 0 else float(value == 0)
    return Estimate(value, value - half, value + half, n, level, unit), p


def over_things(
    first: ArrayLike,
    second: ArrayLike,
    *,
    level: float = 0.95,
    seed: int = 0,
    unit: str = "languages",
) -> Estimate | None:
    """The mean of one kind of things less that of another; None where no interval can be told.

    Student's interval with the spread that both kinds share, and on which side of 0 the truth lies
    is decided by exchanging things between the kinds in all ways (`tested`). With few things few
    ways are there, or none is rare enough: then nothing is sure, however far the kinds are apart.
    """
    one, other = np.asarray(first, float), np.asarray(second, float)
    n, k = one.size + other.size, one.size
    if not k or not other.size or n < 4:
        return None
    value = float(one.mean() - other.mean())
    spread = ((one - one.mean()) ** 2).sum() + ((other - other.mean()) ** 2).sum()
    error = math.sqrt(spread / (n - 2) * (1 / k + 1 / other.size))
    half = float(stdtrit(n - 2, (1 + level) / 2)) * error
    p = _exchanged(np.concatenate([one, other]), k, abs(value), seed)
    found = Estimate(value, value - half, value + half, n, level, unit, freedom=n - 2)
    return replace(found, tested=(0.0, p)).at_level(level)


def _exchanged(values: Floats, k: int, size: float, seed: int) -> float:
    """How many ways to pick `k` values set them apart from the rest by `size` or more."""
    n = values.size
    if math.comb(n, k) <= _ALL:
        picks = np.array(list(combinations(range(n), k)))
        drawn = 0
    else:
        rng, drawn = np.random.default_rng(seed), 1
        picks = rng.permuted(np.tile(np.arange(n), (_ALL, 1)), axis=1)[:, :k]
    sums = values[picks].sum(axis=1)
    apart = np.abs(sums / k - (values.sum() - sums) / (n - k))
    return float(((apart >= size - 1e-12).sum() + drawn) / (len(picks) + drawn))


def correlation_by_exchange(
    x: ArrayLike, y: ArrayLike, *, level: float = 0.95, resamples: int = 10_000, seed: int = 0,
    unit: str = "languages",
) -> Estimate:  # fmt: skip
    """Spearman's correlation of a few things, whose side is decided by exchanging one list.

    The bounds are of the bootstrap; alone they would be too narrow for a dozen pairs.
    """
    from scipy.stats import rankdata  # here, because it is slow to import

    found = rank_correlation(x, y, resamples=resamples, level=level, seed=seed)
    one, other = (rankdata(side) - (np.size(side) + 1) / 2 for side in (x, y))
    drawn = np.random.default_rng(seed).permuted(np.tile(other, (resamples, 1)), axis=1) @ one
    p = float(((np.abs(drawn) >= abs(float(one @ other)) - 1e-9).sum() + 1) / (resamples + 1))
    return replace(found, unit=unit, tested=(0.0, p)).at_level(level)
