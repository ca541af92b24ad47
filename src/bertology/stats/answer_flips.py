"""Tests of many variants by what gets better and what gets worse: exact, whatever the sizes are.

Without a head a few answers flip. If the head does not change the accuracy, a flip is as often for
the better as for the worse: McNemar's exact test tells how unusual the flips of one head are. To
look at 144 heads costs less than Bonferroni's 144 times, for two reasons: a head with three flips
can never be significant and need not be paid for, and heads that flip the same answers are not
independent tests. `flip_tests` takes both from the data (Westfall and Young's step-down of the
smallest p-value): every example's flips get one random sign, the same in all variants, and the
exact p-values are computed again.

The same tests serve the loss. Its *mean* change cannot be tested over a few hundred examples: most
of them hardly change and one in a hundred changes a lot, so that the mean hangs on a few examples
that a sample may lack. (Simulated on the losses of a real model, max-T tests of means gave false
claims in four of ten sweeps.) Whether more examples get worse than better does not depend on sizes,
and it is seen long before answers flip. `paired.balances` gives that difference of two shares with
bounds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr

from bertology.errors import DataError
from bertology.stats.multiplicity import step_down

Floats = NDArray[np.float64]

_HELD = 500_000  # signs, or p-values, looked at together


def mcnemar(better: ArrayLike, worse: ArrayLike) -> Floats:
    """Two-sided exact p-values of so many flips for the better and for the worse."""
    one, other = np.asarray(better, dtype=np.float64), np.asarray(worse, dtype=np.float64)
    p: Floats = np.minimum(2 * bdtr(np.minimum(one, other), (one + other).astype(np.int64), 0.5), 1)
    return p


def flip_tests(changes: Floats, *, resamples: int = 2000, seed: int = 0) -> tuple[Floats, Floats]:
    """p-values (V,) of each variant alone, and those that hold for all variants together.

    `changes` (V, N): 1 where an answer became right, -1 where it became wrong, 0 elsewhere.
    """
    if changes.ndim != 2 or not np.isin(changes, (-1, 0, 1)).all():
        raise DataError(f"Flips are -1, 0 or 1, variants by examples. Got shape {changes.shape}.")
    flips, net = np.abs(changes).sum(axis=1), changes.sum(axis=1)
    p = mcnemar((flips + net) / 2, (flips - net) / 2)
    flipping = np.flatnonzero(flips)  # the others can never be significant
    adjusted = np.ones_like(p)
    if flipping.size:
        null = _under_random_signs(changes[flipping], resamples=resamples, seed=seed)
        stepped = step_down(-p[flipping], -null)
        adjusted[flipping] = np.maximum(stepped, p[flipping])  # drawn ones may fall below
    return p, adjusted


def _under_random_signs(changes: Floats, *, resamples: int, seed: int) -> Floats:
    """Exact p-values (R, V) where every example's flips are for the better or worse by chance."""
    moved = changes[:, np.abs(changes).any(axis=0)]
    flips, rng = np.abs(moved).sum(axis=1), np.random.default_rng([seed, 3])
    found = np.empty((resamples, len(moved)))
    rows = max(1, _HELD // max(moved.shape))
    for start in range(0, resamples, rows):
        shape = (min(rows, resamples - start), moved.shape[1])
        net = (rng.integers(0, 2, size=shape) * 2.0 - 1.0) @ moved.T
        found[start : start + rows] = mcnemar((flips + net) / 2, (flips - net) / 2)
    return found
