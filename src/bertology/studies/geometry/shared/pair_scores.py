"""What is scored over pairs that may share a text: a correlation or a share, and the least of some.

What is picked on some pairs and scored on others is in `pair_turns`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from bertology.errors import DataError
from bertology.stats import Estimate
from bertology.stats.crossed import joint_freedom
from bertology.stats.rank_agreement import Agreement, PairLinks, rank_agreement, rank_values

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
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
    """The smallest of some differences: all must be above zero for it to be.

    For that each is tested alone; that one of them is below zero needs a correction.
    """
    each = [one.estimate(links, level) for one in differences]
    strict = [one.estimate(links, 1 - (1 - level) / len(differences)) for one in differences]
    value = min(one.value for one in each)
    low, high = min(one.low for one in each), min(one.high for one in strict)
    return replace(
        each[0],
        value=value,
        low=low,
        high=max(high, value),
        lasting=min(each, key=lambda one: one.low).lasting,
        freedom=min(one.freedom or np.inf for one in each),  # at another level none is too narrow
    )


def smaller_gain(found: Estimate) -> str:
    """The end of an answer that tells several gains, where a claim rests on one."""
    side = "not surely other than zero"
    if found.low > 0:
        side = "surely above zero"
    if found.high < 0:
        side = "surely below zero"
    return f"The smaller gain, which the claim rests on, is {side}"
