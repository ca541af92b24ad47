"""What is scored over pairs that may share a text: halves, the best of many, the least of some."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from bertology.stats import Estimate
from bertology.stats.rank_agreement import Agreement, PairLinks, rank_agreement

__all__ = [
    "Against",
    "Score",
    "best_of",
    "dealt_texts",
    "halves",
    "least_of",
    "of_ranks",
    "of_shares",
]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Score = Callable[[Floats, Bools], Agreement]
"""Rows of scores (V, N) on some of the pairs."""


def of_ranks(judged: Floats) -> Score:
    """Spearman's correlation with a judgement."""

    def score(rows: Floats, among: Bools) -> Agreement:
        return rank_agreement(rows[:, among], judged[among])

    return score


def of_shares() -> Score:
    """The share of right answers, where rows are 1 or 0."""

    def score(rows: Floats, among: Bools) -> Agreement:
        some = rows[:, among]
        share = some.mean(axis=1)
        return Agreement(share, some - share[:, None])

    return score


def halves(links: PairLinks) -> Bools:
    """Which pairs are in the second half: pairs that share a text are in one, if that can be.

    Where nearly all pairs hang together by their texts, those with the same first text do.
    """
    n, count = len(links.first), int(max(links.first.max(), links.second.max())) + 1
    component = _components(np.stack([links.first, links.second], axis=1), count)
    for groups in (component[links.first], links.first):
        found: Bools = _dealt(groups, 2) == 1
        if 4 * min(found.sum(), n - found.sum()) >= n:
            return found
    odd: Bools = np.arange(n) % 2 == 1
    return odd


def dealt_texts(pairs: Ints, texts: int, folds: int, *, seed: int) -> Ints:
    """A fold (texts,) for each text: both of a pair in one, where few texts hang together."""
    component = _components(pairs, texts)
    if np.bincount(component).max() <= max(2, texts // folds):
        return _dealt(component, folds)
    return np.random.default_rng(seed).permutation(texts) % folds


def _components(pairs: Ints, texts: int) -> Ints:
    """Which texts hang together by pairs, directly or through others."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    edges = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(texts, texts))
    return np.asarray(connected_components(edges, directed=False)[1], np.int64)


def _dealt(groups: Ints, parts: int) -> Ints:
    """Whole groups, the largest first, each to the part that has fewest: the part of each."""
    names, of, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    part, held = np.zeros(len(names), np.int64), np.zeros(parts, np.int64)
    for at in np.argsort(-sizes, kind="stable"):
        part[at] = held.argmin()
        held[part[at]] += sizes[at]
    return part[of]


def best_of(rows: Floats, score: Score, second: Bools) -> tuple[int, Agreement]:
    """The best row on all pairs; as one row, what the best of each half scores on the other."""
    n = rows.shape[1]
    value, influence = 0.0, np.zeros((1, n))
    for half in (second, ~second):
        picked = int(score(rows, ~half).value.argmax())
        own = score(rows[[picked]], half)
        value += float(own.value[0]) * half.sum() / n
        influence[:, half] = own.influence
    everywhere = np.ones(n, bool)
    return int(score(rows, everywhere).value.argmax()), Agreement(np.array([value]), influence)


@dataclass(frozen=True)
class Against:
    """A difference of one row, and by how much it would scatter had other copies been drawn."""

    row: Agreement
    spread: float = 0.0
    freedom: int = 1

    @classmethod
    def copies(cls, own: Agreement, copies: Sequence[Agreement]) -> Against:
        """One row less the mean of what copies with weights of chance give.

        If the model were one more such copy, it would lie as far from their mean as they do from
        each other: pairs of texts cannot tell that, so this scatter is a part of the interval.
        """
        values = np.array([float(one.value[0]) for one in copies])
        mean = Agreement(
            values.mean(keepdims=True), np.mean([one.influence for one in copies], axis=0)
        )
        spread = float(values.std(ddof=1)) * (1 + 1 / len(values)) ** 0.5
        return cls(own - mean, spread, len(values) - 1)

    def estimate(self, links: PairLinks, level: float) -> Estimate:
        """With Student's interval over pairs, and over copies."""
        found = links.estimate(self.row, level=level)
        more = stdtrit(self.freedom, (1 + level) / 2) * self.spread
        half = float(np.hypot(found.high - found.value, more))
        lasting = more / half if half > 0 else 0.0
        return replace(
            found, low=found.value - half, high=found.value + half, lasting=float(lasting)
        )


def least_of(differences: Sequence[Against], links: PairLinks, *, level: float) -> Estimate:
    """The smallest of some differences: all must be above zero for it to be.

    For that each is tested alone; that one of them is below zero needs a correction.
    """
    each = [one.estimate(links, level) for one in differences]
    strict = [one.estimate(links, 1 - (1 - level) / len(differences)) for one in differences]
    value = min(one.value for one in each)
    low, high = min(one.low for one in each), min(one.high for one in strict)
    lasting = min(each, key=lambda one: one.low).lasting
    return replace(each[0], value=value, low=low, high=max(high, value), lasting=lasting)
