"""A few runs: Student's interval, or none."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from bertology.metrics import find_metric
from bertology.stats import adjusted, paired_p, repeated


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
