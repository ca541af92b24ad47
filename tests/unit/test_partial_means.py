"""Means over examples that lack some quantities, and contrasts made of them."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.errors import DataError
from bertology.stats.contrasts import ratio_of_largest, ratio_of_means
from bertology.stats.multiplicity import RowBlocks
from bertology.stats.partial_means import partial_means


def test_a_few_equal_values_are_not_sure() -> None:
    """Three sentences with the same difference had an interval without width."""
    for n, sure in ((3, False), (5, False), (6, True), (40, True)):
        found = partial_means(np.full((1, n), 0.2), resamples=100)
        assert (found.simultaneous_low[0] > 0, found.p_adjusted[0] < 0.05) == (sure, sure)
    still = partial_means(np.zeros((1, 3)), resamples=100)
    assert (still.simultaneous_low[0], still.simultaneous_high[0]) == (0, 0)
    many = partial_means(np.full((20, 6), 0.2), resamples=100)
    assert (many.simultaneous_low <= 0).all()  # corrected for twenty


def test_skewed_values_keep_what_verdicts_on_eight_tasks_promise() -> None:
    """Student's interval and the percentile bootstrap err in 16 % of pages here."""
    rng, false = np.random.default_rng(0), 0
    for _ in range(60):
        drawn = (rng.exponential(size=(1, 30)) - 1 for _ in range(8))
        found = [partial_means(x, resamples=100).estimate(0) for x in drawn]
        strict = [e.at_level(1 - 0.05 / 8) for e in found if e is not None]
        false += any(e.excludes(0) for e in strict)
    assert false <= 6


def test_means_leave_out_what_is_not_there() -> None:
    values = np.array([[1.0, np.nan, 3.0, 2.0], [np.nan] * 4, [5.0, np.nan, np.nan, np.nan]])
    found = partial_means(values, resamples=200)
    assert found.value[0] == 2
    assert found.n.tolist() == [3, 0, 1]
    assert found.low[0] < 2 < found.high[0]
    assert np.isnan(found.simultaneous_low[1:]).all()
    with pytest.raises(DataError, match="quantities by examples"):
        partial_means([1.0, 2.0])


def test_rows_may_come_a_few_at_a_time() -> None:
    values = np.random.default_rng(0).random((11, 40))
    values[3, 5:] = np.nan
    values[7] = np.nan
    whole = partial_means(values, resamples=200)
    parts = partial_means(
        RowBlocks(lambda: (values[i : i + 3] for i in (0, 3, 6, 9))), resamples=200
    )
    for name in ("value", "low", "simultaneous_low", "simultaneous_high", "p_adjusted"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), atol=1e-12)


@pytest.mark.parametrize("examples", [12, 40, 300])
def test_bounds_and_p_values_say_the_same(examples: int) -> None:
    rng, differ, sure = np.random.default_rng(0), 0, 0
    for turn in range(10):
        shifts = np.linspace(-2, 2, 60)[:, None]
        values = shifts + np.exp(rng.normal(size=(60, examples)) / 2) - np.exp(1 / 8)  # skewed
        found = partial_means(values, resamples=1000, seed=turn)
        excluded = (found.simultaneous_low > 0) | (found.simultaneous_high < 0)
        small = found.p_adjusted < 0.05
        assert not (excluded & (found.p_adjusted > 0.055)).any()
        differ, sure = differ + int((small & ~excluded).sum()), sure + int(excluded.sum())
    assert sure > 10
    assert differ < sure  # step by step a few more are found


def test_bounds_cover_all_true_means_together() -> None:
    rng = np.random.default_rng(0)
    missed = 0
    for turn in range(60):
        values = rng.normal(0.3, 1.0, size=(20, 60))
        values[:10][:, rng.random(60) < 0.6] = np.nan
        found = partial_means(values, level=0.9, resamples=200, seed=turn)
        missed += bool(((found.simultaneous_low > 0.3) | (found.simultaneous_high < 0.3)).any())
    assert missed <= 12  # 6 are expected


def test_a_class_that_few_examples_have_is_not_surely_anything() -> None:
    rng, missed, small = np.random.default_rng(0), 0, 1.0
    for turn in range(40):
        values = rng.normal(size=(40, 100))
        values[20:, 4:] = np.nan  # four examples have the second class, twenty heads look at it
        found = partial_means(values, resamples=100, seed=turn)
        missed += bool(((found.simultaneous_low > 0) | (found.simultaneous_high < 0)).any())
        small = min(small, float(found.p_adjusted[20:].min()))
    assert missed <= 5  # 2 are expected
    assert small > 0.001


def test_ratios() -> None:
    rng = np.random.default_rng(1)
    below = rng.uniform(1, 2, 200)
    found = ratio_of_means([*(3 * below), np.nan], [*below, 1.0])
    assert found is not None
    assert found.value == pytest.approx(3)
    assert found.n == 200
    assert ratio_of_means([1.0], [1.0]) is None
    means = partial_means(rng.normal([[1.0], [4.0], [8.0]], 0.5, size=(3, 100)), resamples=200)
    of = ratio_of_largest(means, np.array([True, True, False]), np.array([False, False, True]))
    assert of is not None
    assert of.low < 0.5 < of.high
    assert of.high - of.low < 0.1
    none = np.zeros(3, dtype=bool)
    assert ratio_of_largest(means, none, ~none) is None


def test_bounds_end_where_means_must_lie() -> None:
    values = np.array([[0.0, 1.0, 0.0], [0.9, 1.0, 0.8]])
    free, kept = partial_means(values, resamples=200), partial_means(values, within=(0.0, 1.0))
    assert free.low[0] < 0 < 1 < free.high[0]
    for low, high in ((kept.low, kept.high), (kept.simultaneous_low, kept.simultaneous_high)):
        assert (low >= 0).all()
        assert (high <= 1).all()
    assert kept.value.tolist() == free.value.tolist()


@pytest.mark.parametrize("support", [None, (-1.0, 1.0)])
def test_the_smallest_of_many_is_shown_to_be_above_without_correction(
    support: tuple[float, float] | None,
) -> None:
    """Each alone must be above: no correction is due, and one of them at 0 is enough to forbid it.

    One true mean is 0 and nineteen are far above; "all are above 0" is then false.
    """
    rng, false = np.random.default_rng(0), 0
    for seed in range(100):
        rows = np.clip(rng.normal(0, 0.2, (20, 100)) + 0.3 * (np.arange(20) > 0)[:, None], -1, 1)
        found = partial_means(rows, support=support, resamples=100, seed=seed)
        least, most = found.smallest(), found.largest()
        assert least is not None
        assert most is not None
        assert least.low == found.alone_low.min() > found.simultaneous_low.min()
        assert most.high == found.alone_high.max() < found.simultaneous_high.max()
        assert least.high == found.simultaneous_high[found.value.argmin()]
        false += least.low > 0
    assert false <= 100 * 0.025 + 3 * np.sqrt(100 * 0.025)
    # Twenty means of which each is above, but none surely so after a correction for twenty.
    rows = np.tile(np.concatenate([np.full(64, 0.2), np.full(36, -0.2)]), (20, 1))
    found = partial_means(rng.permuted(rows, axis=1), support=(-0.25, 0.25), resamples=500)
    least = found.smallest()
    assert least is not None
    assert found.simultaneous_low.max() < 0 < least.low
