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
from numpy.typing import NDArray

Floats = NDArray[np.float64]
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
