"""Where a measure emerges: planted steps are found, wandering is not called emergence."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from bertology.errors import DataError
from bertology.stats import Estimate
from bertology.stats.emergence import emergence, wandering_p

STEPS = (0, 100, 316, 1000, 3162, 10000, 31623, 100000)


def measured(values: list[float], half: float = 0.02, n: int = 100) -> list[Estimate]:
    return [Estimate(v, v - half, v + half, n) for v in values]


def test_a_jump_is_found_between_its_two_steps() -> None:
    rising = [0.1, 0.11, 0.1, 0.1, 0.5, 0.52, 0.51, 0.5]
    for values in (rising, [-v for v in rising]):  # what falls emerges as well
        found = emergence(STEPS, measured(values), resamples=500)
        assert found.at is not None
        assert (found.at.low, found.at.high) == (1000, 3162)
        assert 1000 < found.at.value < 3162
        assert found.at.unit == "steps"
        assert abs(found.change.value) == pytest.approx(0.4)
        assert found.change.excludes(0)


def test_what_is_not_sure_widens_the_interval() -> None:
    found = emergence(STEPS, measured([0.1, 0.1, 0.1, 0.29, 0.31, 0.5, 0.5, 0.5]), resamples=500)
    assert found.at is not None
    assert (found.at.low, found.at.high) == (316, 10000)
    # What falls back has not emerged for good until it is up again.
    back = emergence(STEPS, measured([0.1, 0.1, 0.5, 0.5, 0.1, 0.5, 0.5, 0.5]), resamples=500)
    assert back.at is None or back.at.low == 3162


def test_steps_that_do_not_differ_or_are_too_few_say_so() -> None:
    flat = emergence(STEPS, measured([0.1] * 8), resamples=200)
    assert flat.at is None
    assert "surely differ" in flat.why_not
    few = emergence(STEPS[:3], measured([0.1, 0.1, 0.5]))
    assert few.at is None
    assert math.isnan(few.p)
    assert "fewer than" in few.why_not
    with pytest.raises(DataError, match="rising"):
        emergence([0, 0], measured([0.1, 0.2]))


def test_a_steady_rise_is_told_from_wandering() -> None:
    values = measured([0.1, 0.17, 0.24, 0.31, 0.38, 0.45], half=0.01)
    found = emergence(STEPS[:6], values, resamples=500)
    assert found.at is not None
    assert found.at.low == 316


def test_exact_values_need_no_interval() -> None:
    found = emergence(STEPS, measured([0, 0, 0, 5, 5, 5, 5, 5], half=0.0), resamples=200)
    assert found.at is not None
    assert (found.at.low, found.at.high) == (316, 1000)


@pytest.mark.parametrize("wandering", [0.0, 0.1])
def test_wandering_around_one_value_is_seldom_called_emergence(wandering: float) -> None:
    """0.1 is ten times what the intervals allow for: any two steps surely differ."""
    rng, claimed, draws = np.random.default_rng(0), 0, 200
    for draw in range(draws):
        values = 0.5 + rng.normal(0, wandering, 8) + rng.normal(0, 0.01, 8)
        found = emergence(STEPS, measured(values.tolist()), resamples=200, seed=draw)
        claimed += found.at is not None
    assert claimed <= binom.ppf(0.999, draws, 0.05)


def test_the_true_crossing_lies_within() -> None:
    """A slow rise, measured with noise: half of the way is reached at step 1000, by symmetry."""
    rng, missed, told = np.random.default_rng(1), 0, 0
    x = np.log1p(STEPS[1:])
    truth = 0.5 + 0.3 * np.tanh(2 * (x - x[[0, -1]].mean()))
    for draw in range(100):
        values = (truth + rng.normal(0, 0.03, truth.size)).tolist()
        found = emergence(STEPS[1:], measured(values, half=0.06), resamples=200, seed=draw)
        if found.at is not None:
            told += 1
            middle = math.expm1(float(x[[0, -1]].mean()))
            missed += not found.at.low <= middle <= found.at.high
    assert told > 80
    assert missed <= 0.05 * told


def test_the_test_of_wandering_is_fair() -> None:
    rng = np.random.default_rng(2)
    p = [wandering_p(rng.normal(size=6), resamples=300, seed=k) for k in range(200)]
    assert sum(v <= 0.05 for v in p) <= binom.ppf(0.999, 200, 0.05)
    assert math.isnan(wandering_p([1.0, 2.0, 3.0]))
