"""Do repeated prunings keep the same things, beyond chance?

A row of truth values for each run (seed): which things survived. Runs are what varies, the things
(all heads of a model, say) are the same ones every time; so intervals are over runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtrc, chdtri, stdtrit

from bertology.arrays import Floats
from bertology.stats.intervals import Estimate, check_level

Truths = NDArray[np.bool_]
Places = NDArray[np.intp]
_BATCH = 200  # permutations at a time


@dataclass(frozen=True)
class Overlap:
    """How far two sets of survivors are the same."""

    jaccard: float
    """The share of what is in either that is in both."""
    chance: float
    """What it would be if two sets of these sizes were drawn at random."""
    kappa: float
    """Agreement beyond chance (Cohen's κ): 0 as by chance, 1 the same survivors."""


def overlap(one: NDArray[np.uint8], other: NDArray[np.uint8], size: int) -> Overlap:
    """Of two masks as packed bits, over `size` things; unused bits are 0."""
    a, b, both = (
        int(np.bitwise_count(bits).sum(dtype=np.int64)) for bits in (one, other, one & other)
    )
    expected = a * b / size
    either, by_chance = a + b - both, a + b - expected
    apart = (a + b - 2 * expected) / size
    return Overlap(
        both / either if either else math.nan,
        expected / by_chance if by_chance else math.nan,
        1 - (a + b - 2 * both) / size / apart if apart else math.nan,
    )


def bits_at_step(planes: Sequence[NDArray[np.uint8]], step: int) -> NDArray[np.uint8]:
    """The packed mask of a step of a pruning, the first or a later one.

    `planes` are the bits, the lowest first, of the last step that each thing was left in; those are
    kept whose number is at least `step`, and nothing is unpacked to find them.
    """
    above, same = np.zeros_like(planes[0]), np.full_like(planes[0], 255)
    if step >> len(planes):
        return above  # it has more bits than any number
    for at in reversed(range(len(planes))):
        if step >> at & 1:
            same = same & planes[at]
        else:
            above = above | (same & planes[at])
            same = same & ~planes[at]
    return above | same


def fleiss_kappa(
    survived: ArrayLike, level: float = 0.95, *, strata: ArrayLike | None = None
) -> Estimate:
    """Fleiss' κ (1971) of runs × things, with an interval over runs; NaN where it is not defined.

    Runs are the raters: κ is 1 where all keep the same things, 0 where they agree as often as runs
    that keep as many at random. The interval is Student's around the jackknife, which leaves out
    one run at a time. With two runs, or where nothing (or everything) survived, there is none.

    With `strata`, a number for each thing (the layer of a head, say), chance is that of two runs
    that keep, at random, as many in each stratum as these do: runs that agree on layers and on
    nothing else have 0.
    """
    check_level(level, "fleiss_kappa")
    x = np.asarray(survived, dtype=bool)
    runs = len(x)
    groups = None if strata is None else _groups(strata, x.shape[1])

    def found(of: Truths) -> float:
        return _kappa(of) if groups is None else _kappa_within(of, groups)

    value = found(x)
    if runs < 3 or math.isnan(value):
        return Estimate(value, math.nan, math.nan, runs, level, unit="seeds")
    left = np.array([found(np.delete(x, run, axis=0)) for run in range(runs)])
    return jackknifed(value, left, level)


def jackknifed_pairs(between: ArrayLike, level: float = 0.95) -> Estimate:
    """The mean of a number of every two runs (runs × runs), with an interval over runs."""
    check_level(level, "jackknifed_pairs")
    x = np.asarray(between, dtype=np.float64)
    runs = len(x)
    above = np.triu_indices(runs, 1)
    value = float(x[above].mean()) if runs > 1 else math.nan
    if runs < 3 or not np.isfinite(x[above]).all():
        return Estimate(value, math.nan, math.nan, runs, level, unit="seeds")
    fewer = np.triu_indices(runs - 1, 1)
    left = [np.delete(np.delete(x, run, 0), run, 1)[fewer].mean() for run in range(runs)]
    return jackknifed(value, np.array(left), level)


def jackknifed(value: float, left: Floats, level: float) -> Estimate:
    """With what is found when one run is left out."""
    runs = len(left)
    error = float(np.std(left, ddof=1) * (runs - 1) / math.sqrt(runs))
    # Runs that agree on everything have no spread; that tells how few they are, not how sure.
    if not math.isfinite(error) or error <= 1e-12:
        return Estimate(value, math.nan, math.nan, runs, level, unit="seeds")
    half = float(stdtrit(runs - 1, (1 + level) / 2)) * error
    low, high = max(value - half, -1.0), min(value + half, 1.0)
    return Estimate(value, low, high, runs, level, unit="seeds")


def _kappa(x: Truths) -> float:
    runs, things = x.shape
    if runs < 2 or not things:
        return math.nan
    kept = x.sum(0)
    pairs = runs * (runs - 1)
    same = float((kept * (kept - 1) + (runs - kept) * (runs - kept - 1)).mean() / pairs)
    share = float(x.mean())
    by_chance = share**2 + (1 - share) ** 2
    return math.nan if by_chance >= 1 else (same - by_chance) / (1 - by_chance)


def _kappa_within(x: Truths, groups: list[Places]) -> float:
    """Agreement of every two runs beyond that of their counts in each group, of all that can be."""
    runs = len(x)
    if runs < 2:
        return math.nan
    beyond = possible = 0.0
    for columns in groups:
        own = x[:, columns]
        kept, shares = own.sum(0), own.mean(1)
        pairs = runs * (runs - 1)
        same = float((kept * (kept - 1) + (runs - kept) * (runs - kept - 1)).mean() / pairs)
        both = (shares.sum() ** 2 - (shares**2).sum()) / pairs  # mean product of two runs' shares
        by_chance = 1 - 2 * float(shares.mean()) + 2 * float(both)
        beyond += len(columns) * (same - by_chance)
        possible += len(columns) * (1 - by_chance)
    return beyond / possible if possible > 1e-12 else math.nan


def _groups(strata: ArrayLike, things: int) -> list[Places]:
    """The columns of each stratum."""
    named = np.asarray(strata).ravel()
    assert len(named) == things
    return [np.flatnonzero(named == one) for one in np.unique(named)]


@dataclass(frozen=True)
class SurvivalTest:
    """Cochran's Q: do some things survive more often than others?"""

    q: float
    freedom: int
    p_asymptotic: float
    """By the χ² distribution, which needs many runs."""
    p: float
    """By random orders of the things in each run, which is exact with any number of them."""


def cochrans_q(
    survived: ArrayLike,
    *,
    strata: ArrayLike | None = None,
    permutations: int = 1999,
    seed: int = 0,
) -> SurvivalTest | None:
    """Cochran's test (1950) of runs × things; None where no run kept some and removed others.

    With `strata`, a number for each thing, Q is the sum of those of the strata, and random orders
    are within them: whether things of one stratum survive more often than others of the same.
    """
    x = np.asarray(survived, dtype=bool)
    things = x.shape[1]
    q, freedom, weighted = 0.0, 0, []
    for columns in _groups(np.zeros(things) if strata is None else strata, things):
        own = x[:, columns]
        rows, size = own.sum(1), len(columns)
        below = float((rows * (size - rows)).sum())
        if not below:
            continue
        weight = size * (size - 1) / below
        q += weight * (_squares(own[None])[0] - float(rows.sum()) ** 2 / size)
        freedom += size - 1
        weighted.append((own, weight))
    if not weighted:
        return None
    observed = sum(w * float(_squares(own[None])[0]) for own, w in weighted)
    rng, reached, drawn = np.random.default_rng(seed), 0, 0
    while drawn < permutations:
        size = min(_BATCH, permutations - drawn)
        found = np.zeros(size)
        for own, weight in weighted:
            mixed = rng.permuted(np.broadcast_to(own, (size, *own.shape)), axis=2)
            found += weight * _squares(mixed)
        reached += int(np.count_nonzero(found >= observed * (1 - 1e-12)))
        drawn += size
    p = (1 + reached) / (1 + permutations)
    return SurvivalTest(q, freedom, float(chdtrc(freedom, q)), p)


def _squares(x: Truths) -> NDArray[np.int64]:
    found: NDArray[np.int64] = (x.sum(1, dtype=np.int64) ** 2).sum(-1)
    return found


def spread_over_runs(values: ArrayLike, level: float = 0.95) -> Estimate:
    """The standard deviation over runs (rows) of several numbers (columns), their root mean square.

    The interval is the χ² one of a single number: as though all of them rose and fell together
    from run to run, which they may, and then many are worth no more than one.
    """
    check_level(level, "spread_over_runs")
    x = np.asarray(values, dtype=np.float64)
    runs = len(x)
    if runs < 2 or not x.size or not np.isfinite(x).all():
        return Estimate(math.nan, math.nan, math.nan, runs, level, unit="seeds")
    found = float(np.sqrt(np.var(x, axis=0, ddof=1).mean()))
    if found <= 0:
        return Estimate(found, math.nan, math.nan, runs, level, unit="seeds")
    tail = (1 - level) / 2
    low, high = (
        found * math.sqrt((runs - 1) / float(chdtri(runs - 1, p))) for p in (tail, 1 - tail)
    )
    return Estimate(found, low, high, runs, level, unit="seeds")


def pairs_of(runs: int) -> list[tuple[int, int]]:
    """Every two different runs."""
    return list(combinations(range(runs), 2))
