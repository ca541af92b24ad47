"""Do scores tell which thing goes with which, beyond what each of both has alone?

Two things (an apple, a hammer) and two attributes (edible, heavy) are a checkerboard where the
first thing has the first attribute only and the second the second only. A score is right there if

    score(apple, edible) + score(hammer, heavy) > score(apple, heavy) + score(hammer, edible).

A score that is a sum of one number for the thing and one for the attribute is equal on both sides,
which counts half: so it is right in exactly one half, however many things have an attribute, and
whatever is likely for things or attributes alone. What is above one half is their interaction.

Both things and attributes are drawn, so that both make the interval: the variance is the sum of
that over things and that over attributes (linearised, as of a U-statistic), with Student's
quantile for the fewer of them. What both share counts twice, so that intervals err to the wide
side. Where all boards agree this variance is 0, however few they are. So intervals reach at least
as far as counting tells: m boards that have no thing and no attribute in common and all agree
leave open that a share of 1 - tail^(1/m) of boards is otherwise, as in the exact sign test.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from bertology.arrays import Floats
from bertology.errors import DataError
from bertology.stats.intervals import Estimate, check_level

_EQUAL = 1e-9  # differences below this share of the largest score are rounding


@dataclass(frozen=True)
class Checkerboards:
    """Shares of checkerboards told right (R,), one for each way of scoring, with what each thing
    (R, T) and each attribute (R, A) adds to their errors."""

    value: Floats
    things: Floats
    attributes: Floats
    boards: int
    apart: float
    """About so many of the boards have no thing and no attribute in common."""

    def estimate(self, at: int = -1, *, level: float = 0.95) -> Estimate | None:
        """One of them with its interval; None where there is no checkerboard."""
        check_level(level, "checkerboards")
        if not self.boards:
            return None
        return _clipped(_summed([(1.0, self, at)], self._errors(at), level), 0.0, 1.0)

    def gain(self, other: Checkerboards, at: int, there: int, *, level: float) -> Estimate | None:
        """How much more this tells than another score of the same things and attributes."""
        check_level(level, "checkerboards")
        if not self.boards:
            return None
        errors = [a - b for a, b in zip(self._errors(at), other._errors(there), strict=True)]
        parts = [(1.0, self, at), (-1.0, other, there)]
        return _clipped(_summed(parts, errors, level), -1.0, 1.0)

    def _errors(self, at: int) -> list[Floats]:
        return [self.things[at], self.attributes[at]]

    def _open(self, at: int, level: float, flat: bool) -> tuple[float, float]:
        """How far below and above its value counting leaves the truth open.

        `flat`: no unit differs from another. Else it fades out until one board of those that
        stand apart is otherwise: from there on, units that differ tell how far the truth may be.
        """
        unseen = 1 - ((1 - level) / 2) ** (1 / self.apart)
        right = float(self.value[at])
        if flat:
            return unseen * right, unseen * (1 - right)
        rare = max(0.0, 1 - self.apart * (1 - right)), max(0.0, 1 - self.apart * right)
        return unseen * rare[0], unseen * rare[1]


def weighted(
    parts: Sequence[tuple[float, Checkerboards, int]], *, level: float = 0.95
) -> Estimate | None:
    """A sum of shares, each with a weight, of corpora that have no things in common."""
    if any(not of.boards for _, of, _ in parts):
        return None
    check_level(level, "checkerboards")
    errors = [weight * x for weight, of, at in parts for x in of._errors(at)]
    return _summed(parts, errors, level)


def checkerboards(
    scores: Floats, labels: Floats, *, folds: NDArray[np.int64] | None = None
) -> Checkerboards:
    """Of `scores` (R, T, A) and `labels` (T, A), 0 or 1; NaN where a pair was not asked.

    `folds` (T,): only things of the same fold are compared, as those that one probe scored.
    """
    if scores.ndim != 3 or scores.shape[1:] != labels.shape:
        raise DataError(
            f"Scores (ways, things, attributes) must be of the labels' shape. Got {scores.shape} "
            f"and {labels.shape}."
        )
    ways, things, attributes = scores.shape
    known = np.isfinite(labels) & np.isfinite(scores).all(axis=0)
    right_of = np.zeros((ways, things)), np.zeros((ways, attributes))
    boards_of = np.zeros(things), np.zeros(attributes)
    of = np.zeros(things, np.int64) if folds is None else folds
    for fold in np.unique(of):
        some = np.flatnonzero(of == fold)
        _count(scores[:, some], labels[some], known[some], some, right_of, boards_of)
    boards = boards_of[1].sum() / 2
    right = right_of[1].sum(axis=1) / 2
    value = right / boards if boards else np.full(ways, np.nan)
    errors = [
        (right - value[:, None] * n) / boards if boards else np.zeros_like(right)
        for right, n in zip(right_of, boards_of, strict=True)
    ]
    return Checkerboards(value, errors[0][:, boards_of[0] > 0], errors[1][:, boards_of[1] > 0],
                         int(boards), _apart(boards_of))  # fmt: skip


def _apart(boards_of: Sequence[Floats]) -> float:
    """Each board takes two things and two attributes; a unit of many boards counts as fewer."""
    counted = [float(n.sum()) ** 2 / max(1.0, float((n**2).sum())) for n in boards_of]
    return max(1.0, min(counted) / 2)


def _count(
    scores: Floats,
    labels: Floats,
    known: NDArray[np.bool_],
    some: NDArray[np.int64],
    right_of: tuple[Floats, Floats],
    boards_of: tuple[Floats, Floats],
) -> None:
    """Add the checkerboards of some things; pairs are made of whatever there is less of."""
    flip = scores.shape[1] < scores.shape[2]
    if flip:
        scores, labels, known = scores.transpose(0, 2, 1), labels.T, known.T
    yes, no = known & (labels > 0.5), known & (labels <= 0.5)
    tiny = _EQUAL * max(1e-300, float(np.abs(scores[:, known]).max(initial=0.0)))
    long, short = (1, 0) if flip else (0, 1)
    rows = np.arange(len(labels)) if flip else some
    columns = some if flip else np.arange(labels.shape[1])
    for p in range(labels.shape[1]):
        for q in range(p + 1, labels.shape[1]):
            first = np.flatnonzero(yes[:, p] & no[:, q])
            second = np.flatnonzero(no[:, p] & yes[:, q])
            if not len(first) or not len(second):
                continue
            away = scores[:, :, p] - scores[:, :, q]  # (R, T): what a thing alone has is gone
            more = away[:, first, None] - away[:, None, second]
            right = (more > tiny) + 0.5 * (np.abs(more) <= tiny)  # (R, first, second)
            total, n = right.sum(axis=(1, 2)), len(first) * len(second)
            right_of[long][:, rows[first]] += right.sum(axis=2)
            right_of[long][:, rows[second]] += right.sum(axis=1)
            boards_of[long][rows[first]] += len(second)
            boards_of[long][rows[second]] += len(first)
            for column in (columns[p], columns[q]):
                right_of[short][:, column] += total
                boards_of[short][column] += n


def _summed(
    parts: Sequence[tuple[float, Checkerboards, int]], errors: Sequence[Floats], level: float
) -> Estimate:
    """Of shares with weights, and what each unit of several kinds adds to the sum's error."""
    value = sum(weight * float(of.value[at]) for weight, of, at in parts)
    fewest = min(len(x) for x in errors)
    if fewest < 2:
        return Estimate(value, math.nan, math.nan, fewest, level)
    spread = math.sqrt(sum(len(x) / (len(x) - 1) * float((x**2).sum()) for x in errors))
    below = above = 0.0
    for weight, of, at in parts:
        sides = of._open(at, level, flat=spread < _EQUAL)
        below += abs(weight) * sides[weight < 0]
        above += abs(weight) * sides[weight > 0]
    half = float(stdtrit(fewest - 1, (1 + level) / 2)) * spread
    return Estimate(value, value - max(half, below), value + max(half, above), fewest, level)


def _clipped(found: Estimate, low: float, high: float) -> Estimate:
    return Estimate(
        found.value, max(low, found.low), min(high, found.high), found.n, found.level
    ) if math.isfinite(found.low) else found  # fmt: skip
