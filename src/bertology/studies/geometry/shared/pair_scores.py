"""What is scored over pairs that may share a text: a correlation or a share, and the least of some.

What is picked on some pairs and scored on others is in `pair_turns`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy.special import stdtrit

from bertology.arrays import Bools, Floats, Ints
from bertology.errors import DataError
from bertology.stats import Estimate
from bertology.stats.crossed import joint_freedom
from bertology.stats.least_means import least_estimate
from bertology.stats.rank_agreement import Agreement, PairLinks, rank_agreement, rank_values

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus


# The best of many rows, picked on some pairs and scored on others that share no text with them.
#
# Texts are dealt into two sides, ten times. A pair whose texts lie on one side is scored by what
# is best on the other; where texts that hang together go to one side whole, these are all pairs.
# Pairs with a text on each side wait for another deal. So a word that is in many pairs, and by
# chance suits some layer, never both picks that layer and scores it.


_DEALS, _TRIED = 10, 60
_BOTH = -1  # the side of a text that is in too many pairs to be left out


@dataclass(frozen=True)
class Picked:
    """What is best: on all pairs (`row`), in each turn, and, as one row, what these score."""

    row: int
    rows: Sequence[int]
    told: Agreement


class Turns:
    """Which pairs are scored in a turn, and which the best is picked on."""

    def __init__(self, links: PairLinks, score: Score) -> None:
        self.score, self.size = score, len(links.first)
        self.halves: list[tuple[Bools, Bools]] = []  # scored, picked on
        rng, (first, second, sizes) = np.random.default_rng(0), _groups(links)
        for _ in range(_TRIED):
            side = np.append(_sides(sizes, rng), _BOTH)  # the last is what lies on both
            both = np.stack([side[first], side[second]])
            one, other = (_within(both, number) for number in (0, 1))
            if score.tells(one) and score.tells(other):
                self.halves += [(one, other), (other, one)]
            if len(self.halves) == 2 * _DEALS:
                break
        if not self.halves:
            raise DataError(
                f"The best layer is picked on other pairs than it is scored on, and none of "
                f"{_TRIED} deals gave two groups of pairs that share no text and differ in their "
                f"scores. There are {self.size} pairs.",
                hint="Give more pairs (--limit), of more texts.",
            )

    def picked_on(self, rows: Floats) -> Floats:
        """Values (turns, V) of rows (V, N) on the pairs that something is picked on."""
        return np.stack([self.score.values(rows, of) for _, of in self.halves])

    def best(self, rows: Floats, told: Floats | None = None) -> Picked:
        """The best of rows (V, N); `told` is what `picked_on` gave for them."""
        values = self.picked_on(rows) if told is None else told
        picks = [int(at) for at in values.argmax(axis=1)]
        everywhere = np.ones(self.size, bool)
        best = int(self.score.values(rows, everywhere).argmax())
        return Picked(best, picks, self.scored(rows, picks))

    def scored(self, rows: Floats, picks: Sequence[int]) -> Agreement:
        """What a row for each turn scores there, as one row: the mean over deals."""
        deals = len(self.halves) // 2
        value, influence, shares = 0.0, np.zeros((1, deals, self.size)), False
        for at, (pick, (half, other)) in enumerate(zip(picks, self.halves, strict=True)):
            own = self.score(rows[[pick]], half)
            size = int(half.sum() + other.sum())
            value += float(own.value[0]) * half.sum() / size / deals
            influence[:, at // 2, half] = own.influence * self.size / size
            shares = own.shares
        return Agreement(np.array([value]), influence, shares)

    def fixed(self, row: Floats) -> Agreement:
        """One row (N,) on the same pairs as what is picked is scored on."""
        return self.scored(row[None], [0] * len(self.halves))

    def answers(self, rows: Floats, picks: Sequence[int]) -> Floats:
        """The scores (N,) of each pair by what was picked for it; NaN where it had no turn."""
        total, turns = np.zeros(self.size), np.zeros(self.size)
        for pick, (half, _) in zip(picks, self.halves, strict=True):
            total[half] += rows[pick, half]
            turns[half] += 1
        found: Floats = np.where(turns > 0, total / np.maximum(turns, 1), np.nan)
        return found


def _groups(links: PairLinks) -> tuple[Ints, Ints, Ints]:
    """What goes to one side whole: a number for both texts of each pair, and how many pairs it has.

    These are texts that hang together by pairs; where that is most of them, single texts, and -1
    for one that is in more than a quarter of all pairs.
    """
    n, count = len(links.first), int(max(links.first.max(), links.second.max())) + 1
    groups = components(np.stack([links.first, links.second], axis=1), count)
    sizes = np.bincount(groups[links.first], minlength=int(groups.max()) + 1)
    if 2 * sizes.max() > n:
        other = links.second[links.first != links.second]
        sizes = np.bincount(np.concatenate([links.first, other]), minlength=count)
        groups = np.where(4 * sizes > n, _BOTH, np.arange(count))
    return groups[links.first], groups[links.second], sizes


def _sides(sizes: Ints, rng: np.random.Generator) -> Ints:
    """Groups in random order, each to the side that has fewer pairs."""
    side, held = np.zeros(len(sizes), np.int64), [0, 0]
    for at in rng.permutation(len(sizes)):
        side[at] = rng.integers(2) if held[0] == held[1] else held[1] < held[0]
        held[side[at]] += int(sizes[at])
    return side


def _within(both: Ints, side: int) -> Bools:
    """Pairs whose texts lie on one side, or one of them on both."""
    found: Bools = ((both == side) | (both == _BOTH)).all(axis=0) & (both == side).any(axis=0)
    return found


def dealt_texts(pairs: Ints, texts: int, folds: int, *, seed: int) -> Ints:
    """A fold (texts,) for each text: both of a pair in one, where few texts hang together."""
    component = components(pairs, texts)
    if np.bincount(component).max() <= max(2, texts // folds):
        return _dealt(component, folds)
    return np.random.default_rng(seed).permutation(texts) % folds


def components(pairs: Ints, texts: int) -> Ints:
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


def other_corpus(corpus: Corpus, name: str, *, split: str, limit: int, seed: int) -> Corpus:
    """Another corpus by name, from the same folder of downloaded data."""
    from bertology.data.loading import load_corpus

    root = corpus.origin.get("root")
    return load_corpus(name, split=split, limit=limit, seed=seed, root=root)


_FEWEST = 5  # pairs, and pairs with another score than the most frequent one


class Score(Protocol):
    """Rows of scores (V, N) on some of the pairs."""

    def __call__(self, rows: Floats, among: Bools) -> Agreement:
        """Values and influences."""
        ...

    def values(self, rows: Floats, among: Bools) -> Floats:
        """Values (V,) alone, which takes less time."""
        ...

    def tells(self, among: Bools) -> bool:
        """Whether these pairs can be scored at all."""
        ...


@dataclass(frozen=True)
class Ranks:
    """Spearman's correlation with a judgement."""

    judged: Floats

    def __call__(self, rows: Floats, among: Bools) -> Agreement:
        """Values and influences."""
        return rank_agreement(rows[:, among], self.judged[among])

    def values(self, rows: Floats, among: Bools) -> Floats:
        """Values alone."""
        return rank_values(rows[:, among], self.judged[among])

    def tells(self, among: Bools) -> bool:
        """There are some pairs, and not all have the same judgement."""
        some = self.judged[among]
        return len(some) >= _FEWEST and bool((some != some[0]).any())


