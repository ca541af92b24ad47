"""Where a measure emerges in a run: planted steps are found, and told from chance if possible."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from bertology.errors import DataError
from bertology.stats import Estimate
from bertology.stats.emergence import chance_p, emergence

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
        assert found.p < 0.05


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
    assert few.at is not None
    assert (few.at.low, few.at.high) == (100, 316)
    assert math.isnan(few.p)  # of chance, three steps tell nothing
    with pytest.raises(DataError, match="rising"):
        emergence([0, 0], measured([0.1, 0.2]))


def test_a_steady_rise_is_told_from_chance() -> None:
    values = measured([0.1, 0.17, 0.24, 0.31, 0.38, 0.45], half=0.01)
    found = emergence(STEPS[:6], values, resamples=500)
    assert found.at is not None
    assert found.at.low == 316
    assert found.p < 0.05


def test_exact_values_need_no_interval() -> None:
    found = emergence(STEPS, measured([0, 0, 0, 5, 5, 5, 5, 5], half=0.0), resamples=200)
    assert found.at is not None
    assert (found.at.low, found.at.high) == (316, 1000)


@pytest.mark.parametrize(("wandering", "drift"), [(0.0, 0.0), (0.1, 0.0), (0.0, 0.05), (0.0, 0.2)])
def test_chance_is_seldom_called_more_and_the_crossing_is_that_of_the_run(
    wandering: float, drift: float
) -> None:
    """Any two steps surely differ: of random walks, "emerges" was said in 30 to 70 %."""
    rng, beyond_chance, wrong, draws = np.random.default_rng(0), 0, 0, 200
    for draw in range(draws):
        truth = 0.5 + rng.normal(0, wandering, 8) + np.cumsum(rng.normal(0, drift, 8))
        values = truth + rng.normal(0, 0.01, 8)
        found = emergence(STEPS, measured(values.tolist()), resamples=200, seed=draw)
        if found.at is None:
            continue
        beyond_chance += found.p < 0.05
        short = (truth - truth[[0, -1]].mean()) * np.sign(truth[-1] - truth[0]) <= 0
        last = int(np.flatnonzero(short)[-1])
        after = STEPS[min(last + 1, 7)]
        wrong += not (found.at.low <= STEPS[last] and after <= found.at.high)
    assert max(beyond_chance, wrong) <= binom.ppf(0.999, draws, 0.05)


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


def test_the_tests_of_chance_are_fair() -> None:
    rng = np.random.default_rng(2)
    for draw in (rng.normal(size=(200, 6)), np.cumsum(rng.normal(size=(200, 6)), axis=1)):
        p = [chance_p(values, resamples=300, seed=k) for k, values in enumerate(draw)]
        assert sum(v <= 0.05 for v in p) <= binom.ppf(0.999, 200, 0.05)
    assert math.isnan(chance_p([1.0, 2.0, 3.0]))
    assert chance_p([1.0] * 5, resamples=100) == 1  # nothing changes at all
