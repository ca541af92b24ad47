"""Means of many quantities over the same examples: bounds that cover, alone and together."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.errors import DataError, ParameterError
from bertology.stats import mean_interval
from bertology.stats.partial_means import partial_means


def test_alone_they_are_students() -> None:
    values = np.random.default_rng(0).exponential(size=(40, 3))
    found = partial_means(values.T)
    for i in range(3):
        one = mean_interval(values[:, i])
        assert (found.value[i], found.low[i]) == pytest.approx((one.value, one.low))
    assert (found.simultaneous_low < found.low).all()
    assert (found.high < found.simultaneous_high).all()


def test_one_quantity_needs_little_correction() -> None:
    found = partial_means(np.random.default_rng(0).normal(size=(1, 200)), resamples=20_000)
    widths = found.high - found.low, found.simultaneous_high - found.simultaneous_low
    assert 1 < widths[1] / widths[0] < 1.45  # the price of bounds that allow for skew


def test_together_they_cover_as_often_as_they_say() -> None:
    """Correlated columns over few examples: the hardest of what studies give."""
    rng, covered = np.random.default_rng(0), 0
    for seed in range(300):
        common = rng.normal(size=(30, 1))
        values = common + rng.normal(size=(30, 12))
        found = partial_means(values.T, resamples=300, level=0.9, seed=seed)
        covered += bool(((found.simultaneous_low < 0) & (found.simultaneous_high > 0)).all())
    assert covered / 300 > 0.87


@pytest.mark.parametrize("examples", [3, 8, 200])
def test_few_or_skewed_examples_make_no_false_claims(examples: int) -> None:
    """As many columns as a model has heads, over fewer examples than columns."""
    rng, missed = np.random.default_rng(1), 0
    for seed in range(40):
        values = rng.normal(size=(examples, 100))
        if examples > 100:
            values = np.exp(values) - np.exp(0.5)  # the mean is 0, and most values lie below it
        found = partial_means(values.T, resamples=100, seed=seed)
        missed += bool(((found.simultaneous_low > 0) | (found.simultaneous_high < 0)).any())
    assert missed <= 5  # 2 are expected


def test_what_never_varies_is_what_it_is() -> None:
    found = partial_means(np.full((2, 10), 0.25))
    assert (found.simultaneous_low == 0.25).all()
    assert (found.high == 0.25).all()


def test_what_is_no_table_is_refused() -> None:
    for bad in (np.zeros(4), np.zeros((0, 4))):
        with pytest.raises(DataError, match="quantities by examples"):
            partial_means(bad)
    with pytest.raises(ParameterError, match="level"):
        partial_means(np.zeros((2, 4)), level=1.0)
