"""Right answers of a few runs to questions that come in groups, such as those about one text.

What is said of one question of a text goes with what is said of the others, so that groups are what
is counted. A mean is over questions; the difference of two means may be over the same groups (each
text is read twice), over others, or over some of both: how much each question moves the difference
(its influence) holds for all of these.

How much less questions of one group tell is measured: the design effect is the variance that
groups give to the mean, over that of questions if they were independent; never less than 1. Bounds
are those of `intervals.bounded_mean_bounds` over questions, with so many times the budget, and with
Student's quantile of groups. So they are as wide as Student's over groups, and still allow for what
was not seen; to allow for whole groups that are all right or all wrong, though none was, makes them
about twice as wide.
Seeds are put together with groups as in `crossed.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from bertology.arrays import Floats
from bertology.errors import DataError
from bertology.stats.crossed import together
from bertology.stats.intervals import Estimate, bounded_mean_bounds, check_level, distinct
from bertology.stats.least_means import MANY

Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Answers:
    """How far each answer is right (0 to 1): (runs, questions), and the group of each question."""

    right: Floats
    groups: Codes

    def only(self, which: NDArray[np.bool_]) -> Answers:
        """Some of the questions."""
        return Answers(self.right[:, which], self.groups[which])

    def __len__(self) -> int:
        return len(self.groups)


def grouped_mean(answers: Answers, *, level: float = 0.95, unit: str = "texts") -> Estimate:
    """The share of right answers."""
    return grouped_contrast([(1.0, answers)], level=level, within=(0.0, 1.0), unit=unit)


def grouped_contrast(
    terms: Sequence[tuple[float, Answers]],
    *,
    level: float = 0.95,
    within: tuple[float, float] = (-1.0, 1.0),
    each: tuple[float, float] = (0.0, 1.0),
    unit: str = "texts",
) -> Estimate:
    """Means of several sets of answers, each times its sign, added up.

    Runs are paired by their place; a set with one run is one in which nothing is drawn. Numbers of
    groups must mean the same in all sets, and questions of two sets must be different ones: of the
    same questions, give differences as one set. `each`: where the value of a question can lie.
    Without two groups there is no interval.
    """
    if not terms or any(not len(answers) for _, answers in terms):
        raise DataError("Means of answers need a question in every set.")
    runs = max(len(answers.right) for _, answers in terms)
    size = sum(len(answers) for _, answers in terms)
    values, influences, ends = np.zeros(runs), [], []
    for sign, answers in terms:
        means = answers.right.mean(axis=1)  # (runs,) or (1,)
        values = values + sign * means
        share = sign * size / len(answers)
        influences.append(share * (answers.right.mean(axis=0) - means.mean()))
        ends += [share * (end - means.mean()) for end in each]
    value, names = float(values.mean()), np.concatenate([a.groups for _, a in terms])
    count = len(np.unique(names))
    if count < 2:
        return Estimate(value, math.nan, math.nan, count, level, unit=unit)
    budget = _budget(influences, [a.groups for _, a in terms], level)
    moved = value + np.concatenate(influences)
    low, high = bounded_mean_bounds(
        *distinct(moved[None]), low=value + min(ends), high=value + max(ends), budget=budget
    )
    found = together(values, float(low[0]), float(high[0]), count, level=level, within=within)
    return found if found.unit == "seeds" else replace(found, unit=unit)


def _budget(influences: Sequence[Floats], groups: Sequence[Codes], level: float) -> float:
    """Nats for bounds over questions: those of groups, times the design effect."""
    check_level(level, "grouped")
    tail = (1 - level) / 2
    single = np.concatenate(influences)
    everyone, size = np.concatenate(groups), len(single)
    alone = float(single @ single)
    # Where nothing differs it is not known what goes together: each group counts once.
    effect = (
        max(1.0, _squared(single, everyone) / alone) if alone else size / len(np.unique(everyone))
    )
    freedom = _freedom(influences, groups)
    normal = float(stdtrit(freedom, tail)) ** 2 / 2
    return effect * (normal if size / effect >= MANY else max(normal, -math.log(tail)))


def _squared(influence: Floats, groups: Codes) -> float:
    """The sum over groups of squared sums, made larger as for a variance."""
    _, at = np.unique(groups, return_inverse=True)
    sums = np.bincount(at, influence)
    return float(sums @ sums) * len(sums) / max(1, len(sums) - 1)


def _freedom(influences: Sequence[Floats], groups: Sequence[Codes]) -> float:
    """Degrees of freedom of the variance over groups."""
    counts = [len(np.unique(own)) for own in groups]
    if sum(counts) > len(np.unique(np.concatenate(groups))):
        return max(1.0, min(counts) - 1.0)  # sets share groups: the smaller one decides
    parts = [_squared(one, own) for one, own in zip(influences, groups, strict=True)]
    errors = sum(p**2 / max(1, n - 1) for p, n in zip(parts, counts, strict=True))
    return sum(parts) ** 2 / errors if errors else max(1.0, min(counts) - 1.0)  # Satterthwaite


def mean_in_two_ways(
    values: Floats,
    weights: Floats,
    groups: Sequence[Codes],
    *,
    level: float = 0.95,
    unit: str = "groups",
) -> Estimate:
    """The weighted mean of values (N,) from 0 to 1 that go together in two ways, such as templates.

    What both ways give to the variance is added up, less that of values alone, which both have
    (Cameron, Gelbach and Miller 2011). The way with fewer groups gives Student's quantile.
    """
    there = weights > 0
    names = [np.unique(way[there], return_inverse=True)[1] for way in groups]
    count = min(int(way.max(initial=-1)) + 1 for way in names)
    if not count:
        return Estimate(math.nan, math.nan, math.nan, 0, level, unit)
    x, w = values[there], weights[there] / weights[there].mean()
    value = float(np.mean(w * x))
    if count < 2:
        return Estimate(value, math.nan, math.nan, count, level, unit)
    influence = w * (x - value)
    alone, tail = float(influence @ influence), (1 - check_level(level, "grouped")) / 2
    each = [max(1.0, _squared(influence, way) / alone) if alone else 1.0 for way in names]
    effect = max(1.0, sum(each) - 1) if alone else len(x) / count
    normal = float(stdtrit(count - 1, tail)) ** 2 / 2
    budget = effect * (normal if len(x) / effect >= MANY else max(normal, -math.log(tail)))
    most = float(w.max())
    low, high = bounded_mean_bounds(
        *distinct((value + influence)[None]),
        low=value - most * value,
        high=value + most * (1 - value),
        budget=budget,
    )
    return Estimate(value, max(0.0, float(low[0])), min(1.0, float(high[0])), count, level, unit)
