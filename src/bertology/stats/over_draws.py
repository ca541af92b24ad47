"""Something chosen against random draws of the same kind: does it do more than each of them?

Heads, dimensions or weights that were chosen by a rule are set against sets of the same size that
were drawn at random. If the rule meant nothing, the chosen set would be one more draw, and the
largest of draws + 1 sets as often as any other: with 20 draws in 1 of 21 cases. So a rule that is
said to find what matters must beat the *largest* of 20 draws, which errs in less than 5 % whatever
the distribution of the draws is. That counts the chance in which texts were seen, too: all sets are
tried on the same ones. So it is enough to beat every draw there, and a bound over texts need not
say so again. Their mean and spread would not do: one random set in many holds
a part that matters, and a normal law knows nothing of it.

For this the draws must have nothing in common with the chosen set or with each other; see
`studies.geometry.outlier_dimensions.questions`.

The other way round, that the chosen set does *less*, is said only where it surely does less than
the *median* of the draws. The largest of many is above most of them by chance alone, and the mean
is where one draw with a part that matters puts it: above all others, if that part matters much.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from bertology.arrays import Bools, Floats
from bertology.stats.intervals import Estimate, check_level
from bertology.stats.layer_orders import both_above_zero
from bertology.stats.partial_means import partial_means

_ANYWHERE = "positions that are drawn anew in each layer often agree as much"


def enough_draws(draws: int, level: float) -> bool:
    """Whether the largest of so many draws is beaten by one more draw rarely enough."""
    return 1 / (draws + 1) <= 1 - level + 1e-12


def fewest_draws(level: float) -> int:
    """How many draws are enough."""
    return math.ceil(1 / (1 - level) - 1e-9) - 1


def over_draws(
    rows: ArrayLike, *, level: float = 0.95, resamples: int = 2000, seed: int = 0, unit: str = ""
) -> Estimate | None:
    """The median over draws of `rows` (draws, N): chosen less drawn, by draw and example.

    Its lower bound is that of the smallest row, the draw that comes nearest, or just above 0 where
    every draw is beaten; its upper bound is the median of upper bounds that hold for all rows
    together. None with fewer than two examples, or with too few draws for the level.
    """
    given = np.asarray(rows, dtype=np.float64)
    if not enough_draws(len(given), level):
        return None
    means = partial_means(given, level=level, resamples=resamples, seed=seed)
    nearest, known = means.smallest(), np.isfinite(means.simultaneous_high)
    if nearest is None or not known.all():
        return None
    value = float(np.median(means.value))
    high = float(np.median(means.simultaneous_high))
    # More examples do not bring the nearest draw down: what is left between the two stays.
    stays = max(value - nearest.value, 0.0) / max(value - nearest.low, 1e-300)
    found = Estimate(
        value,
        min(nearest.low, value),
        high,
        nearest.n,
        level,
        unit or nearest.unit,
        lasting=min(stays, 1.0),
        remedy="a random draw does about as much, which more examples do not change",
    )
    if not nearest.value > 0:
        return found
    # The test by ranks; to be surer takes more draws, and no number of examples.
    p, remedy = 1 / (len(given) + 1), "it beats every draw, of which more would make it surer"
    return replace(found, tested=(0.0, p), lasting=1.0, remedy=remedy).at_level(level)


def jackknifed(sums: Floats, statistic: Callable[[Floats], Floats], groups: int = 40) -> Floats:
    """Pseudo-values (…, groups) of a statistic of summed rows (N, …), leaving out a group each.

    Their mean is the statistic, corrected for its bias, and their spread tells how sure it is, as
    if they were its values in independent examples (Tukey).
    """
    total = sums.sum(axis=0)
    whole = np.asarray(statistic(total), dtype=np.float64)
    count = min(groups, len(sums))
    of = np.arange(len(sums)) % count
    found = [
        count * whole - (count - 1) * np.asarray(statistic(total - sums[of == g].sum(axis=0)))
        for g in range(count)
    ]
    return np.stack(found, axis=-1)


# Do the marked entries of several rows lie in the same positions?


def shared_positions(
    marked: Bools, *, level: float = 0.95, resamples: int = 1000, seed: int = 0
) -> Estimate | None:
    """The share of a row's marked entries that another row marks too, less that by chance.

    `marked` is (rows, positions); the mean is over all ordered pairs of rows of which the first has
    a mark. Rows are layers, which are counted and not sampled: the number is exact, and surely
    above 0 where positions that are drawn anew in each row seldom agree as much. None where fewer
    than three rows have a mark.
    """
    check_level(level, "shared_positions")
    if (marked.any(axis=1)).sum() < 3:
        return None
    return _beyond_chance(marked, _shared, level=level, resamples=resamples, seed=seed)


def _shared(marked: Bools) -> float:
    counts = marked.sum(axis=1).astype(np.float64)
    both = marked.astype(np.float64) @ marked.T.astype(np.float64)
    having = counts > 0
    share = both[having] / counts[having, None] - counts[None] / marked.shape[1]
    others = ~np.eye(len(marked), dtype=bool)[having]
    return float(share[others].mean()) if others.any() else 0.0


def in_most_rows(
    marked: Bools, *, level: float = 0.95, resamples: int = 1000, seed: int = 0
) -> Estimate:
    """The share of rows that mark the position which most of them mark; exact, as above."""
    check_level(level, "in_most_rows")

    def largest(rows: Bools) -> float:
        return float(rows.mean(axis=0).max())

    return _beyond_chance(marked, largest, level=level, resamples=resamples, seed=seed)


def _beyond_chance(
    marked: Bools, of: Callable[[Bools], float], *, level: float, resamples: int, seed: int
) -> Estimate:
    """What was counted, and whether positions drawn anew in each row seldom give as much."""
    value, rng = of(marked), np.random.default_rng(seed)
    as_large = sum(of(rng.permuted(marked, axis=1)) >= value for _ in range(resamples))
    exact = Estimate(value, value, value, len(marked), level, "layers", counted=True)
    return both_above_zero(exact, (1 + as_large) / (1 + resamples), chance=_ANYWHERE)
