"""Between which steps of a training run does a measure emerge?

A measure emerges where it crosses half of the way from its first to its last value and stays
beyond. Every value has an interval, so the crossing has one too: it begins at the last step at
which the measure is surely short of half of the way, and ends at the first step from which on it is
surely beyond. All bounds are corrected (Bonferroni) for the number of steps. This is a statement
about one run: what it errs by is the error of the measure at each step.

Whether there is more behind the change than chance is another question. A measure that wanders
around one value, or drifts from step to step, differs between two steps as well, and surely so if
it is measured well. So the curve is compared with both. Against wandering (values drawn alike at
all steps): the largest t of all cuts into before and after, and of a steady trend. Against drift
(changes drawn alike between all steps, a random walk): the largest t of one change against the
others, and of their mean. `chance_p` is the larger p-value. With a handful of steps only an abrupt
change or a very steady one can be told from drift.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertology.arrays import Floats
from bertology.errors import DataError
from bertology.stats.intervals import Estimate, check_level

FEWEST_STEPS = 4
"""With fewer values no change can be told from chance."""


_DRIFT = "the change may be drift: more kept steps, or other training runs, would tell"


@dataclass(frozen=True)
class Emergence:
    """What a curve over steps says."""

    change: Estimate
    """The last value less the first."""
    beyond: Floats
    """By how much each value lies beyond half of the way, in the direction of the change."""
    low: Floats
    high: Floats
    p: float
    """How often a curve that wanders or drifts would change as much; NaN with too few steps."""
    at: Estimate | None
    """The step of this run at which the measure emerges, and the two it lies between, if any."""
    why_not: str = ""

    def early(self, steps: Sequence[int]) -> Estimate | None:
        """Where it emerges as a share of all steps; all is open where the change may be chance."""
        if self.at is None:
            return None
        value, low, high = (x / steps[-1] for x in (self.at.value, self.at.low, self.at.high))
        if not self.p < 1 - self.at.level:
            low, high = 0.0, 1.0
        return replace(self.at, value=value, low=low, high=high, remedy=_DRIFT)


def emergence(
    steps: Sequence[int],
    values: Sequence[Estimate],
    *,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Emergence:
    """The change over the steps, in rising order, and where it happens; see the module's text.

    Values of different steps are taken as independent. Measured on the same examples they vary
    together, and differences are then surer than this says.
    """
    check_level(level, "emergence")
    if len(steps) < 2 or len(steps) != len(values) or list(steps) != sorted(set(steps)):
        raise DataError("A curve over steps needs a value for each of two or more rising steps.")
    strict = [e.at_level(1 - (1 - level) / len(values)) for e in values]
    value, low, high = (np.array([getattr(e, n) for e in strict]) for n in ("value", "low", "high"))
    down, up = np.nan_to_num(value - low), np.nan_to_num(high - value)
    sign = -1.0 if value[-1] < value[0] else 1.0
    if sign < 0:
        down, up = up, down
    beyond, shortest, farthest = _beyond_half(sign * value, down, up)
    change = _change(values, level)
    p = chance_p(value, resamples=resamples, seed=seed)
    why = ""
    if np.isnan(low).any() or np.isnan(high).any():
        why = "a step has no interval"
    elif not (farthest[0] < 0 < shortest[-1]):
        why = "the first and the last step do not surely differ"
    at = None if why else _crossing(steps, beyond, shortest, farthest, level)
    return Emergence(change, beyond, shortest, farthest, p, at, why)


def _beyond_half(value: Floats, down: Floats, up: Floats) -> tuple[Floats, Floats, Floats]:
    """Each rising value less the middle of the first and the last, with its bounds."""
    weights = np.eye(len(value))  # row k: what makes the number of step k
    weights[:, 0] -= 0.5
    weights[:, -1] -= 0.5
    beyond = weights @ value
    # Independent errors add up as squares do; a value that counts negatively errs the other way.
    below = np.where(weights > 0, weights * down, weights * up)
    above = np.where(weights > 0, weights * up, weights * down)
    low = beyond - np.sqrt((below**2).sum(1))
    return beyond, low, beyond + np.sqrt((above**2).sum(1))


def _change(values: Sequence[Estimate], level: float) -> Estimate:
    first, last = (e.at_level(level) for e in (values[0], values[-1]))
    value = last.value - first.value
    low = value - math.hypot(last.value - last.low, first.high - first.value)
    high = value + math.hypot(last.high - last.value, first.value - first.low)
    return Estimate(value, low, high, min(first.n, last.n), level, last.unit)


def _crossing(
    steps: Sequence[int], beyond: Floats, low: Floats, high: Floats, level: float
) -> Estimate:
    """The step of the crossing, between steps on a logarithmic scale, and the two around it."""
    end = _first_for_good(low > 0)
    start = max(k for k in range(end) if high[k] < 0)
    after = _first_for_good(beyond > 0)
    x = np.log1p(np.asarray(steps, dtype=np.float64))
    share = -beyond[after - 1] / (beyond[after] - beyond[after - 1])
    place = float(np.expm1(x[after - 1] + share * (x[after] - x[after - 1])))
    inside = min(max(place, steps[start]), steps[end])
    return Estimate(inside, steps[start], steps[end], len(steps), level, "steps")


def _first_for_good(true: NDArray[np.bool_]) -> int:
    """The first place from which on all are true; the last one is."""
    return int(np.flatnonzero(~true)[-1]) + 1


def chance_p(values: ArrayLike, *, resamples: int = 10_000, seed: int = 0) -> float:
    """How often values that wander, or drift, would have as large a t; NaN with too few."""
    x = np.asarray(values, dtype=np.float64)
    if x.size < FEWEST_STEPS or not np.isfinite(x).all():
        return math.nan
    drawn = np.random.default_rng(seed).standard_normal((resamples, x.size))
    return max(
        _share_as_large(_largest_t(drawn), float(_largest_t(x[None])[0])),
        _share_as_large(_largest_step_t(drawn[:, 1:]), float(_largest_step_t(np.diff(x)[None])[0])),
    )


def _share_as_large(null: Floats, observed: float) -> float:
    return float((1 + (null >= observed * (1 - 1e-9)).sum()) / (1 + null.size))


def _largest_step_t(changes: Floats) -> Floats:
    """The largest |t| of each row (R, K) of changes: of each against the others, of their mean."""
    squares, k = changes**2, changes.shape[1]
    others = (squares.sum(1, keepdims=True) - squares).clip(0) / (k - 1)
    alone = _ratio(squares, others).max(axis=1)
    mean = changes.mean(1)
    steady = _ratio(mean**2, ((changes - mean[:, None]) ** 2).sum(1) / (k - 1) / k)
    return np.asarray(np.sqrt(np.maximum(alone, steady)))


def _ratio(top: Floats, bottom: Floats) -> Floats:
    """top / bottom, infinite where the bottom is nothing beside the top; 0 / 0 is 0."""
    without = np.where(top > 0, np.inf, 0.0)
    found: Floats = np.divide(top, bottom, out=without, where=bottom > 1e-24 * top)
    return found


def _largest_t(x: Floats) -> Floats:
    """The largest |t| of each row (R, K): of all cuts into two parts, and of a steady trend."""
    found = _trend_t(x)
    for k in range(1, x.shape[1]):
        first, second = x[:, :k], x[:, k:]
        one, two = first.mean(1, keepdims=True), second.mean(1, keepdims=True)
        spread = ((first - one) ** 2).sum(1) + ((second - two) ** 2).sum(1)
        error = np.sqrt(spread / (x.shape[1] - 2) * (1 / k + 1 / (x.shape[1] - k)))
        # Two levels without any spread are as far apart as can be; one level is no cut.
        found = np.maximum(found, np.sqrt(_ratio((one - two)[:, 0] ** 2, error**2)))
    return found


def _trend_t(x: Floats) -> Floats:
    """|t| of the correlation of each row (R, K) with the order of its values."""
    order = np.arange(x.shape[1]) - (x.shape[1] - 1) / 2
    centred = x - x.mean(1, keepdims=True)
    explained = (centred @ order) ** 2 / (order @ order)
    left = np.maximum((centred**2).sum(1) - explained, 0.0)
    return np.asarray(np.sqrt(_ratio(explained * (x.shape[1] - 2), left)))
