"""Right answers of a few runs to questions that come in groups, such as those about one text.

What is said of one question of a text goes with what is said of the others, so that groups are what
is counted. A mean is over questions; the difference of two means may be over the same groups (each
text is read twice), over others, or over some of both: how much each group moves the difference
(its influence) holds for all of these. Seeds are put together with groups as in `crossed.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bertology.errors import DataError
from bertology.stats.crossed import bounds_over, together
from bertology.stats.intervals import Estimate

__all__ = ["Answers", "grouped_contrast", "grouped_mean"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Answers:
    """How far each answer is right (0 to 1): (runs, questions), and the group of each question."""

    right: Floats
    groups: NDArray[np.int64]

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
    unit: str = "texts",
) -> Estimate:
    """Means of several sets of answers, each times its sign, added up.

    Runs are paired by their place; a set with one run is one in which nothing is drawn. Numbers of
    groups must mean the same in all sets. Without two groups there is no interval.
    """
    if not terms or any(not len(answers) for _, answers in terms):
        raise DataError("Means of answers need a question in every set.")
    runs = max(len(answers.right) for _, answers in terms)
    names, groups = np.unique(np.concatenate([a.groups for _, a in terms]), return_inverse=True)
    values, influence, start = np.zeros(runs), np.zeros(len(names)), 0
    for sign, answers in terms:
        own = groups[start : start + len(answers)]
        start += len(answers)
        means = answers.right.mean(axis=1)  # (runs,) or (1,)
        values = values + sign * means
        each = answers.right.mean(axis=0) - means.mean()
        influence += sign * np.bincount(own, each, len(names)) / len(answers)
    value, count = float(values.mean()), len(names)
    if count < 2:
        return Estimate(value, math.nan, math.nan, count, level, unit=unit)
    moved = value + count * influence
    ends = min(within[0], float(moved.min())), max(within[1], float(moved.max()))
    low, high = bounds_over(moved, ends, level)
    found = together(values, low, high, count, level=level, within=within)
    return found if found.unit == "seeds" else replace(found, unit=unit)
