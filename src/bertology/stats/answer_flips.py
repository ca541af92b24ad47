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

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr, bdtrc, betaincinv, xlogy

from bertology.arrays import Floats
from bertology.errors import DataError
from bertology.stats.multiplicity import step_down

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


# Is a loss of accuracy surely smaller than a margin? Exact, from the answers that flip.
#
# Of n answers some turn right and some turn wrong. The loss is the difference of the two shares;
# how many flip at all is not asked, but decides how sure the difference is. So the test is
# unconditional: samples are ordered by their likelihood ratio (Lloyd and Moldovan 2008), and the
# p-value is the largest chance, over all shares of flips, of a sample that speaks as clearly for a
# smaller loss as the one that was seen. Shares that the sample itself all but excludes are left
# out, and the chance of that is added (Berger and Boos 1994). Unlike a test by the normal law it is
# right where no answer flips, and unlike bounds of Chernoff's kind it wastes nothing where many do:
# with ten flips each way among a thousand answers and a margin of one point, p is 0.02 where theirs
# is 0.09.

_LEFT_OUT = 1e-5  # the chance that the true share of flips is not among those looked at
_SHARES = 20  # shares of flips that are looked at, and again about the worst of them
_FAR = 7.0  # standard deviations; what lies farther out is added as if it spoke against us
_HALVINGS = 34


def small_loss_p(
    worse: NDArray[np.int64], better: NDArray[np.int64], n: int, loss: float
) -> Floats:
    """One-sided p-values (V,) against a true loss of `loss` or more.

    `worse` and `better` (V,) count the answers of n that turned wrong, and right. A negative `loss`
    is a gain: whether the loss is surely larger than x is asked with both counts exchanged and -x.
    """
    pairs, at = np.unique(np.stack([worse, better]), axis=1, return_inverse=True)
    found = np.array([_p(int(w), int(b), n, loss) for w, b in pairs.T])
    return found[at.ravel()]


@lru_cache(1 << 14)  # heads of one sweep, and sweeps of one corpus, often flip as many answers
def _p(worse: int, better: int, n: int, loss: float) -> float:
    seen = float(_root(np.array(worse), np.array(better), n, loss))
    if seen <= 0:
        return 1.0
    tail, fewest = _LEFT_OUT / 2, max(0.0, -loss)
    lowest = betaincinv(better, n - better + 1, tail) if better else 0.0
    highest = betaincinv(better + 1, n - better, 1 - tail) if better < n else 1.0
    highest = min(highest, max((1 - loss) / 2, 0.0), 1.0)
    lowest = min(max(lowest, fewest), highest)
    spread = _FAR * np.sqrt(n * highest) + _FAR
    first, last = max(0, int(n * lowest - spread)), min(n, int(n * highest + spread))
    turned_right = np.arange(first, last + 1)
    most = _most_wrong(turned_right, n, loss, seen)
    # Even on the scale of roots, on which the chance changes evenly; then about the worst of these.
    roots = np.linspace(np.sqrt(lowest), np.sqrt(highest), _SHARES)
    chances = _as_clear(roots**2, turned_right, most, n, loss)
    at = int(chances.argmax())
    near = np.linspace(roots[max(at - 1, 0)], roots[min(at + 1, _SHARES - 1)], _SHARES)
    worst = max(chances.max(), _as_clear(near**2, turned_right, most, n, loss).max())
    return float(min(1.0, worst + _LEFT_OUT))


def _as_clear(
    shares: Floats, better: NDArray[np.int64], most: NDArray[np.int64], n: int, loss: float
) -> Floats:
    """The chance of at most so many answers turned wrong, if these shares turn right."""
    q = shares[:, None]
    chance = bdtr(better, n, q) - np.where(better > 0, bdtr(np.maximum(better - 1, 0), n, q), 0.0)
    wrong = np.clip((shares + loss) / np.maximum(1 - shares, 1e-300), 0.0, 1.0)[:, None]
    below = np.where(most >= 0, bdtr(np.maximum(most, 0), n - better, wrong), 0.0)
    outside = bdtrc(better[-1], n, shares) + (bdtr(better[0] - 1, n, shares) if better[0] else 0.0)
    found: Floats = (chance * below).sum(axis=1) + outside
    return found


