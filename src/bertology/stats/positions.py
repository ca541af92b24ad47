"""Do the marked entries of several rows lie in the same positions?"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from bertology.stats.intervals import Estimate, check_level

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def shared_positions(
    marked: Bools, *, level: float = 0.95, resamples: int = 1000, seed: int = 0
) -> Estimate | None:
    """The share of a row's marked entries that another row marks too, less that by chance.

    `marked` is (rows, positions); the mean is over all ordered pairs of rows of which the first has
    a mark. Rows are what is sampled (jackknife), and the order of positions is drawn anew in each
    row for a test: the interval lies above 0 only where both say so. None where fewer than three
    rows have a mark.
    """
    check_level(level, "shared_positions")
    rows = len(marked)
    if (marked.any(axis=1)).sum() < 3:
        return None
    value = _shared(marked)
    left_out = np.array([_shared(np.delete(marked, r, axis=0)) for r in range(rows)])
    spread = math.sqrt((rows - 1) / rows * float(((left_out - left_out.mean()) ** 2).sum()))
    half = float(stdtrit(rows - 1, (1 + level) / 2)) * spread
    rng = np.random.default_rng(seed)
    drawn = [_shared(rng.permuted(marked, axis=1)) for _ in range(resamples)]
    p = (1 + sum(d >= value for d in drawn)) / (1 + resamples)
    low = value - half if p < (1 - level) / 2 else min(value - half, 0.0)
    return Estimate(value, low, value + half, rows, level, "layers")


def _shared(marked: Bools) -> float:
    counts = marked.sum(axis=1).astype(np.float64)
    both = marked.astype(np.float64) @ marked.T.astype(np.float64)
    having = counts > 0
    share = both[having] / counts[having, None] - counts[None] / marked.shape[1]
    others = ~np.eye(len(marked), dtype=bool)[having]
    return float(share[others].mean()) if others.any() else 0.0


def in_most_rows(marked: Bools, far: Floats, *, level: float = 0.95) -> Estimate:
    """The share of rows that mark the leading position, which is picked on the other rows.

    The leading position of the rows of even number is looked up in those of odd number, and the
    other way round: picked on the rows that it is scored on, the best of many would be flattered.
    It is the one with most marks; of equals the one that `far` (rows, positions) puts farthest.
    The interval is Clopper and Pearson's.
    """
    from scipy.stats import beta

    check_level(level, "in_most_rows")
    rows, hits = len(marked), 0
    for half in (0, 1):
        picked, scored = marked[half::2], marked[1 - half :: 2]
        if not picked.size or not picked.any():
            continue
        score = picked.sum(axis=0) + far[half::2].mean(axis=0) / (1 + far.max())
        hits += int(scored[:, int(score.argmax())].sum())
    tail = (1 - level) / 2
    low = float(beta.ppf(tail, hits, rows - hits + 1)) if hits else 0.0
    high = float(beta.ppf(1 - tail, hits + 1, rows - hits)) if hits < rows else 1.0
    return Estimate(hits / rows, low, high, rows, level, "layers")
