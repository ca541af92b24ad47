"""Compression over tasks: a gain on most of them is told from a gain on half of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

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
    result = over_tasks((0.2, 0.2, 0.2, 0.0), n=300, seeds=4)
    assert claims_of(result)[CLAIM] == "holds"
    assert "on at least 3 of 4 tasks" in result.answer
    assert result.table("rows").set_index("row").loc["pkd-half", "kept"] == pytest.approx(
        0.7 / 0.75, abs=0.03
    )
    assert claims_of(over_tasks((0.2, 0.2, 0.0, 0.0), n=200))[CLAIM] != "holds"


def task(name: str, **given: Any) -> Result:
    return made_up(**{"n": 100, "seeds": 2, "methods": ("pkd-half",), "task": name, **given})


def changed(result: Result, **fields: Any) -> Result:
    """With another origin; of mappings, what is given is put into them."""
    about = result.provenance
    new = {
        name: {**getattr(about, name), **value} if isinstance(value, dict) else value
        for name, value in fields.items()
    }
    return replace(result, provenance=replace(about, **new))


def test_too_few_tasks_are_not_judged() -> None:
    with pytest.raises(DataError, match="two results or more"):
        CompressionTasks().join([task("one")])
    found = CompressionTasks().join([task(f"t{i}") for i in range(3)])
    assert not found.evidence()
    assert "fewer than 4 tasks" in found.answer


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"model": {"fingerprint": "g", "name": "m2"}}, "2 models, m and m2"),
        ({"corpus": {"name": "one"}}, "of the same task: one and one"),
        ({"study_version": 2}, r"the study's version = 5 \(one\) and 2 \(other\)"),
        ({"parameters": {"epochs": 5}}, r"epochs = 3 \(one\) and 5 \(other\)"),
        ({"parameters": {"batch_size": 16}}, "batch_size = 32"),
        ({"parameters": {"learning_rate": 1e-5}}, "learning_rate = None"),
        ({"parameters": {"alone": ["none"]}}, "alone = "),
        ({"parameters": {"level": 0.9}}, "level = 0.95"),
        ({"ingredients": {"small:x": "b" * 8}}, "data of small:x = aaaaaaaa"),
        ({"ingredients": {"training_data": "one-train"}}, "of the same training data"),
        ({"parameters": {"times": ["none"], "threads": 1, "seeds": 3, "train": "a.csv"}}, None),
        ({"parameters": {"methods": ["pkd-half", "gobo"], "examples": 10_000}}, None),
    ],
)
def test_tasks_that_cannot_be_compared_are_refused(
    other: dict[str, object], told: str | None
) -> None:
    one = changed(task("one"), ingredients={"small:x": "a" * 8, "training_data": "one-train"})
    results = [one, changed(task("other"), **other)]
    if told is None:
        assert len(CompressionTasks().join(results).table("tasks")) == 2
        return
    with pytest.raises(DataError, match=told):
        CompressionTasks().join(results)


def test_all_intervals_are_at_the_level_that_is_asked_for() -> None:
    results = [task(f"t{i}", n=300, seeds=5, draw=i) for i in range(4)]
    tables = {at: CompressionTasks(level=at).join(results).tables for at in (0.95, 0.99)}
    for name, column in (("tasks", "gain"), ("tasks", "kept"), ("rows", "kept")):
        usual, strict = (tables[at][name] for at in (0.95, 0.99))
        assert (strict[f"{column}_low"] < usual[f"{column}_low"]).all()
        assert (strict[f"{column}_high"] > usual[f"{column}_high"]).all()
        assert list(strict[column]) == list(usual[column])
    gain = results[0].evidence()["best_student_over_alone"]
    assert tables[0.95]["tasks"]["gain_low"][0] == gain.low
    assert tables[0.99]["tasks"]["gain_low"][0] == gain.at_level(0.99).low


def test_the_mean_over_equal_tasks_is_what_each_keeps_and_surer() -> None:
    one = task("one", n=300, seeds=4)
    same = [changed(one, corpus={"name": f"t{i}", "fingerprint": f"t{i}"}) for i in range(4)]
    own = one.table().set_index("row")
    rows = CompressionTasks().join(same).table("rows").set_index("row")
    assert rows["kept"].to_dict() == pytest.approx(own.loc[rows.index, "kept"].to_dict())
    width, alone = (t.loc["pkd-half", "kept_high"] - t.loc["pkd-half", "kept_low"]
                    for t in (rows, own))  # fmt: skip
    assert 0.3 < width / alone < 0.6  # a half, and less as more seeds are in it
    # Random weights of a seed are the same on all tasks: their luck does not cancel.
    low, high = (rows[f"kept_{end}"] for end in ("low", "high"))
    ratio = (high - low) / (own["kept_high"] - own["kept_low"])
    assert ratio["random-layers-6"] > ratio["pkd-half"]