def _most_wrong(better: NDArray[np.int64], n: int, loss: float, seen: float) -> NDArray[np.int64]:
    """With so many answers turned right, the most turned wrong that speak as clearly; -1: none."""
    low, high = np.full(better.shape, -1), n - better
    for _ in range(_HALVINGS):
        if (low >= high).all():
            break
        middle = (low + high + 1) // 2
        clear = _root(middle, better, n, loss) >= seen * (1 - 1e-9)
        low, high = np.where(clear, middle, low), np.where(clear, high, middle - 1)
    return low


def _root(worse: NDArray[np.int64], better: NDArray[np.int64], n: int, loss: float) -> Floats:
    """The signed root of the likelihood ratio: positive where the loss is smaller than `loss`."""
    b = (2 * n - worse + better) * loss - worse - better
    c = -better * loss * (1 - loss)
    # The likeliest shares with just this loss (Tango 1998), and those that were seen.
    right = np.maximum((np.sqrt(np.maximum(b * b - 8 * n * c, 0.0)) - b) / (4 * n), 0.0)
    wrong = np.maximum(right + loss, 0.0)
    still = n - worse - better
    ratio = (
        _likelihood(worse, wrong, n)
        + _likelihood(better, right, n)
        + _likelihood(still, np.maximum(1 - wrong - right, 0.0), n)
    )
    found: Floats = np.sign(n * loss - worse + better) * np.sqrt(np.maximum(2 * ratio, 0.0))
    return found


def _likelihood(seen: NDArray[np.int64], share: Floats, n: int) -> Floats:
    """So many times the log of how much likelier they are at the share that was seen."""
    found: Floats = xlogy(seen, seen / n) - xlogy(seen, share)
    return found


# How many answers stay as they were, beyond those that would agree anyway.
#
# Each item is answered twice: as it is, and changed. Who gives the same answer to everything, or a
# few answers to most things, gives it twice without having looked. So the share of answers that
# stay is set between the share in which the answer to one item agrees with that to another, changed
# one, and all of them: 0 is what unrelated items have in common, 1 is no change at all. That is
# Cohen's kappa of the two series of answers, an item's agreement with itself left out of what is
# expected.


@dataclass(frozen=True)
class KeptAnswers:
    """Shares of answers that stay; `values` are one number for each item, whose mean is `kept`."""

    same: Floats  # (N,) of each item, over the draws of its change
    unrelated: float  # the share of two different items that agree
    kept: float  # NaN where nearly all agree
    values: Floats  # (N,) linearised: the ratio's own value and what each item adds to it
    support: tuple[float, float]  # where every one of the values must lie


def kept_answers(before: ArrayLike, after: ArrayLike, *, least: float = 0.1) -> KeptAnswers | None:
    """`before` (N,) and `after` (N, D) are answers, those of D draws of a change; NaN: not drawn.

    None with fewer than two items. Where fewer than `least` of unrelated answers differ, nothing
    can be said to be kept.
    """
    one, other = np.asarray(before, np.float64), np.asarray(after, np.float64)
    drawn = np.isfinite(other)
    there = drawn.any(axis=1) & np.isfinite(one)
    one, other, drawn = one[there], other[there], drawn[there]
    n = len(one)
    if n < 2:
        return None
    weight = drawn / drawn.sum(axis=1, keepdims=True)  # (N, D), every item weighs the same
    same = ((one[:, None] == other) * weight).sum(axis=1)
    names, at = np.unique(np.concatenate([one, other[drawn]]), return_inverse=True)
    p = np.bincount(at[:n], minlength=len(names)) / n
    q = np.bincount(at[n:], weight[drawn], minlength=len(names)) / n
    mine = q[at[:n]]  # how often changed items get this item's answer
    theirs = np.zeros(other.shape)
    theirs[drawn] = p[at[n:]]
    theirs_mean = (theirs * weight).sum(axis=1)
    together = float(p @ q)
    unrelated = float(np.clip((n * together - same.mean()) / (n - 1), 0, 1))
    if 1 - unrelated < least:
        return KeptAnswers(same, unrelated, np.nan, np.full(n, np.nan), (np.nan, np.nan))
    kept = (same.mean() - unrelated) / (1 - unrelated)
    by_chance = mine + theirs_mean
    values = kept + ((same - same.mean()) - (1 - kept) * (by_chance - 2 * together)) / (
        1 - unrelated
    )
    most = (1 - kept) * (float(q.max() + p.max()) - 2 * together)
    low = kept - (same.mean() + most) / (1 - unrelated)
    high = kept + (1 - same.mean() + 2 * (1 - kept) * together) / (1 - unrelated)
    return KeptAnswers(same, unrelated, float(kept), values, (float(low), float(high)))
