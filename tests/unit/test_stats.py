"""Intervals and paired comparisons: known answers and laws. Error rates: test_stats_errors."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from scipy.optimize import brentq

from bertology.errors import DataError, ParameterError
from bertology.metrics import METRICS, Metric
from bertology.stats import (
    Estimate,
    PairedEffects,
    bootstrap_weights,
    bounded_mean_bounds,
    holm,
    mean_interval,
    paired_bootstrap,
    percentile_interval,
    rank_correlation,
)
from bertology.stats.multiplicity import RowBlocks
from bertology.stats.paired import influences, simultaneous

p_values = st.lists(st.floats(0, 1), min_size=1, max_size=30)


def flipped(rng: np.random.Generator, labels: np.ndarray, rate: float) -> np.ndarray:
    return np.where(rng.random(labels.shape) < rate, 1 - labels, labels)


def compare(metric: Metric, targets: np.ndarray, *runs: np.ndarray, **how: int) -> PairedEffects:
    base, *variants = (metric.statistics(run, targets) for run in runs)
    return paired_bootstrap(metric, base, np.stack(variants), **how)


def test_variants_may_come_a_few_at_a_time() -> None:
    rng, metric = np.random.default_rng(0), METRICS["f1"]
    labels = rng.integers(0, 2, 60)
    base, *variants = (metric.statistics(flipped(rng, labels, 0.1), labels) for _ in range(6))
    whole = paired_bootstrap(metric, base, np.stack(variants), resamples=200)
    blocks = RowBlocks(lambda: (np.stack(variants[i : i + 2]) for i in (0, 2, 4)))
    parts = paired_bootstrap(metric, base, blocks, resamples=200)
    for name in ("score", "low", "high", "simultaneous_low", "p", "p_adjusted"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), atol=1e-12)


def test_estimate_excludes_and_travels_as_json() -> None:
    estimate = Estimate(np.float32(0.5), np.float64(0.25), 0.75, np.int64(10))
    assert estimate.excludes(0.2)
    assert estimate.excludes(0.8)
    assert not estimate.excludes(0.25)
    assert not Estimate(math.nan, math.nan, math.nan, 0).excludes(0)
    more = Estimate(0.5, 0.25, 0.75, 10, tested=(0.0, 0.01), foreseen=((20, 0.3, 0.7),))
    for one in (estimate, more):
        record = json.loads(json.dumps(one.as_record()))
        assert record == one.as_record(), "a record is what is read back of it"
        assert Estimate(**record) == one


def test_mean_interval_is_students() -> None:
    x = np.random.default_rng(0).normal(size=20)
    low, high = scipy_stats.t.interval(0.9, 19, x.mean(), scipy_stats.sem(x))
    estimate = mean_interval(x, level=0.9)
    assert (estimate.low, estimate.high) == pytest.approx((low, high))
    with pytest.raises(DataError, match="two finite values"):
        mean_interval([1.0])


def test_percentile_interval_takes_the_middle() -> None:
    low, high = percentile_interval(np.arange(101.0), level=0.9)
    assert (float(low), float(high)) == pytest.approx((5, 95))
    with pytest.raises(ParameterError, match=r"strictly between 0 and 1, such as 0\.95"):
        percentile_interval([1.0, 2.0], level=95)


def test_rank_correlation_is_spearmans() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=144)
    y = x + rng.normal(size=144)
    estimate = rank_correlation(x, y, resamples=500, seed=0)
    assert estimate.value == pytest.approx(scipy_stats.spearmanr(x, y).statistic)
    assert estimate.low < estimate.value < estimate.high
    assert estimate.excludes(0)
    assert rank_correlation(x, y, resamples=500, seed=0) == estimate
    assert rank_correlation(x, np.ones(144), resamples=50).value == 0
    with pytest.raises(DataError, match="same length"):
        rank_correlation(x, y[:-1])


@settings(deadline=None)
@given(p_values)
def test_holm_rejects_what_its_steps_reject(p: list[float]) -> None:
    adjusted = holm(p)
    rejected = 0
    for rank, value in enumerate(sorted(p)):
        if value * (len(p) - rank) > 0.05:
            break
        rejected += 1
    assert (adjusted <= 0.05).sum() == rejected
    assert (adjusted >= np.asarray(p)).all()


def test_p_values_outside_zero_and_one_are_refused() -> None:
    with pytest.raises(DataError, match=r"from 0\.2 to 1\.5"):
        holm([0.2, 1.5])
    with pytest.raises(DataError, match="between 0 and 1"):
        holm([np.nan])


def test_bounds_of_events_never_seen_are_the_rule_of_three() -> None:
    low, high = bounded_mean_bounds(np.zeros((1, 400)), None, low=0, high=1, budget=np.log(20))
    assert low[0] == pytest.approx(0, abs=1e-9)
    assert high[0] == pytest.approx(1 - 0.05 ** (1 / 400))


@settings(deadline=None, max_examples=40)
@given(ones=st.integers(0, 50), budget=st.floats(0.1, 20))
def test_bounds_of_a_proportion_spend_the_budget(ones: int, budget: float) -> None:
    values, counts = np.array([[0.0, 1.0]]), np.array([[50 - ones, ones]])
    low, high = bounded_mean_bounds(values, counts, low=0, high=1, budget=budget)
    for bound in (low[0], high[0]):
        assert 0 <= bound <= 1
        if 1e-9 < bound < 1 - 1e-9:  # 50 * KL(observed || bound) is the whole budget
            share = np.array([50 - ones, ones]) / 50
            other = np.array([1 - bound, bound])
            kl = sum(s * np.log(s / o) for s, o in zip(share, other, strict=True) if s)
            assert 50 * kl == pytest.approx(budget, rel=1e-3)


@pytest.mark.parametrize("seed", range(6))
def test_bounds_are_those_of_a_plain_search(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, budget = rng.beta(0.3, 2, size=(4, 25)), np.exp(rng.uniform(-2, 3, size=4))
    found = bounded_mean_bounds(x, None, low=0, high=1, budget=budget)[1]
    for row, nats, bound in zip(x, budget / 25, found, strict=True):

        def over(gap: float, row: Any = row, nats: float = nats) -> float:
            below = 1 + np.exp(gap) - row
            return float(np.log(below).mean() + np.log((1 / below).mean()) - nats)

        if over(-27.0) < 0:  # mass where nothing was seen
            continue
        tilt = 1 / (1 + np.exp(brentq(over, -27.0, 18.0, xtol=1e-14)) - row)
        assert bound == pytest.approx((tilt * row).sum() / tilt.sum(), abs=1e-11)


def test_bounds_of_a_large_sample_are_the_normal_ones() -> None:
    x = np.random.default_rng(0).uniform(-1, 1, size=(1, 20_000))
    low, high = bounded_mean_bounds(x, None, low=-1, high=1, budget=1.96**2 / 2)
    half = 1.96 * x.std() / np.sqrt(x.size)
    assert (high - low)[0] / 2 == pytest.approx(half, rel=0.01)
    empty = bounded_mean_bounds(np.zeros((1, 1)), np.zeros((1, 1)), low=-1, high=2, budget=3)
    assert (empty[0][0], empty[1][0]) == (-1, 2)


def test_weights_are_resamples() -> None:
    weights = bootstrap_weights(30, 200, seed=3)
    assert weights.shape == (200, 30)
    assert weights.dtype == np.float32
    assert (weights.sum(axis=1) == 30).all()
    assert (weights == bootstrap_weights(30, 200, seed=3)).all()
    assert (weights != bootstrap_weights(30, 200, seed=4)).any()
    with pytest.raises(ParameterError, match="resamples"):
        bootstrap_weights(30, 0)


@pytest.mark.parametrize("name", ["accuracy", "f1", "matthews"])
def test_paired_bootstrap_is_the_plain_loop(name: str) -> None:
    rng = np.random.default_rng(0)
    targets = rng.integers(0, 2, 120)
    runs = [flipped(rng, targets, rate) for rate in (0.2, 0.25, 0.5)]
    metric = METRICS[name]
    effects = compare(metric, targets, *runs, resamples=100, seed=5)
    loop = []
    for weights in bootstrap_weights(120, 100, seed=5).astype(int):
        pick = np.repeat(np.arange(120), weights)
        loop.append([metric.score(run[pick], targets[pick]) for run in runs])
    scores = np.array(loop)
    low, high = percentile_interval(scores[:, 1:] - scores[:, :1])
    np.testing.assert_allclose(effects.low, low, atol=1e-9)
    np.testing.assert_allclose(effects.high, high, atol=1e-9)
    score_low, _ = percentile_interval(scores)
    np.testing.assert_allclose([effects.base.low, *effects.score_low], score_low, atol=1e-9)
    assert effects.base.value == pytest.approx(metric.score(runs[0], targets))
    np.testing.assert_allclose(effects.difference, effects.score - effects.base.value)


@pytest.mark.parametrize("name", list(METRICS))
def test_variants_that_change_nothing(name: str) -> None:
    rng = np.random.default_rng(0)
    targets = rng.integers(0, 2, 100)
    base = flipped(rng, targets, 0.2)
    effects = compare(METRICS[name], targets, base, base, base, resamples=100)
    assert (effects.difference == 0).all()
    # Sums of equal numbers may differ by rounding, as the machine's libraries add them up.
    np.testing.assert_allclose([effects.low, effects.high], 0, atol=1e-12)
    assert (effects.p == 1).all()
    assert (effects.p_adjusted == 1).all()
    # Flips that did not occur in 100 examples may still exist.
    assert (effects.simultaneous_high > 0).all() == METRICS[name].discrete


@pytest.mark.parametrize("name", list(METRICS))
def test_a_planted_effect_is_found_among_nulls(name: str) -> None:
    rng = np.random.default_rng(0)
    targets = rng.integers(0, 2, 400)
    base = flipped(rng, targets, 0.25)
    better = np.where(rng.random(400) < 0.4, targets, base)
    nulls = [flipped(rng, targets, 0.25) for _ in range(20)]
    effects = compare(METRICS[name], targets, base, better, *nulls, resamples=300)
    assert effects.difference.argmax() == 0
    assert effects.simultaneous_low[0] > 0
    assert effects.p_adjusted[0] < 0.05
    assert (effects.p_adjusted[1:] > 0.05).all()
    assert list(effects.sure) == [True] + 20 * [False]


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 10_000), name=st.sampled_from(list(METRICS)))
def test_intervals_nest_and_agree_with_p(seed: int, name: str) -> None:
    rng = np.random.default_rng(seed)
    targets = rng.integers(0, 2, 60)
    runs = [flipped(rng, targets, rate) for rate in (0.3, 0.05, 0.2, 0.3, 0.7)]
    effects = compare(METRICS[name], targets, *runs, resamples=100)
    tolerance = 1e-7
    assert (effects.simultaneous_low <= effects.difference + tolerance).all()
    assert (effects.simultaneous_high >= effects.difference - tolerance).all()
    assert (effects.p_adjusted >= effects.p).all()
    outside = (effects.simultaneous_low > 0) | (effects.simultaneous_high < 0)
    assert (outside == effects.sure).all()
    assert (effects.alone_low <= effects.difference + tolerance).all()
    assert (effects.alone_high >= effects.difference - tolerance).all()


def test_simultaneous_bounds_exclude_zero_where_p_is_small() -> None:
    rng = np.random.default_rng(0)
    values = rng.choice([-1.0, 0.0, 1.0], p=[0.02, 0.9, 0.08], size=(40, 300))
    strict = simultaneous(values, np.ones(40), resamples=500)
    outside = (strict.low > 0) | (strict.high < 0)
    assert 0 < outside.sum() < 40
    assert (strict.p[outside] < 0.06).all()


def test_influences_of_accuracy_are_the_differences() -> None:
    rng = np.random.default_rng(0)
    targets = rng.integers(0, 2, 50)
    base, variant = flipped(rng, targets, 0.2), flipped(rng, targets, 0.3)
    metric = METRICS["accuracy"]
    one, other = (metric.statistics(run, targets) for run in (base, variant))
    psi, reach = influences(metric, one, other[None])
    np.testing.assert_allclose(psi[0], (other - one)[:, 0], atol=1e-9)
    assert reach[0] == pytest.approx(1)


def test_shapes_that_do_not_fit_are_refused() -> None:
    rows = np.ones((10, 2))
    with pytest.raises(DataError, match=r"Got \(10, 2\) and \(1, 9, 2\)"):
        paired_bootstrap(METRICS["f1"], rows, np.ones((1, 9, 2)))
    with pytest.raises(ParameterError, match="level"):
        paired_bootstrap(METRICS["f1"], rows, rows[None], level=1.0)
