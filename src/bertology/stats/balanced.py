"""Accuracy of choices between two forms, in which a fixed preference is worth nothing.

Each item is a choice between the two forms of one kind ("is" and "are"), of which one is right. A
model that always prefers one of them is right as often as that one happens to be right: with two
singular verbs out of three, "is" everywhere scores 67 %. So both forms of a kind get the same
weight, that of the one which is right less often, and kinds of which only one form is ever right
get none. Then any answer that does not look at the rest of the sentence scores exactly one half.

Items that share something (the noun that the verb agrees with) are not independent: a random model
that happens to like "is" after "author" is right in all sentences about authors. `units` says what
is shared, and intervals are over units, of which each is one value in `rows`: the ratio of two sums
is linearised, so that the mean of a row is the accuracy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Balanced", "balanced_rows", "balancing_weights"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Balanced:
    """A row for each way of scoring the same items, a column for each unit."""

    rows: Floats  # (R, U); NaN for units without a weight
    reach: float  # the weight of the heaviest unit, by that of a mean one
    items: int  # with a weight

    @property
    def support(self) -> tuple[float, float]:
        """Where every value must lie, if single scores lie between 0 and 1."""
        return 1 - self.reach, self.reach

    @property
    def support_of_differences(self) -> tuple[float, float]:
        """The same for differences of two such scores."""
        return 1 - 2 * self.reach, 2 * self.reach - 1


def balancing_weights(kinds: Sequence[str], first: ArrayLike) -> Floats:
    """Of each item (N,): both forms of a kind weigh the same, and no item more than 1.

    `first` says whether the first of the kind's two forms is the right one.
    """
    _, number = np.unique(np.asarray(kinds, dtype=str), return_inverse=True)
    side = np.asarray(first, dtype=np.int64)
    counts = np.zeros((number.max(initial=-1) + 1, 2))
    np.add.at(counts, (number, side), 1)
    least: Floats = counts.min(axis=1)[number]
    return np.divide(least, np.maximum(counts[number, side], 1))


def balanced_rows(scores: Floats, weights: Floats, units: Sequence[str]) -> Balanced:
    """Of scores (R, N): a value for each unit (R, U), in the order of `np.unique(units)`."""
    names, number = np.unique(np.asarray(units, dtype=str), return_inverse=True)
    heavy = np.bincount(number, weights, minlength=len(names))  # (U,)
    there = heavy > 0
    if not there.any():
        return Balanced(np.full((len(scores), len(names)), np.nan), 1.0, 0)
    accuracy = (scores * weights).sum(axis=1) / weights.sum()
    away = np.stack(
        [
            np.bincount(number, weights * (row - mean), minlength=len(names))
            for row, mean in zip(scores, accuracy, strict=True)
        ]
    )
    usual = heavy[there].mean()
    rows = np.where(there, accuracy[:, None] + away / usual, np.nan)
    return Balanced(rows, float(heavy.max() / usual), int((weights > 0).sum()))