@dataclass(frozen=True)
class Shares:
    """The share of right answers, where rows are 1 or 0."""

    def __call__(self, rows: Floats, among: Bools) -> Agreement:
        """Values and influences."""
        some = rows[:, among]
        share = some.mean(axis=1)
        return Agreement(share, some - share[:, None], shares=True)

    def values(self, rows: Floats, among: Bools) -> Floats:
        """Values alone."""
        found: Floats = rows[:, among].mean(axis=1)
        return found

    def tells(self, among: Bools) -> bool:
        """There are some questions."""
        return int(among.sum()) >= _FEWEST


def check_judged(judged: Sequence[object] | Floats, name: str) -> None:
    """Refuse judgements that are no numbers, or nearly all the same: then there is no order.

    An interval around such a correlation would be as narrow as if everything were known.
    """
    if any(not isinstance(one, Real) or not np.isfinite(float(one)) for one in judged):
        raise DataError(
            f"Some pairs of {name!r} have no number as their label.",
            hint="Another split may have scores (--split).",
        )
    values, counts = np.unique(np.asarray(judged, np.float64), return_counts=True)
    if len(judged) - counts.max() < _FEWEST:
        raise DataError(
            f"Of {len(judged)} pairs of {name!r}, all but {len(judged) - counts.max()} have the "
            f"score {values[counts.argmax()]:g}; {_FEWEST} with another are needed.",
            hint="Give more pairs (--limit), or another split (--split).",
        )


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
        influence = np.mean([one.influence for one in copies], axis=0)
        mean = Agreement(values.mean(keepdims=True), influence, own.shares)
        spread = float(values.std(ddof=1)) * (1 + 1 / len(values)) ** 0.5
        return cls(own - mean, spread, len(values) - 1)

    def estimate(self, links: PairLinks, level: float) -> Estimate:
        """With Student's interval over pairs, and over copies."""
        found = links.estimate(self.row, level=level)
        over_pairs = found.high - found.value
        more = float(stdtrit(self.freedom, (1 + level) / 2)) * self.spread
        half = float(np.hypot(over_pairs, more))
        return replace(
            found,
            low=found.value - half,
            high=found.value + half,
            lasting=more / half if half > 0 else 0.0,
            freedom=joint_freedom((more, self.freedom), (over_pairs, links.freedom), level),
        )


def least_of(differences: Sequence[Against], links: PairLinks, *, level: float) -> Estimate:
    """The smallest of some differences: all must be above zero for it to be."""
    return least_estimate(lambda at: [one.estimate(links, at) for one in differences], level=level)


def rests_on(found: Estimate) -> str:
    """The end of an answer that tells several gains, where a claim rests on the first of them."""
    side = "not surely other than zero"
    if found.low > 0:
        side = "surely above zero"
    if found.high < 0:
        side = "surely below zero"
    beyond = "not surely" if found.missed else "surely"
    controls = " and ".join(name for name, _ in found.controls)
    return (
        f"The first gain, which the claim rests on, is {side}, and there is {beyond} one over "
        f"{controls}"
    )
