"""One number that sets two sides against each other: two means, two maxima, two groups."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from bertology.stats.intervals import Estimate, check_level
from bertology.stats.partial_means import PartialMeans

_FEWEST = 10  # values a side


def difference_within(
    values: ArrayLike,
    first: ArrayLike,
    groups: ArrayLike,
    level: float = 0.95,
    unit: str = "examples",
    clusters: ArrayLike | None = None,
) -> Estimate | None:
    """The mean of the values that `first` marks less that of the others, within each group.

    Groups that have both count, each by how well it tells the two apart, so that what differs from
    group to group is not taken for a difference. The interval is Student's with errors that may
    differ in size (White 1980), and may go together within `clusters`, which then are counted
    (Liang and Zeger 1986). None where fewer than ten values a side, or two clusters, are left.
    """
    check_level(level, "difference_within")
    y, x = np.asarray(values, dtype=np.float64).ravel(), np.asarray(first, dtype=np.float64).ravel()
    _, group = np.unique(np.asarray(groups).ravel(), return_inverse=True)
    sizes = np.bincount(group)
    shares = np.bincount(group, weights=x) / sizes
    kept = ((shares > 0) & (shares < 1))[group]
    if min(x[kept].sum(), (1 - x[kept]).sum()) < _FEWEST:
        return None
    n = int(kept.sum())
    left = n - len(np.unique(group[kept])) - 1
    _, cluster = np.unique(
        np.arange(n) if clusters is None else np.ravel(clusters)[kept], return_inverse=True
    )
    count = int(cluster.max()) + 1
    if min(left, count) < 2:
        return None
    x, y = (v[kept] - (np.bincount(group, weights=v) / sizes)[group[kept]] for v in (x, y))
    weight = float((x**2).sum())
    value = float((x * y).sum()) / weight
    sums = np.bincount(cluster, weights=x * (y - value * x))
    few = 1.0 if clusters is None else count / (count - 1)
    spread = np.sqrt(float((sums**2).sum()) * few * n / left) / weight
    freedom = left if clusters is None else min(left, count - 1)
    half = stdtrit(freedom, (1 + level) / 2) * spread
    return Estimate(value, value - half, value + half, count, level, unit, freedom=freedom)


def ratio_of_means(top: ArrayLike, bottom: ArrayLike, level: float = 0.95) -> Estimate | None:
    """mean(top) / mean(bottom) over the same examples, with the delta method's interval.

    Examples that lack either (NaN) are left out; None where fewer than two are left.
    """
    a, b = (np.asarray(v, dtype=np.float64).ravel() for v in (top, bottom))
    there = np.isfinite(a) & np.isfinite(b)
    a, b = a[there], b[there]
    if a.size < 2 or b.mean() <= 0:
        return None
    ratio = a.mean() / b.mean()
    influence = (a - ratio * b) / b.mean()
    half = stdtrit(a.size - 1, (1 + level) / 2) * influence.std(ddof=1) / np.sqrt(a.size)
    return Estimate(ratio, ratio - half, ratio + half, a.size, level)


def ratio_of_largest(
    means: PartialMeans, top: NDArray[np.bool_], bottom: NDArray[np.bool_]
) -> Estimate | None:
    """The largest mean that `top` marks over the largest that `bottom` marks.

    Its bounds come from the simultaneous ones, so picking both maxima after looking is allowed.
    """
    known = np.isfinite(means.simultaneous_low)
    top, bottom = top & known, bottom & known
    if not top.any() or not bottom.any():
        return None
    n = min(int(means.n[side][means.value[side].argmax()]) for side in (top, bottom))
    rows = (means.value, means.simultaneous_low, means.simultaneous_high)
    (above, above_low, above_high), (below, below_low, below_high) = (
        [float(row[side].max()) for row in rows] for side in (top, bottom)
    )
    if below <= 0:
        return None
    low = max(above_low, 0.0) / below_high
    high = above_high / below_low if below_low > 0 else np.inf
    return Estimate(above / below, low, high, n, means.level)


def group_contrast(
    effects: NDArray[np.float64],
    group: NDArray[np.bool_],
    covariance: NDArray[np.float64],
    *,
    n: int,
    resamples: int = 10_000,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[Estimate, float]:
    """The mean effect in a group less that outside of it, and its two-sided p-value.

    `covariance` (V, V) is that of the effects over the `n` examples. There are two sources of
    error. Which examples: an example moves many effects at once, so effects are not independent.
    Which members: a group of the same size, drawn at random, differs from the rest too. A draw of
    the null has one of each; the interval holds the shifts that such draws would not contradict.
    """
    check_level(level, "group_contrast")
    rng, size = np.random.default_rng(seed), int(group.sum())
    drawn = rng.permuted(np.tile(effects, (resamples, 1)), axis=1)
    null = drawn[:, :size].mean(axis=1) - drawn[:, size:].mean(axis=1)
    weights = np.where(group, 1 / size, -1 / (group.size - size))
    error = np.sqrt(max(float(weights @ covariance @ weights), 0.0))
    null = null + error * rng.standard_t(max(n - 1, 1), size=resamples)
    value = float(weights @ effects)
    tail = (1 - level) / 2
    low, high = np.quantile(null, [tail, 1 - tail])
    as_large = np.abs(null) >= abs(value) * (1 - 1e-9)  # equal sums may differ by rounding
    p = float((1 + as_large.sum()) / (1 + resamples))
    return Estimate(value, value - high, value - low, n, level), p
