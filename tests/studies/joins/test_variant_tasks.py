"""Variants over tasks: a way that is better on all tasks is found, and chance is not."""

from __future__ import annotations

import math

import pytest

from bertology.errors import DataError, ParameterError
from bertology.results.result import Result
from bertology.studies.joins.variant_tasks import VariantTasks
from made_variants import of_task, over_tasks
from result_conformance import ResultConformance

BETTER = {"adapters": 0.1, "features": -0.15}


class TestResult(ResultConformance):
    @staticmethod
    def make() -> Result:
        found = over_tasks([BETTER, BETTER, {}], n=200, unlearnt=1)
        assert found.evidence()
        return found


@pytest.fixture(scope="module")
def planted() -> Result:
    return over_tasks([BETTER, BETTER, BETTER], seeds=4, sizes=(300, 500, 700))


def test_what_is_better_on_all_tasks_is_found(planted: Result) -> None:
    means = planted.table("means").set_index("variant")
    assert dict(means["sure"]) == {
        "layer-mix": "", "joined-layers": "", "features": "worse", "adapters": "better",
        "adversarial": "", "intermediate": "",
    }  # fmt: skip
    assert means.loc["adapters", "over_plain"] == pytest.approx(0.1, abs=0.03)
    assert planted.answer.startswith("In the mean over 3 tasks, adapters (")
    assert "head on frozen features (-" in planted.answer
    assert means.loc["adapters", "share"] == pytest.approx(0.01)


def test_each_variant_and_task_has_a_row(planted: Result) -> None:
    rows = planted.table("rows").set_index(["variant", "task"])
    assert len(rows) == 7 * 3
    one = of_task("task-1", {"adapters": 0.85, "features": 0.6}, draw=1, seeds=4, n=500)
    own = one.table("variants").set_index(["variant", "metric"]).loc[("adapters", "accuracy")]
    for column in ("mean", "low", "high", "over_plain", "over_plain_low", "seeds", "sure"):
        assert rows.loc[("adapters", "task-1"), column] == own[column]
    means = planted.table("means").set_index("variant")
    told = rows.loc["adapters"]
    assert means.loc["adapters", "over_plain"] == pytest.approx(told["over_plain"].mean())
    assert means.loc["adapters", "better_on"] == (told["sure"] == "better").sum()
    assert (rows.loc["plain", "over_plain"]).isna().all()


def test_bounds_of_the_table_hold_for_all_variants_together(planted: Result) -> None:
    row = planted.table("means").set_index("variant").loc["adapters"]
    alone = planted.evidence()["adapters_over_plain"]
    assert row["over_plain_low"] < alone.low < alone.value < alone.high < row["over_plain_high"]
    assert alone.value == pytest.approx(row["over_plain"])


def test_chance_is_not_taken_for_a_gain() -> None:
    """The benchmark `means_over_tasks.py` draws a hundred of these."""
    seen = 0
    for draw in range(2):
        found = over_tasks([{}, {}], draw=draw + 1, n=150)
        seen += (found.table("means")["sure"] != "").any()
        assert "Nothing is sure" in found.answer or seen
    assert seen <= 1


def test_what_begins_alike_on_all_tasks_is_less_sure() -> None:
    """The model that learnt another task first is the same for a seed, whatever comes after."""
    luck = {"intermediate": 0.02, "layer-mix": 0.02}
    means = over_tasks([{}, {}, {}], luck=luck, seeds=4).table("means").set_index("variant")
    width = means["over_plain_high"] - means["over_plain_low"]
    assert width["intermediate"] > 1.5 * width["layer-mix"]


def test_tasks_with_nothing_to_improve_on_are_left_out_of_the_mean() -> None:
    found = over_tasks([BETTER, BETTER, {"adapters": -0.4}], unlearnt=1)
    assert set(found.table("means")["tasks"]) == {2}
    assert "constant answer: task-2" in found.headline()
    kept = found.table("means").set_index("variant")
    assert kept.loc["adapters", "over_plain"] == pytest.approx(0.1, abs=0.05)
    alone = over_tasks([BETTER, BETTER], unlearnt=1)
    assert not alone.evidence()
    assert "on fewer than 2 tasks" in alone.answer
    assert len(alone.table("rows")) == 14


def test_one_seed_decides_nothing() -> None:
    found = over_tasks([BETTER, BETTER], seeds=1, n=60)
    assert found.table("means")["over_plain_low"].isna().all()
    assert math.isfinite(found.table("means")["over_plain"].iloc[0])
    assert "(no interval)" in found.answer


def test_variants_that_not_all_tasks_have_are_in_the_rows_only() -> None:
    found = VariantTasks().join(
        [
            of_task("one", n=60, seeds=2),
            of_task("other", n=60, seeds=3, ways=("adapters", "mixout")),
        ]
    )
    assert list(found.table("means")["variant"]) == ["adapters", "intermediate"]
    assert "mixout" in set(found.table("rows")["variant"])
    assert "2 to 3 seeds" in found.headline()
    assert found.plot().axes


def test_a_variant_has_the_title_that_its_result_says() -> None:
    results = [of_task(name, n=60, seeds=2, ways=("adapters",)) for name in ("one", "other")]
    for one in results:
        one.arrays.attrs["title_adapters"] = "adapters:size=64"
    assert VariantTasks().join(results).facts["title_adapters"] == "adapters:size=64"


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"model": "m2"}, "2 models, m and m2"),
        ({"task": "one"}, "of the same task: one and one"),
        ({"data": {"training_data": "one-train"}}, "of the same training data: one and other"),
        ({"settings": {"epochs": 5}}, r"epochs = 3 \(one\) and 5 \(other\)"),
        ({"settings": {"level": 0.9}}, "level = 0.95"),
        ({"settings": {"intermediate": "mnli"}}, "intermediate = another"),
        ({"data": {"intermediate another": "x"}}, "data of intermediate another"),
        ({"settings": {"intermediate": ""}}, None),
        ({"settings": {"noise": 0.3, "train_split": "train_sample", "examples": 100}}, None),
    ],
)
def test_runs_that_cannot_be_compared_are_refused(
    other: dict[str, object], told: str | None
) -> None:
    given = {"task": "other", "n": 60, "seeds": 2, "ways": ("adapters",), **other}
    one = of_task("one", n=60, seeds=2, ways=("adapters",), data={"intermediate another": "y"})
    results = [one, of_task(**given)]  # type: ignore[arg-type]
    if told is None:
        assert len(VariantTasks().join(results).table("means")) == 2
        return
    with pytest.raises(DataError, match=told):
        VariantTasks().join(results)


def test_one_result_or_those_of_other_studies_are_refused(planted: Result) -> None:
    with pytest.raises(DataError, match="two results or more"):
        VariantTasks().join([of_task("one", n=60, seeds=2)])
    with pytest.raises(ParameterError, match="finetuning-variants"):
        VariantTasks().join([planted, planted])


def test_a_result_that_does_not_say_how_sure_it_is_is_refused() -> None:
    results = [of_task(name, n=200) for name in ("one", "other")]
    results[1].arrays = results[1].arrays.drop_vars("evidence")
    with pytest.raises(DataError, match="how sure layer_mix_over_plain is"):
        VariantTasks().join(results)
