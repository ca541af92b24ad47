"""A few runs, and two groups of them: Student's interval, or none."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from bertology.metrics import find_metric
from bertology.stats import adjusted, paired_p, repeated, unpaired, unpaired_p


def test_agrees_with_scipy() -> None:
    x = np.array([0.3, -0.1, 0.4, 0.2])
    known = stats.ttest_1samp(x, 0)
    assert paired_p(x) == pytest.approx(known.pvalue)
    found, bounds = repeated(x, 0.9), known.confidence_interval(0.9)
    assert (found.low, found.high) == pytest.approx((bounds.low, bounds.high))


@pytest.mark.parametrize("values", [[0.5], [0.5, 0.5, 0.5]])
def test_no_interval_without_a_spread(values: list[float]) -> None:
    found = repeated(values)
    assert found.value == 0.5
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert math.isnan(paired_p(values))


def test_what_was_not_measured_stays_unknown() -> None:
    assert math.isnan(repeated([0.1, math.nan]).value)
    assert repeated([]).n == 0
    found = adjusted([0.01, math.nan, 0.02])
    np.testing.assert_allclose(found, [0.02, np.nan, 0.02])


def test_bounds_end_where_scores_must_lie() -> None:
    scores = [0.1, 0.9, 0.6]
    assert repeated(scores).low < 0
    assert repeated(scores).high > 1
    kept = repeated(scores, within=find_metric("f1").within)
    assert (kept.low, kept.high) == (0.0, 1.0)
    assert kept.value == repeated(scores).value
    assert find_metric("pearson").within == (-1.0, 1.0)
    assert find_metric("pearson").differences_within == (-2.0, 2.0)
    assert find_metric("accuracy").differences_within == (-1.0, 1.0)


def test_groups_of_one_size_and_spread_agree_with_scipy() -> None:
    x = np.array([0.3, -0.1, 0.4, 0.2])
    found = unpaired(x + 0.2, x, units=("seeds", "classifiers"))
    half = stats.t.ppf(0.975, 3) * np.sqrt(2 * x.var(ddof=1) / 4)
    assert (found.low, found.high) == pytest.approx((0.2 - half, 0.2 + half))
    assert found.freedom == pytest.approx(3)
    assert unpaired_p(x + 0.2, x) == pytest.approx(2 * stats.t.sf(0.2 / half * 3.1824463, 3))


def test_the_group_that_makes_an_interval_wide_is_counted() -> None:
    tuned, heads = [0.80, 0.81, 0.79], np.repeat([0.32, 0.68], 10)
    found = unpaired(tuned, heads, units=("seeds", "classifiers"))
    assert (found.n, found.unit) == (20, "classifiers")
    assert 0.1 < found.lasting < 0.2
    assert 14 < (found.freedom or 0) < 19
    # At another level as with that many degrees of freedom, not as with three seeds.
    half, strict = found.high - found.value, found.at_level(0.993)
    assert 1.4 < (strict.high - strict.value) / half < 1.5
    few = unpaired([0.2, 0.9, 0.6], 0.5 + 1e-3 * heads, units=("seeds", "classifiers"))
    assert (few.n, few.unit) == (3, "seeds")
    assert few.expected_at(6).high < few.high


def test_a_group_without_a_spread_is_not_trusted() -> None:
    """Three runs that agree to the last digit tell how coarse a score is."""
    heads = np.linspace(0.3, 0.7, 20)
    found = unpaired([0.5, 0.5, 0.5], heads)
    assert found.freedom == 2
    assert math.isnan(unpaired([0.5] * 3, [0.4] * 20).low)
    assert math.isnan(unpaired([0.5], heads).low)
    assert math.isnan(unpaired_p([0.5], heads))
    assert math.isnan(unpaired([math.nan, 0.5], heads).value)
    assert unpaired([0.9, 0.2], heads, within=(-1, 1)).low == -1


@pytest.mark.parametrize("spread", [0.01, 0.05, 0.2, 0.5])
def test_three_against_twenty_err_as_rarely_as_promised(spread: float) -> None:
    """Welch's interval misses in up to 7.5 % where the three vary more than the twenty."""
    rng, missed, repeats = np.random.default_rng(0), 0, 2000
    for _ in range(repeats):
        found = unpaired(rng.normal(0, spread, 3), rng.normal(0, 0.18, 20))
        missed += found.excludes(0)
    assert missed / repeats <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / repeats)
