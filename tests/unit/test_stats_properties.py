"""Laws of every statistic: bounds, symmetry, scale, plain references, and extreme input.

`test_stats.py` and its neighbours hold known answers and error rates.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats as scipy_stats

from bertology.stats import bounded_mean_bounds, mean_interval, mean_intervals, rank_correlation
from bertology.stats.agreement import cohens_kappa, krippendorffs_alpha
from bertology.stats.best_of_many import cross_fitted, largest_of, smallest_of
from bertology.stats.contrasts import ratio_of_largest, ratio_of_means
from bertology.stats.intervals import distinct, evidence_against_zero
from bertology.stats.least_means import least_means
from bertology.stats.multiplicity import max_statistics, step_down
from bertology.stats.paired import simultaneous
from bertology.stats.partial_means import partial_means
from bertology.stats.repeated import adjusted, paired_p, repeated

Floats = NDArray[np.float64]
quickly = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 2**31)
scales = st.sampled_from([1e-12, 1e-3, 1.0, 1e6])
numbers = st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=3, max_size=30)
classes = st.lists(st.sampled_from("abc"), min_size=2, max_size=30)


def drawn(seed: int, *shape: int) -> Floats:
    """Normal numbers with a few far ones."""
    rng = np.random.default_rng(seed)
    found: Floats = rng.normal(size=shape) * np.where(rng.random(shape) < 0.05, 50.0, 1.0)
    return found


@quickly
@given(numbers, st.floats(0.5, 0.99))
def test_means_lie_in_their_intervals(values: list[float], level: float) -> None:
    one = mean_interval(values, level)
    assert one.low <= one.value <= one.high
    together = mean_intervals(np.array(values)[:, None], level)
    assert np.allclose([one.value, one.low, one.high], np.ravel(together), rtol=1e-9, atol=1e-6)
    mirrored = mean_interval(-np.array(values), level)
    assert np.allclose([mirrored.low, mirrored.high], [-one.high, -one.low])
    wider = mean_interval(values, (1 + level) / 2)
    assert wider.low <= one.low
    assert wider.high >= one.high


@settings(max_examples=10, deadline=None)
@given(seeds, st.integers(4, 30))
def test_rank_correlations_keep_their_bounds(seed: int, n: int) -> None:
    x, y = drawn(seed, 2, n)
    found = rank_correlation(x, y, resamples=50)
    assert -1 <= found.low <= found.high <= 1
    assert found.value == pytest.approx(scipy_stats.spearmanr(x, y).statistic)
    # Ranks alone count, and the order of the two does not.
    assert rank_correlation(np.exp(x / 50), y**3, resamples=50) == found
    assert rank_correlation(y, x, resamples=50) == found


@quickly
@given(seeds, st.integers(2, 40), st.floats(0.1, 20), scales)
def test_bounded_means_lie_between_the_sample_and_the_ends(
    seed: int, n: int, budget: float, scale: float
) -> None:
    values = np.clip(drawn(seed, 1, n), -1, 1) * scale
    low, high = bounded_mean_bounds(values, None, low=-scale, high=scale, budget=budget)
    mean, slack = values.mean(), 1e-6 * scale
    assert -scale - slack <= low[0] <= mean + slack
    assert mean - slack <= high[0] <= scale + slack
    more_low, more_high = bounded_mean_bounds(
        values, None, low=-scale, high=scale, budget=2 * budget
    )
    assert more_low[0] <= low[0] + slack
    assert more_high[0] >= high[0] - slack
    mirrored = bounded_mean_bounds(-values, None, low=-scale, high=scale, budget=budget)
    assert np.allclose([mirrored[0][0], mirrored[1][0]], [-high[0], -low[0]], atol=slack)
    support, counts = distinct(np.repeat(values, 2, axis=1))
    again = bounded_mean_bounds(support, counts, low=-scale, high=scale, budget=2 * budget)
    assert np.allclose([low[0], high[0]], np.ravel(again), atol=slack)


@quickly
@given(seeds, st.integers(2, 40))
def test_evidence_has_no_sign_and_no_unit(seed: int, n: int) -> None:
    values = np.clip(drawn(seed, 1, n), -1, 1)
    found = evidence_against_zero(values, None, reach=np.ones(1))
    assert found[0] >= 0
    assert np.allclose(evidence_against_zero(-values, None, reach=np.ones(1)), found)
    assert np.allclose(evidence_against_zero(values * 1e9, None, reach=np.full(1, 1e9)), found)
    assert evidence_against_zero(np.zeros((1, n)), None, reach=np.ones(1))[0] == 0


@quickly
@given(seeds, st.integers(1, 6), st.integers(4, 20), scales)
def test_step_down_keeps_the_order_of_statistics(
    seed: int, rows: int, n: int, scale: float
) -> None:
    null = max_statistics([drawn(seed, rows, n) * scale], resamples=60, seed=seed)
    assert null.shape == (60, rows)
    assert (null >= 0).all()
    observed = np.abs(drawn(seed + 1, rows))
    p = step_down(observed, null)
    assert ((p > 0) & (p <= 1)).all()
    order = np.argsort(-observed)
    assert (np.diff(p[order]) >= 0).all()
    alone = (1 + (null >= observed).sum(0)) / 61
    assert (p >= alone).all()  # correction never helps


@settings(max_examples=10, deadline=None)
@given(seeds, st.integers(1, 5), st.integers(4, 40))
def test_simultaneous_bounds_hold_the_means(seed: int, rows: int, n: int) -> None:
    values = np.clip(drawn(seed, rows, n), -1, 1)
    found = simultaneous(values, np.ones(rows), resamples=100)
    mean = values.mean(1)
    assert (found.low <= mean + 1e-7).all()
    assert (found.high >= mean - 1e-7).all()
    assert (np.abs([found.low, found.high]) <= 1 + 1e-7).all()
    assert ((found.p > 0) & (found.p <= 1)).all()


@settings(max_examples=10, deadline=None)
@given(seeds, st.integers(1, 5), st.integers(3, 60), scales)
def test_partial_means_scale_with_their_values(seed: int, rows: int, n: int, scale: float) -> None:
    values = drawn(seed, rows, n)
    values[np.random.default_rng(seed).random(values.shape) < 0.2] = np.nan
    found = partial_means(values, resamples=100)
    known = found.n > 1
    for low, high in (
        (found.low, found.high),
        (found.simultaneous_low, found.simultaneous_high),
    ):
        assert (low[known] <= found.value[known] + 1e-9).all()
        assert (high[known] >= found.value[known] - 1e-9).all()
        assert np.isnan(low[~known]).all()
    scaled = partial_means(values * scale, resamples=100)
    assert np.allclose(
        scaled.simultaneous_low, found.simultaneous_low * scale, rtol=1e-4, equal_nan=True
    )
    assert np.allclose(scaled.p_adjusted, found.p_adjusted, atol=0.05, equal_nan=True)


@quickly
@given(seeds, st.integers(1, 4), st.integers(3, 40), scales)
def test_the_least_of_several_means(seed: int, many: int, n: int, scale: float) -> None:
    rows = [drawn(seed + k, 3, n + k) * scale for k in range(many)]
    found = least_means(rows, margin=0.01 * scale)
    assert np.allclose(found.value, np.min([r.mean(1) for r in rows], axis=0))
    assert (found.low <= found.value).all()
    assert (found.value <= found.high).all()
    # Sure where the lower bound is above the margin; Holm may find more than the single bound.
    assert (found.p_adjusted[found.low > 0.01 * scale] < 0.05).all()
    again = least_means([*rows, rows[0]], margin=0.01 * scale)
    assert np.allclose(again.low, found.low)  # comparisons cost the lower bound nothing
    assert (again.high >= found.high - 1e-9 * scale).all()


@quickly
@given(seeds, st.integers(1, 10))
def test_the_best_of_many_can_be_found_in_the_table(seed: int, rows: int) -> None:
    value = drawn(seed, rows)
    low, high = value - np.abs(drawn(seed + 1, rows)), value + np.abs(drawn(seed + 2, rows))
    counts = np.arange(rows) + 2
    best = largest_of(value, low, high, n=counts, level=0.95)
    assert best is not None
    at = int(value.argmax())
    assert (best.value, best.low, best.n) == (value[at], low[at], counts[at])
    assert best.high == high.max()
    worst = smallest_of(-value, -high, -low, n=counts, level=0.95)
    assert worst is not None
    assert (worst.value, worst.low, worst.high) == (-best.value, -best.high, -best.low)
    assert largest_of(value, value * np.nan, high, n=counts, level=0.95) is None


@quickly
@given(seeds, st.integers(2, 60))
def test_values_of_known_support_keep_their_bounds_inside(seed: int, n: int) -> None:
    values = np.clip(np.abs(drawn(seed, 3, n)) / 20, 0, 1)
    values[0, 0] = np.nan
    found = partial_means(values, support=(0, 1), resamples=100)
    known = found.n > 1
    assert (found.simultaneous_low[known] >= 0).all()
    assert (found.simultaneous_high[known] <= 1).all()
    assert (found.simultaneous_low[known] <= found.value[known] + 1e-7).all()
    assert (found.simultaneous_high[known] >= found.value[known] - 1e-7).all()


@quickly
@given(seeds, st.integers(2, 40), scales)
def test_ratios_have_no_unit(seed: int, n: int, scale: float) -> None:
    top, bottom = np.abs(drawn(seed, 2, n)) + 0.1
    found = ratio_of_means(top, bottom)
    again = ratio_of_means(top * scale, bottom * scale)
    assert found is not None
    assert again is not None
    assert found.low <= found.value <= found.high
    assert np.allclose([found.value, found.low], [again.value, again.low], rtol=1e-6)
    assert ratio_of_means(top, -bottom) is None
    means = partial_means(np.stack([top, bottom]), within=(0, np.inf), resamples=100)
    largest = ratio_of_largest(means, np.array([True, False]), np.array([False, True]))
    assert largest is not None
    assert largest.low <= largest.value <= largest.high


@quickly
@given(seeds, st.integers(2, 30), st.integers(1, 8))
def test_what_is_chosen_on_one_half_is_scored_on_the_other(seed: int, n: int, many: int) -> None:
    scores = np.random.default_rng(seed).random((n, 2, many))
    base, means = cross_fitted(scores)
    assert np.allclose(means, scores.mean(0))
    # Nobody does better than with the best candidate of each example, or worse than the worst.
    assert (base <= scores.max(-1)).all()
    assert (base >= scores.min(-1)).all()
    spoilt = scores.copy()
    spoilt[0] = 1 - spoilt[0]  # what an example says does not choose its own candidate
    chosen = [
        np.isclose(s[0], b[0][:, None])
        for s, b in ((scores, base), (spoilt, cross_fitted(spoilt)[0]))
    ]
    assert (chosen[0] == chosen[1]).all()


@quickly
@given(classes, seeds)
def test_agreement_keeps_its_bounds(first: list[str], seed: int) -> None:
    second = [str(c) for c in np.random.default_rng(seed).choice(list("abc"), len(first))]
    one, two = (
        cohens_kappa(a, b, "abc", resamples=50) for a, b in ((first, second), (second, first))
    )
    if one.kappa is None:
        assert two.kappa is None
    else:
        assert two.kappa is not None
        assert one.kappa.value == pytest.approx(two.kappa.value)  # nobody is the better judge
        assert -1 <= one.kappa.value <= 1
        assert one.kappa.low <= one.kappa.value <= one.kappa.high
    alpha = krippendorffs_alpha(list(zip(first, second, strict=True)), resamples=50)
    if alpha is not None:
        assert alpha.value <= 1
        assert alpha.low <= alpha.high
    everyone = krippendorffs_alpha(list(zip(first, first, strict=True)), resamples=50)
    assert everyone is None or everyone.value == pytest.approx(1)


@quickly
@given(numbers, scales)
def test_repeated_runs_have_no_unit(values: list[float], scale: float) -> None:
    assume(np.ptp(values) > 1e-3)
    found = repeated(np.array(values))
    assert found.low <= found.value <= found.high
    p = paired_p(values)
    assert p == pytest.approx(float(scipy_stats.ttest_1samp(values, 0).pvalue), abs=1e-9)
    assert paired_p(-np.array(values)) == pytest.approx(p)
    if scale >= 1:  # below, runs may agree to the last digit that counts
        assert paired_p(np.array(values) * scale) == pytest.approx(p)


@quickly
@given(st.lists(st.one_of(st.floats(0, 1), st.just(math.nan)), min_size=1, max_size=20))
def test_adjusted_p_values_are_larger_and_in_order(p: list[float]) -> None:
    found, given_p = adjusted(p), np.array(p)
    known = ~np.isnan(given_p)
    assert (np.isnan(found) == ~known).all()
    assert (found[known] >= given_p[known]).all()
    assert (found[known] <= 1).all()
    order = np.argsort(given_p[known], kind="stable")
    assert (np.diff(found[known][order]) >= 0).all()
