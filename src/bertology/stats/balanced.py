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

`balanced_means` gives bounds of accuracies. Which accuracies could there be? Those for which the
mean over units of weight times (share - accuracy) may be zero, and each of these values has bounds
that are known: a unit of weight h cannot be more than h times the accuracy below it. Bounds of the
linearised values alone would have to allow for twice as much, and were wider by a third on average
where units weigh differently (`benchmarks/balanced_bounds.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr

from bertology.arrays import Floats
from bertology.stats.intervals import Estimate, evidence_against_zero
from bertology.stats.multiplicity import max_statistics
from bertology.stats.partial_means import PartialMeans
from bertology.stats.signed_roots import SignedRoots, ends_are_seen

_ROUNDS, _STILL, _LIGHT = 1000, 1e-9, 1e-3
_HALVINGS = 20  # bisection steps; the last one moves a bound by less than 1e-6


@dataclass(frozen=True)
class Balanced:
    """A row for each way of scoring the same items, a column for each unit."""

    rows: Floats  # (R, U); NaN for units without a weight
    heavy: Floats  # (U,) the weight of each unit, by that of a mean one
    items: int  # with a weight

    @property
    def reach(self) -> float:
        """The weight of the heaviest unit, by that of a mean one."""
        return float(self.heavy.max(initial=0.0)) if self.items else 1.0

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


def fair_weights(good: Sequence[Sequence[str]], bad: Sequence[Sequence[str]]) -> Floats:
    """Of choices among any number of words (N,): no word is right more often than chance has it.

    A word that is liked everywhere gains 1 - chance where it is good, and loses chance where it is
    bad. Where it would gain more than it loses, the choices in which it is good weigh less, until
    there is no such word; between 0 and 1. So a word that is never bad gives no weight.
    """
    chance = np.array([len(g) / max(len(g) + len(b), 1) for g, b in zip(good, bad, strict=True)])
    weights: Floats = ((chance > 0) & (chance < 1)).astype(np.float64)
    where: dict[str, tuple[list[int], list[int]]] = {}
    for side, choices in enumerate((good, bad)):
        for at, words in enumerate(choices):
            for word in words:
                where.setdefault(word, ([], []))[side].append(at)
    places = [(np.array(up, int), np.array(down, int)) for up, down in where.values() if up]
    for _ in range(_ROUNDS):
        before = weights.copy()
        for up, down in places:
            gained, lost = (weights * (1 - chance))[up].sum(), (weights * chance)[down].sum()
            if gained > lost:
                weights[up] *= lost / gained
        if np.abs(weights - before).max(initial=0) < _STILL:
            break
    return np.where(weights < _LIGHT, 0.0, weights)


def balanced_share(
    values: Floats,
    weights: Floats,
    units: Sequence[str],
    *,
    least: float = 0.0,
    level: float = 0.95,
) -> Estimate | None:
    """The weighted mean of values between `least` and 1, with an interval over units."""
    of = balanced_rows(((values - least) / (1 - least))[None], weights, units)
    found = balanced_means(of, level=level, resamples=100)
    if found.n[0] < 2:
        return None
    value, low, high = (
        least + (1 - least) * float(end[0]) for end in (found.value, found.low, found.high)
    )
    return Estimate(value, low, high, int(found.n[0]), level, "units")


def balanced_rows(scores: Floats, weights: Floats, units: Sequence[str]) -> Balanced:
    """Of scores (R, N): a value for each unit (R, U), in the order of `np.unique(units)`."""
    names, number = np.unique(np.asarray(units, dtype=str), return_inverse=True)
    heavy = np.bincount(number, weights, minlength=len(names)).astype(np.float64)  # (U,)
    there = heavy > 0
    if not there.any():
        return Balanced(np.full((len(scores), len(names)), np.nan), heavy, 0)
    accuracy = (scores * weights).sum(axis=1) / weights.sum()
    away = np.stack(
        [
            np.bincount(number, weights * (row - mean), minlength=len(names))
            for row, mean in zip(scores, accuracy, strict=True)
        ]
    )
    usual = heavy[there].mean()
    rows = np.where(there, accuracy[:, None] + away / usual, np.nan)
    return Balanced(rows, heavy / usual, int((weights > 0).sum()))


def balanced_means(
    of: Balanced, *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> PartialMeans:
    """The accuracy of each row with bounds of each alone, and with some that hold for all rows.

    Single scores must lie between 0 and 1. Without two units there are no bounds.
    """
    there = of.heavy > 0
    rows, heavy, n = of.rows[:, there], of.heavy[there], int(there.sum())
    counts = np.full(len(rows), n)
    nothing = np.full(len(rows), np.nan)
    value = rows.mean(axis=1) if n else nothing
    if n < 2:
        return PartialMeans(value, *(nothing,) * 7, counts, level)
    null = max_statistics([rows], resamples=resamples, seed=seed)
    critical = float(np.quantile(null.max(axis=1), level))
    roots = SignedRoots.of(rows).where(ends_are_seen(rows, 0.0, 1.0))
    one = math.log((1 - level) / 2)  # the tail on one side
    away = rows - value[:, None]
    low, high = all_low, all_high = _bounds(away, value, heavy, roots.budget(one))
    if len(rows) > 1:
        together = roots.budget(min(float(log_ndtr(-critical)), one))
        all_low, all_high = _bounds(away, value, heavy, together)
    return PartialMeans(value, low, high, all_low, all_high, low, high, nothing, counts, level)


def _bounds(away: Floats, value: Floats, heavy: Floats, budget: Floats) -> tuple[Floats, Floats]:
    """Accuracies (R,) that are within `budget` nats (R,) of what was seen, by bisection.

    `away` (R, U): what each unit adds to the accuracy. If the truth is t, its value is that and
    heavy · (accuracy - t), which is heavy · (share - t): between -heavy · t and heavy · (1 - t).
    """
    most, found = heavy.max(), []
    for end in (0.0, 1.0):
        far, near = np.full(len(value), end), value.copy()
        for _ in range(_HALVINGS):
            truth = (far + near) / 2
            room = most * (truth if end == 0 else 1 - truth)
            values = away + heavy * (value - truth)[:, None]
            sure = evidence_against_zero(values, None, reach=np.maximum(room, 1e-12)) > budget
            far, near = np.where(sure, truth, far), np.where(sure, near, truth)
        found.append(far)
    return found[0], found[1]


# Scores in which every class weighs the same, so that one constant answer is worth nothing.
#
# With C classes any constant answer scores 1/C, however many examples each class has.


def weights_by_class(labels: ArrayLike) -> Floats:
    """(N,) weights with the sum 1; each class that is there has the same share of it."""
    _, number, counts = np.unique(np.asarray(labels), return_inverse=True, return_counts=True)
    return np.asarray(1 / (len(counts) * counts[number]), dtype=np.float64)


def balanced_accuracy(said: ArrayLike, labels: ArrayLike) -> float:
    """The mean over classes of the share of their examples that are told right."""
    right = np.asarray(said) == np.asarray(labels)
    return float(weights_by_class(labels) @ right)
