"""Means over a few words: Student's where nothing is skewed, and right where something is."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.stats import mean_interval
from bertology.stats.skewed_means import least_skewed_mean, skewed_mean, skewed_means

WIDE = (-10.0, 10.0)


def test_one_mean_has_the_farther_of_both_bounds() -> None:
    rng = np.random.default_rng(3)
    long_tailed = rng.exponential(0.1, 40)
    mean, low, high = skewed_means(long_tailed, within=(0.0, 1.0))
    found = skewed_mean(np.append(long_tailed, np.nan), within=(0.0, 1.0))
    half = 2.0226909 * long_tailed.std(ddof=1) / 40**0.5  # Student's quantile for 39
    assert found is not None
    assert (found.value, found.n, found.unit) == (pytest.approx(float(mean)), 40, "examples")
    assert found.high == pytest.approx(max(float(high), float(mean) + half))
    assert found.low == pytest.approx(min(float(low), float(mean) - half), rel=1e-4)
    assert skewed_mean(long_tailed[:4], within=(0.0, 1.0)) is None


def test_without_skewness_it_is_students_interval() -> None:
    half = np.random.default_rng(0).normal(size=10)
    values = np.concatenate([half, -half]) + 0.3
    student = mean_interval(values)
    mean, low, high = skewed_means(values, within=WIDE)
    assert [mean, low, high] == pytest.approx([student.value, student.low, student.high])


def test_the_cubic_is_turned_around() -> None:
    """Put into Hall's formula, both bounds have Student's quantiles."""
    values = np.random.default_rng(1).beta(8, 1, 20)
    mean, *bounds = skewed_means(values, within=WIDE)
    n, spread = 20, values.std(ddof=1)
    skew = ((values - mean) ** 3).mean() / spread**3
    for bound, quantile in zip(bounds, (2.0930, -2.0930), strict=True):
        d = (mean - bound) / spread
        t = d + skew * d**2 / 3 + skew**2 * d**3 / 27 + skew / (6 * n)
        assert np.sqrt(n) * t == pytest.approx(quantile, abs=1e-3)
    assert mean - bounds[0] > bounds[1] - mean  # the long tail is below


@pytest.mark.parametrize("n", [20, 50])
@pytest.mark.parametrize(("a", "b"), [(8, 1), (1, 4), (0.5, 0.5)])
def test_intervals_of_skewed_scores_hold_and_are_short(n: int, a: float, b: float) -> None:
    values = np.random.default_rng(2).beta(a, b, size=(n, 4000))
    truth, spread = a / (a + b), np.sqrt(a * b / (a + b + 1)) / (a + b)
    _, low, high = skewed_means(values, within=(0.0, 1.0))
    assert ((low > truth) | (high < truth)).mean() < 0.066
    assert np.median(high - low) < 1.25 * 2 * 2.1 * spread / np.sqrt(n)


def test_bounds_stay_within_what_is_possible() -> None:
    values = np.array([1.0] * 7 + [0.0] * 3)
    _, low, high = skewed_means(values, within=(0.0, 1.0))
    assert 0 < low < 0.7 < high <= 1


def test_one_word_far_off_does_not_take_the_bound_with_it() -> None:
    """Hall's cubic alone would give 0.8 for one of fourteen; exact bounds of a share give 0.34."""
    values = np.zeros(14)
    values[3] = 1.0
    _, low, high = skewed_means(values, within=(0.0, 1.0))
    assert 0 <= low < 1 / 14
    assert 0.3 < high < 0.42


def test_words_that_are_all_alike_are_not_sure_to_the_last_digit() -> None:
    mean, low, high = skewed_means(np.ones(20), within=(0.0, 1.0))
    assert (mean, high) == (1, 1)
    assert low == pytest.approx(0.025 ** (1 / 20))  # so many all right: Clopper and Pearson's
    assert skewed_means(np.zeros(20), within=(-1.0, 1.0))[1] < 0


def test_a_handful_of_words_has_no_interval() -> None:
    mean, low, high = skewed_means(np.arange(4.0), within=WIDE)
    assert mean == 1.5
    assert np.isnan([low, high]).all()


def test_the_smallest_mean_takes_the_smallest_bounds() -> None:
    rows = list(np.random.default_rng(3).normal([0.5, 0.1], 0.3, (20, 2)).T)
    found = least_skewed_mean(rows, within=(-1.0, 1.0), unit="lemmas")
    lows = [skewed_means(row, within=(-1.0, 1.0))[1] for row in rows]
    highs = [skewed_means(row, 0.975, within=(-1.0, 1.0))[2] for row in rows]
    assert found.value == pytest.approx(rows[1].mean())
    assert [found.low, found.high] == pytest.approx([min(lows), min(highs)])
    assert (found.n, found.unit) == (20, "lemmas")
