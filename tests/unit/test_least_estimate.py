"""The smallest of some estimates: at every level its bounds are no better than those of all."""

from __future__ import annotations

import math

import pytest

from bertology.stats import Estimate
from bertology.stats.least_means import least_estimate

SURE = Estimate(0.1, 0.09, 0.11, 1000)
FEW = Estimate(0.5, 0.06, 0.94, 1000, freedom=3.0, lasting=0.9, remedy="more copies")


def test_the_bound_may_be_that_of_another_than_the_smallest() -> None:
    """Stretched as the smallest would be, it stayed above 0 where three copies tell nothing."""
    found = least_estimate(lambda at: [SURE.at_level(at), FEW.at_level(at)], level=0.95)
    assert found.value == 0.1
    assert 0 < found.low <= 0.06
    assert found.high == pytest.approx(SURE.at_level(0.975).high)
    assert (found.lasting, found.remedy) == (0.9, "more copies")
    for level in (0.975, 0.98, 1 - 0.05 / 8):
        assert found.at_level(level).low < 0


def test_alike_ones_keep_their_freedom() -> None:
    found = least_estimate(lambda at: [FEW.at_level(at)] * 2, level=0.95)
    assert found.freedom == pytest.approx(3.0)
    alone = least_estimate(lambda at: [SURE.at_level(at)], level=0.95)
    assert (alone.low, alone.high) == pytest.approx((SURE.low, SURE.high))


def test_where_one_has_no_interval_there_is_none() -> None:
    nothing = Estimate(0.5, math.nan, math.nan, 3)
    assert math.isnan(least_estimate(lambda at: [SURE, nothing], level=0.95).low)
