"""Compression over tasks: a gain on most of them is told from a gain on half of them."""

from __future__ import annotations

import pytest

from bertology.errors import DataError
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.studies.joins.compression_tasks import CompressionTasks, largest_but
from made_compression_tables import made_up, over_tasks
from result_conformance import ResultConformance, claims_of

CLAIM = "primer-compression-tasks.teachers-help-on-most-tasks"


class TestOverTasks(ResultConformance):
    @staticmethod
    def make() -> Result:
        return over_tasks((0.1, 0.1, 0.1, 0.0), n=60, seeds=2)


def test_the_number_that_most_tasks_reach() -> None:
    found = [Estimate(x, x - 0.02, x + 0.02, 500) for x in (0.1, 0.2, 0.0, 0.05)]
    third = largest_but(found, 3, 0.95, of=4)
    assert third.value == 0.05
    assert 0.02 < third.low < 0.03  # of two tasks that could be below, so a little stricter
    assert 0.07 < third.high < 0.08
    assert largest_but(found, 4, 0.95, of=4).low == pytest.approx(-0.02, abs=1e-3)


def test_a_task_of_which_nothing_is_known_is_no_gain_and_no_loss() -> None:
    found = [Estimate(x, x - 0.02, x + 0.02, 500) for x in (0.1, 0.2, 0.15)]
    third = largest_but(found, 3, 0.95, of=4)
    assert third.value == 0.1
    assert 0.07 < third.low < 0.08
    assert 0.17 < third.high < 0.18  # the unknown one may be the largest
    result = over_tasks((0.2, 0.2, 0.2, 0.2), n=300, seeds=4, unlearnt=1)
    assert claims_of(result)[CLAIM] == "holds"
    assert not over_tasks((0.2, 0.2, 0.2, 0.2), n=100, seeds=2, unlearnt=2).evidence()


def test_three_of_four_tasks_are_most_of_them_and_two_are_not() -> None:
    result = over_tasks((0.2, 0.2, 0.2, 0.0), n=400, seeds=6)
    assert claims_of(result)[CLAIM] == "holds"
    assert "on at least 3 of 4 tasks" in result.answer
    assert result.table("rows").set_index("row").loc["pkd-half", "kept"] == pytest.approx(
        0.7 / 0.75, abs=0.03
    )
    assert claims_of(over_tasks((0.2, 0.2, 0.0, 0.0), n=200))[CLAIM] != "holds"


def test_tasks_that_cannot_be_compared_are_refused() -> None:
    one = made_up(n=100, seeds=2, methods=("pkd-half",))
    with pytest.raises(DataError, match="two tasks"):
        CompressionTasks().join([one])
    three = [made_up(n=100, seeds=2, methods=("pkd-half",), task=f"t{i}") for i in range(3)]
    found = CompressionTasks().join(three)
    assert not found.evidence()
    assert "fewer than 4 tasks" in found.answer
