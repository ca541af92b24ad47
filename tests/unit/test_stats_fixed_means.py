"""Means over data sets that were chosen: intervals hold the truth, also where spreads differ."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import binom

from bertology.errors import DataError
from bertology.metrics import find_metric
from bertology.stats import Estimate
from bertology.stats.crossed import crossed_difference
from bertology.stats.fixed_means import OfRuns, mean_over_fixed

STRICT = 1 - 0.05 / 15


def missed(
    spreads: Sequence[float],
    *,
    runs: int = 3,
    level: float = 0.95,
    over_examples: float = 0.0,
    same_draws: bool = False,
    shared: bool = False,
    draws: int = 1000,
) -> int:
    """How many intervals miss 0, the truth of every data set."""
    rng, count = np.random.default_rng(7), 0
    for _ in range(draws):
        luck = rng.normal(size=(len(spreads), runs))
        if same_draws:
            luck[:] = luck[0]
        found = []
        for spread, row in zip(spreads, luck, strict=True):
            by_run = spread * row
            value = by_run.mean() + over_examples * rng.normal()
            error = by_run.std(ddof=1) / math.sqrt(runs)
            found.append(OfRuns(float(value), runs, 400, float(error), over_examples))
        count += mean_over_fixed(found, level, shared=shared).excludes(0)
    return count


def at_most(share: float, draws: int = 1000) -> float:
    return float(binom.ppf(0.999, draws, share))


@pytest.mark.parametrize("spreads", [(1, 1, 1), (1, 0.3, 0.3), (1, 0.2, 0.2, 0.2)])
@pytest.mark.parametrize("runs", [3, 5])
def test_intervals_hold_the_truth(spreads: tuple[float, ...], runs: int) -> None:
    assert missed(spreads, runs=runs) <= at_most(0.055)
    assert missed(spreads, runs=runs, level=STRICT) <= at_most(0.005)
    assert missed(spreads, runs=runs, over_examples=0.5) <= at_most(0.05)


def test_a_mean_is_surer_than_its_parts() -> None:
    one = OfRuns(0.02, 3, 400, 0.01, 0.01)
    alone, three = (mean_over_fixed([one] * n) for n in (1, 3))
    assert three.value == pytest.approx(0.02)
    assert three.high - three.low < 0.6 * (alone.high - alone.low)
    assert three.unit == "seeds"
    assert three.freedom is not None
    assert three.at_level(0.99).high > three.high


def test_draws_that_are_the_same_for_all_data_sets_do_not_cancel() -> None:
    assert missed((1, 1, 1), runs=5, same_draws=True) > at_most(0.05)
    assert missed((1, 1, 1), runs=5, same_draws=True, shared=True) <= at_most(0.05)


def test_one_data_set_has_the_interval_that_it_has_by_itself() -> None:
    rng, metric = np.random.default_rng(0), find_metric("accuracy")
    labels = rng.integers(0, 2, 300)
    sides = [
        np.stack(
            [
                metric.statistics(np.where(rng.random(300) < right, labels, 1 - labels), labels)
                for _ in range(4)
            ]
        )
        for right in (0.8, 0.75)
    ]
    alone = crossed_difference(metric, *sides, in_seeds=True, once=True)
    by_run = metric.finish(sides[0].sum(axis=1)) - metric.finish(sides[1].sum(axis=1))
    found = mean_over_fixed([OfRuns.of(alone, by_run, 300)])
    assert found.value == pytest.approx(alone.value)
    longer = max(alone.high - alone.value, alone.value - alone.low)
    assert found.high - found.value == pytest.approx(longer)
    assert found.freedom == pytest.approx(alone.freedom, rel=0.05)


def test_runs_that_agree_leave_the_error_of_examples() -> None:
    metric, labels = find_metric("accuracy"), np.ones(50)
    sides = [np.stack([metric.statistics(said, labels)] * 3) for said in (labels, 0 * labels)]
    alone = crossed_difference(metric, *sides, in_seeds=True)
    found = mean_over_fixed([OfRuns.of(alone, [1.0] * 3, 50)] * 2, within=(-1, 1))
    assert found.unit == "examples"
    assert 0.9 < found.low < found.high == 1


def test_a_number_that_may_be_any_leaves_the_mean_open() -> None:
    unknown = Estimate(0.5, -math.inf, math.inf, 100)
    known = Estimate(0.5, 0.4, 0.6, 100)
    parts = [OfRuns.of(one, [0.4, 0.6, 0.5], 100) for one in (unknown, known)]
    found = mean_over_fixed(parts)
    assert (found.value, found.low, found.high) == (0.5, -math.inf, math.inf)


def test_without_a_second_run_there_is_no_interval() -> None:
    found = mean_over_fixed([OfRuns(0.1, 1, 50, math.nan, math.nan), OfRuns(0, 3, 50, 0.1, 0.1)])
    assert found.value == pytest.approx(0.05)
    assert math.isnan(found.low)
    with pytest.raises(DataError, match="one at least"):
        mean_over_fixed([])
