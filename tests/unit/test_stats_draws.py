"""Chosen sets against random draws, and marks in the same positions: how often they err."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.stats.over_draws import (
    enough_draws,
    fewest_draws,
    in_most_rows,
    jackknifed,
    over_draws,
    shared_positions,
)


def test_one_more_draw_beats_twenty_in_less_than_five_per_cent() -> None:
    """Whatever the draws' distribution: here one set in ten is ten times as large."""
    rng, held = np.random.default_rng(0), 0
    for seed in range(100):
        size = rng.exponential(size=21) * np.where(rng.random(21) < 0.1, 10, 1)
        values = size[:, None] + rng.standard_normal((21, 40))
        found = over_draws(values[0] - values[1:], resamples=100, seed=seed)
        assert found is not None
        assert found.low <= found.value <= found.high
        held += found.low > 0
    assert held <= 11  # 1 of 21 is 4.8 of 100; more than 11 come in less than 1 % of cases


def test_a_set_that_does_more_than_all_is_found_and_one_that_does_less_too() -> None:
    noise = np.random.default_rng(1).standard_normal((20, 60))
    more = over_draws(5 + noise, resamples=200)
    assert more is not None
    assert 3 < more.low < 5 < more.high + 1
    less = over_draws(noise - 5, resamples=200)
    assert less is not None
    assert less.high < 0


def test_beating_every_draw_is_enough_and_more_texts_do_not_make_it_surer() -> None:
    rows = 0.05 + np.random.default_rng(4).standard_normal((20, 60)) * 0.02
    rows += np.random.default_rng(4).standard_normal(60) * 0.2  # texts differ by more
    found = over_draws(rows + 0.02, resamples=200)
    assert found is not None
    assert 0 < found.low < 1e-6
    assert found.tested == (0.0, pytest.approx(1 / 21))
    strict = found.at_level(0.99)  # takes 99 draws
    assert strict.low <= 0
    assert strict.expected_at(100_000).low <= 0


def test_less_than_random_is_said_against_the_median_of_the_draws_not_their_mean() -> None:
    """One draw that holds what rules the model does not make the chosen set less than usual."""
    noise = np.random.default_rng(2).standard_normal((30, 60)) * 0.1
    rows = 0.5 + noise
    rows[7] -= 60
    assert rows.mean() < -1
    found = over_draws(rows, resamples=200)
    assert found is not None
    assert found.value == pytest.approx(0.5, abs=0.05)
    assert found.low < -50
    assert found.high > 0.4


def test_nineteen_draws_are_enough_for_95_per_cent_and_eighteen_are_not() -> None:
    assert enough_draws(19, 0.95)
    assert not enough_draws(18, 0.95)
    assert [fewest_draws(level) for level in (0.9, 0.95, 0.99)] == [9, 19, 99]
    assert over_draws(np.ones((18, 30))) is None


def test_pseudo_values_of_a_mean_are_the_values() -> None:
    x = np.random.default_rng(0).standard_normal(30)
    sums = np.stack([x, np.ones(30)], axis=1)
    found = jackknifed(sums, lambda total: np.array([total[0] / total[1]]))
    assert found[0] == pytest.approx(x)


def test_marks_in_one_column_are_in_the_same_position_and_scattered_ones_are_not() -> None:
    rng = np.random.default_rng(0)
    far = rng.random((12, 64))
    same = far > 0.97
    same[:, 5] = True
    found = shared_positions(same, resamples=200)
    assert found is not None
    assert found.low > 0.05
    assert found.low == found.value == found.high  # layers are counted, and not sampled
    leading = in_most_rows(same, resamples=200)
    assert leading.low == leading.value == leading.high == 1
    held = np.zeros(2)
    for _ in range(200):
        marked = rng.random((12, 64)) > 0.97
        chance = (shared_positions(marked, resamples=99), in_most_rows(marked, resamples=99))
        held += [one is not None and one.low > 0 for one in chance]
    assert (held <= 18).all()  # 10 of 200 may be


def test_what_positions_have_by_chance_is_open_and_says_why() -> None:
    marked = np.random.default_rng(0).random((3, 8)) > 0.4
    found = in_most_rows(marked)
    assert found.low == 0 < found.value == found.high
    assert "drawn anew" in found.remedy
    assert found.expected_at(3000).low == 0  # more layers are not to be had


def test_too_few_rows_with_marks_say_nothing() -> None:
    marked = np.zeros((6, 8), bool)
    marked[:2, 3] = True
    assert shared_positions(marked) is None
    assert in_most_rows(np.zeros((6, 8), bool)).value == 0
