"""What recurs over runs, and comparisons within layers, against plain references."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, spearmanr, ttest_ind

from bertology.stats.recurrence import (
    rank_association_within,
    recurs,
    runs_needed,
    share_difference_within,
    surely_often,
)


def test_the_p_value_is_that_of_the_largest_of_random_draws() -> None:
    rng = np.random.default_rng(0)
    runs = np.zeros((8, 1, 20))
    for row in runs:
        row[0, rng.choice(20, 8, replace=False)] = 1
    (p,), _ = surely_often([runs], resamples=4000)
    draws = [
        max(sum(np.isin(np.arange(20), rng.choice(20, 8, replace=False)) for _ in range(8)))
        for _ in range(4000)
    ]
    expected = [(np.array(draws) >= count).mean() for count in runs.sum(0)[0]]
    np.testing.assert_allclose(p[0], expected, atol=0.04)


def test_one_thing_alone_has_nearly_the_binomial_tail() -> None:
    # Corrected for two kinds of one thing each would be trivial: of 200 the first is at its tail.
    rng = np.random.default_rng(1)
    runs = np.array([rng.permutation(np.arange(200) < 100) for _ in range(12)], float)[:, None]
    runs[:, 0, 0], runs[:, 0, 1] = 1, 0
    (p,), _ = surely_often([runs], resamples=4000)
    alone = binom.sf(11, 12, 0.5)
    assert p[0, 0] == pytest.approx(1 - (1 - alone) ** 200, abs=0.02)


def test_kinds_are_corrected_together() -> None:
    rng = np.random.default_rng(2)
    heads = (rng.random((10, 1, 30)) < 0.5).astype(float)
    heads[:, 0, 0] = 1
    (alone,), _ = surely_often([heads], resamples=2000)
    mlps = (rng.random((10, 1, 30)) < 0.5).astype(float)
    (beside, _), _ = surely_often([heads, mlps], resamples=2000)
    assert beside[0, 0] > alone[0, 0]


def test_errors_are_kept() -> None:
    rng, false, agreed = np.random.default_rng(3), 0, 0
    for draw in range(60):
        rows = rng.permuted(np.tile(np.arange(12) < 6, (8, 5, 1)), axis=-1).astype(float)
        (p,), _ = surely_often([rows], resamples=200, seed=draw)
        false += bool((p < 0.05).any())
        agreed += recurs(rows, resamples=200, seed=draw) < 0.05
    assert false <= 7
    assert agreed <= 7


def test_what_groups_tell_is_no_agreement_on_things() -> None:
    rng = np.random.default_rng(4)
    rows = (rng.random((6, 5, 12)) < np.linspace(0.1, 0.9, 5)[:, None]).astype(float)
    assert recurs(rows.reshape(6, 1, 60), resamples=400) < 0.01
    assert recurs(rows, resamples=400) > 0.05
    rows[:, :, 0] = 1
    assert recurs(rows, resamples=400) < 0.01


def test_how_many_runs_it_takes() -> None:
    assert runs_needed(0.5, 100) == 11  # 0.5 ** 11 < 0.05 / 100 < 0.5 ** 10
    assert runs_needed(1.0, 100) is None


def test_shares_of_one_group_are_compared_as_by_welch() -> None:
    rng = np.random.default_rng(5)
    x, y = np.arange(400) < 150, rng.random(400)
    found = share_difference_within(y, x, np.zeros(400))
    assert found is not None
    welch = ttest_ind(y[x], y[~x], equal_var=False).confidence_interval()
    assert found.value == pytest.approx(y[x].mean() - y[~x].mean())
    assert (found.low, found.high) == pytest.approx((welch.low, welch.high), abs=0.003)


def test_shares_that_differ_by_group_are_not_taken_for_a_difference() -> None:
    group = np.repeat([0, 1], 100)
    x = np.concatenate([np.arange(100) < 80, np.arange(100) < 20])
    found = share_difference_within(np.where(group == 0, 0.9, 0.1), x, group)
    assert found is not None
    assert found.value == pytest.approx(0, abs=1e-12)
    assert found.low < 0 < found.high


def test_a_few_that_all_have_nothing_are_not_sure() -> None:
    x = np.arange(60) < 6
    found = share_difference_within(np.zeros(60), x, np.zeros(60))
    assert found is not None
    assert found.high > 0.15
    assert share_difference_within(np.zeros(60), np.arange(60) < 4, np.zeros(60)) is None


def test_ranks_of_one_group_are_spearmans() -> None:
    rng = np.random.default_rng(6)
    a = rng.normal(size=80)
    b = 0.5 * a + rng.normal(size=80)
    found = rank_association_within(a, b, np.zeros(80), resamples=4000)
    assert found is not None
    rho, p = found
    expected = spearmanr(a, b)
    assert rho.value == pytest.approx(expected.statistic)
    assert p == pytest.approx(expected.pvalue, abs=0.003)
    half = 1.96 / np.sqrt(77)
    ends = np.tanh(np.arctanh(rho.value) + np.array([-half, half]))
    assert (rho.low, rho.high) == pytest.approx(tuple(ends), abs=0.03)


def test_ranks_that_differ_by_group_are_no_association() -> None:
    rng = np.random.default_rng(7)
    group = np.repeat(np.arange(10), 12)
    a, b = group + rng.normal(size=(2, 120))
    found = rank_association_within(a, b, group, resamples=1000)
    assert found is not None
    rho, p = found
    assert rho.low < 0 < rho.high
    assert p > 0.05
    assert rank_association_within(np.ones(120), b, group) is None
