"""Scores of a few runs on the same examples: how sure over other seeds and other examples together.

Runs and examples are crossed: every run answers every example. The error of a mean over runs has a
part of seeds, a part of examples and one of both together. Student's interval over runs holds the
first and the third; the bounds over examples of the run that is the mean of all hold the second and
the third. Both are put together as squares of their arms (Zou and Donner's method of variance
estimates recovery), so that the third part counts twice: intervals err to the wide side. Where
asked (`once`), it is taken off the arm of examples: what is left there is what examples do to all
runs alike. Such an interval never is narrower than that of examples alone, and misses no more often
than it may, however much seeds spread (`benchmarks/crossed_coverage.py`).

Where all runs agree to the last digit, or nothing is drawn in them, only examples make an interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtridf, stdtrit

from bertology.arrays import Floats
from bertology.errors import DataError
from bertology.metrics import Metric
from bertology.stats.intervals import (
    Estimate,
    bounded_mean_bounds,
    check_level,
    distinct,
    upper_mean_bound,
)
from bertology.stats.paired import influences, jackknife
from bertology.stats.repeated import repeated
from bertology.stats.signed_roots import SignedRoots

_DOUBLINGS, _STEPS, _CLOSE = 60, 60, 1e-7  # of the search for an end of a ratio


def crossed_score(metric: Metric, statistics: Floats, *, level: float = 0.95) -> Estimate:
    """The mean score of runs, `statistics` (S, N, K); one run only has no spread of seeds."""
    runs = _checked(statistics)
    values = metric.finish(runs.sum(axis=1))  # (S,)
    influence = (jackknife(metric, runs) + values[:, None]).mean(axis=0)  # (N,)
    lowest, highest = metric.within
    ends = min(lowest, float(influence.min())), max(highest, float(influence.max()))
    low, high = bounds_over(influence, ends, level)
    return together(values, low, high, len(influence), level=level, within=metric.within)


def crossed_difference(
    metric: Metric,
    one: Floats,
    other: Floats,
    *,
    level: float = 0.95,
    in_seeds: bool = False,
    once: bool = False,
) -> Estimate:
    """How much higher the mean score of `one` is; both (S, N, K) over the same examples.

    Runs are paired by their place. A side with one run is one in which nothing is drawn: it is
    the same for every seed of the other. With `in_seeds`, it is told how many seeds would settle a
    question on these examples, also where examples make the interval wide. With `once`, what seeds
    and examples do together is not counted twice.
    """
    first, second = _checked(one), _checked(other)
    seeds = max(len(first), len(second))
    if not {len(first), len(second)} <= {1, seeds} or first.shape[1:] != second.shape[1:]:
        raise DataError(
            "Runs are compared over the same examples, as many of one as of the other, or one. "
            f"Got {first.shape} and {second.shape}."
        )
    first, second = (np.broadcast_to(x, (seeds, *x.shape[1:])) for x in (first, second))
    found = [influences(metric, b, a[None]) for a, b in zip(first, second, strict=True)]
    each = np.stack([psi[0] for psi, _ in found])  # (S, N)
    influence = each.mean(axis=0)
    reach = float(np.mean([most[0] for _, most in found]))
    reach = max(reach, float(np.abs(influence).max()))
    low, high = bounds_over(influence, (-reach, reach), level)
    differences = metric.finish(first.sum(axis=1)) - metric.finish(second.sum(axis=1))
    n, within = len(influence), metric.differences_within
    both = _of_both(each) if once else 0.0
    over = together(differences, low, high, n, level=level, within=within, both=both)
    return _in_seeds(over, seeds) if in_seeds else over


def crossed_ratio(
    metric: Metric, one: Floats, other: Floats, *, level: float = 0.95, floor: float = 0.0
) -> Estimate:
    """Which share of the mean score of `other` the mean score of `one` is; above `floor`, if given.

    Both are (S, N, K) over the same examples, runs paired by their place. The interval holds every
    r for which that of A - r B, a difference of means, holds 0 (Fieller 1954): it allows for what
    is not known of B, too. Where B is not surely above 0, nearly any ratio may be the true one, and
    the bounds are infinite; where it is not above 0 at all, there is no number. What seeds and
    examples do together is counted once.
    """
    first, second = _checked(one), _checked(other)
    if first.shape != second.shape:
        raise DataError(
            "Runs are compared over the same examples, as many of one as of the other. "
            f"Got {first.shape} and {second.shape}."
        )
    sides = _Sides.of(metric, first, second, floor, level)
    above, whole = (float(x.mean()) for x in sides.values)
    if not whole > 0:
        return Estimate(math.nan, math.nan, math.nan, first.shape[1], level)
    ratio = above / whole
    found = sides.less(1.0, ratio)
    low, high = -math.inf, math.inf
    if sides.less(0.0, -1.0).low > 0:  # B is surely above 0
        below, beyond = (max(arm, 0.0) / whole for arm in (-found.low, found.high))
        low = _crossing(lambda r: -sides.end(r, upper=False), ratio, -below)
        high = _crossing(lambda r: sides.end(r, upper=True), ratio, beyond)
    return replace(found, value=ratio, low=low, high=high)


@dataclass(frozen=True)
class _Sides:
    """What two numbers A and B are by run and by example, so that a A - b B is had for any a, b."""

    values: tuple[Floats, Floats]  # (S,) each
    influences: tuple[Floats, Floats]  # (S, N) each, centred
    flip: float
    """How much one example of a side may count that was not seen; 0 where nothing flips."""
    level: float

    @classmethod
    def of(
        cls, metric: Metric, first: Floats, second: Floats, floor: float, level: float
    ) -> _Sides:
        own, base = (metric.finish(x.sum(axis=1)) - floor for x in (first, second))
        mine, theirs = jackknife(metric, first), jackknife(metric, second)
        # A flawless run shows no spread; one flip of accuracy then still counts 1.
        flips = np.maximum(np.ptp(theirs, axis=1), 1.0) if metric.discrete else np.zeros(1)
        return cls((own, base), (mine, theirs), float(flips.mean()), level)

    def less(self, a: float, b: float) -> Estimate:
        """The interval of a A - b B."""
        values, each, influence, reach = self._difference(a, b)
        low, high = bounds_over(influence, (-reach, reach), self.level)
        within, n = (-math.inf, math.inf), len(influence)
        return together(values, low, high, n, level=self.level, within=within, both=_of_both(each))

    def end(self, b: float, *, upper: bool) -> float:
        """One end of the interval of A - b B."""
        values, each, influence, reach = self._difference(1.0, b)
        sign, value = (1.0 if upper else -1.0), float(values.mean())
        # The lower bound of a mean is the upper one of what it is subtracted from.
        seen, counts = distinct(influence[None])
        budget = _budget(influence, (-reach, reach), self.level)
        bound = upper_mean_bound(sign * seen, counts, low=-reach, high=reach, budget=budget)
        side = max(float(bound[0]) - sign * value, 0.0)
        seeds, counted = _arms(values, len(influence), self.level, _of_both(each))
        return value + sign * max(math.hypot(seeds, _alone(side, counted)), side)

    def _difference(self, a: float, b: float) -> tuple[Floats, Floats, Floats, float]:
        """Of a A - b B: values (S,), influences by run (S, N) and their mean, and their reach."""
        values = a * self.values[0] - b * self.values[1]
        each = a * self.influences[0] - b * self.influences[1] + values[:, None]
        influence = each.mean(axis=0)
        reach = max(
            self.flip * max(abs(a), abs(b), abs(a - b)),
            float(np.abs(each).max(axis=1).mean()),
            float(np.abs(influence).max()),
        )
        return values, each, influence, reach


def _crossing(slack: Callable[[float], float], start: float, step: float) -> float:
    """Where `slack`, which is not below 0 at the `start`, falls to 0 in the direction of `step`.

    Infinite where it does not. By doubling, then by the rule of false position (Illinois).
    """
    near, at_near = start, slack(start)
    if at_near <= 0 or not step:
        return start
    far = start + step
    for _ in range(_DOUBLINGS):
        if (at_far := slack(far)) <= 0:
            break
        step *= 2
        near, at_near, far = far, at_far, far + step
    else:
        return math.copysign(math.inf, step)
    last = 0  # which end the step before moved: one that stays twice counts half
    for _ in range(_STEPS):
        if abs(far - near) <= _CLOSE * max(1.0, abs(far)):
            break
        middle = (near * at_far - far * at_near) / (at_far - at_near)
        if (at_middle := slack(middle)) <= 0:
            far, at_far, at_near = middle, at_middle, at_near / (2 if last < 0 else 1)
            last = -1
        else:
            near, at_near, at_far = middle, at_middle, at_far / (2 if last > 0 else 1)
            last = 1
    return far


def _checked(statistics: Floats) -> Floats:
    array = np.asarray(statistics, dtype=np.float64)
    if array.ndim != 3 or not len(array) or array.shape[1] < 2:
        raise DataError(f"Scores of runs need (runs, examples ≥ 2, K) numbers. Got {array.shape}.")
    return array


def _of_both(each: Floats) -> float:
    """The squared error that seeds and examples together give to the mean of (S, N) influences."""
    seeds, n = each.shape
    if seeds < 2:
        return 0.0
    rest = each - each.mean(axis=0) - each.mean(axis=1, keepdims=True) + each.mean()
    return float((rest**2).sum() / ((seeds - 1) * (n - 1) * seeds * n))


def bounds_over(
    influence: Floats, within: tuple[float, float], level: float
) -> tuple[float, float]:
    """Bounds of the mean, which allow for examples that were not seen."""
    check_level(level, "crossed")
    values, counts = distinct(influence[None])
    budget = _budget(influence, within, level)
    low, high = bounded_mean_bounds(values, counts, low=within[0], high=within[1], budget=budget)
    return float(low[0]), float(high[0])


def _budget(influence: Floats, within: tuple[float, float], level: float) -> Floats:
    """What the bounds over examples may differ from what was observed, in nats (1,)."""
    return SignedRoots.within(influence[None], *within).budget(math.log((1 - level) / 2))


def together(
    values: Floats,
    low: float,
    high: float,
    n: int,
    *,
    level: float,
    within: tuple[float, float],
    both: float = 0.0,
) -> Estimate:
    """Both intervals as one; `unit` is what makes it wide, `lasting` what the other leaves.

    `both` is the squared error of seeds and examples together, which seeds have counted already.
    """
    value = float(values.mean())
    seeds, counted = _arms(values, n, level, both)
    sides = [max(side, 0.0) for side in (value - low, high - value)]
    alone = [_alone(side, counted) for side in sides]
    examples = sum(alone) / 2
    below, above = (
        max(math.hypot(seeds, own), side) for own, side in zip(alone, sides, strict=True)
    )
    found = Estimate(value, max(within[0], value - below), min(within[1], value + above), n, level)
    whole = math.hypot(seeds, examples)
    if not whole:
        return found
    remedy = "more seeds and more examples would narrow it"
    freedom = joint_freedom((seeds, max(len(values) - 1, 1)), (examples, n - 1), level)
    found = replace(found, freedom=freedom)
    if seeds > examples:
        return replace(found, n=len(values), unit="seeds", lasting=examples / whole, remedy=remedy)
    return replace(found, lasting=seeds / whole, remedy=remedy)


def _arms(values: Floats, n: int, level: float, both: float) -> tuple[float, float]:
    """The arm of seeds, and what it counts already of the square of that of examples."""
    over = repeated(values, level)
    seeds = 0.0 if math.isnan(over.low) else over.high - over.value
    return seeds, float(stdtrit(n - 1, (1 + level) / 2)) ** 2 * both


def _alone(side: float, counted: float) -> float:
    """The arm of examples without what seeds have counted."""
    return math.sqrt(max(side**2 - counted, 0.0)) if counted else side


def joint_freedom(few: tuple[float, float], many: tuple[float, float], level: float) -> float:
    """Degrees of freedom of two arms together: those whose quantile makes the same interval.

    Each is its length and its own freedom. An interval that examples make wide still has an arm of
    a few seeds, which grows more than the other where a question is judged at a higher level
    (Holm's, over tasks): with the freedom of examples alone it would stay too narrow there.
    """
    tail = (1 + level) / 2
    errors = math.hypot(*(arm / float(stdtrit(freedom, tail)) for arm, freedom in (few, many)))
    if not few[0] or not errors:
        return float(many[1])
    found = float(stdtridf(tail, math.hypot(few[0], many[0]) / errors))
    return found if math.isfinite(found) and found < many[1] else float(many[1])


def _in_seeds(found: Estimate, seeds: int) -> Estimate:
    """The same interval, counted in seeds; what examples make of it lasts."""
    if found.unit == "seeds" or not found.lasting:
        return found  # or it has no arm of seeds
    assert found.freedom is not None
    return replace(found, n=seeds, unit="seeds", lasting=math.sqrt(1 - found.lasting**2))
