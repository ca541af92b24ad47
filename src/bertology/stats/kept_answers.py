"""How many answers stay as they were, beyond those that would agree anyway.

Each item is answered twice: as it is, and changed. Who gives the same answer to everything, or a
few answers to most things, gives it twice without having looked. So the share of answers that stay
is set between the share in which the answer to one item agrees with that to another, changed one,
and all of them: 0 is what unrelated items have in common, 1 is no change at all. That is Cohen's
kappa of the two series of answers, an item's agreement with itself left out of what is expected.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


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
