"""Model sizes: a trend that is planted is found, chance is none, and only like is compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import made_heuristics as made
from bertology.cli.main import app
from bertology.errors import DataError
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.results.store import Store
from bertology.stats import Estimate
from bertology.stats.trends import among_others, slope_weights
from bertology.studies.joins.model_sizes import NOT_LEARNT, TOO_FEW, ModelSizes
from result_conformance import ResultConformance, claims_of

SIZES = (1_000_000, 2_000_000, 4_000_000, 8_000_000, 16_000_000)
_REST = tuple(name for name in made.AS_PUBLISHED if name != "vanilla")
Habit = tuple[float, float, float, float]  # as in made_heuristics


def of_models(
    habits: Sequence[Habit], *, sizes: Sequence[int] = SIZES, draw: int = 0, **how: Any
) -> list[Result]:
    """One result for each habit, of as many models; all of them are asked the same pairs."""
    corpus = {"name": "made-up", "fingerprint": "c"}
    found = []
    for at, (habit, size) in enumerate(zip(habits, sizes, strict=False)):
        result = made.made_up({"vanilla": habit}, draw=1000 * draw + at, without=_REST, **how)
        model = {
            "name": f"model-{at}",
            "fingerprint": f"f{at}",
            "parameters": size,
            "shape": {"layers": 2 + at, "hidden": 64},
        }
        about = Provenance("heuristics", 2, {"seeds": 3}, model, corpus, ingredients={"data": "d"})
        found.append(replace(result, provenance=about))
    return found


def rising(step: float, models: int = len(SIZES)) -> list[Habit]:
    """Each model says "entailed" of fewer pairs that are not, by `step`."""
    return [(0.9, 0.6 - step * at, 0.1, 0.9) for at in range(models)]


LARGER = "nuggets-generalisation.larger-models-generalise-better"
THESE = "nuggets-generalisation.the-larger-of-these-models-do-better"


@cache
def models(step: float = 0.06) -> tuple[Result, ...]:
    """Half of `step` is what each doubling adds to the score."""
    return tuple(of_models(rising(step), each=40, luck=0.004, spread=0.02))


class TestResult(ResultConformance):
    @staticmethod
    def make() -> Result:
        return ModelSizes().join(models())


def test_what_is_planted_is_found() -> None:
    result = ModelSizes().join(models()[::-1])  # the order of results does not matter
    found = result.evidence()
    assert found["score_per_doubling"].value == pytest.approx(0.03, abs=0.01)
    assert found["not_entailed_per_doubling"].value == pytest.approx(0.06, abs=0.02)
    assert found["task_per_doubling"].low < 0 < found["task_per_doubling"].high
    assert claims_of(result) == {LARGER: "holds", THESE: "holds"}
    assert "larger ones surely score more" in result.answer
    table = result.table("models")
    assert table["parameters"].tolist() == list(SIZES)
    assert np.isnan(table["gain"][0])
    assert result.identity == ModelSizes().join(models()).identity
    fewer = claims_of(ModelSizes().join(of_models(rising(-0.06), each=60, luck=0.004)))
    assert fewer == {LARGER: "fails", THESE: "fails"}


def test_a_slope_is_that_of_least_squares() -> None:
    result = ModelSizes().join(models())
    table, places = result.table("models"), np.log2(SIZES)
    for name in ("task", "score", "entailed", "not_entailed"):
        found = result.evidence()[f"{name}_per_doubling"]
        assert found.value == pytest.approx(np.polyfit(places, table[name], 1)[0])
        wide = result.evidence()[f"{name}_per_doubling_among_models"]
        assert wide.value == found.value
        assert wide.low <= found.low <= found.high <= wide.high
    assert slope_weights([0, 1, 2]).tolist() == pytest.approx([-0.5, 0, 0.5])
    with pytest.raises(DataError, match="two places or more"):
        slope_weights([3, 3])


def test_distances_from_the_line_are_those_of_a_regression() -> None:
    """With measurements that are exact, nothing but the distances from the line is left."""
    from scipy.stats import linregress, t

    places, values = [0.0, 1.0, 2.0, 4.0], [0.1, 0.3, 0.2, 0.6]
    line = linregress(places, values)
    sure = Estimate(line.slope, line.slope, line.slope, 100)
    found = among_others(places, values, sure, "models")
    assert found.high - found.value == pytest.approx(t.ppf(0.975, 2) * line.stderr)
    assert (found.n, found.unit) == (4, "models")
    assert found.at_level(0.99).high - found.value == pytest.approx(t.ppf(0.995, 2) * line.stderr)


def test_chance_is_not_called_size() -> None:
    """Models that differ for other reasons: these differ, but no others need to."""
    alarms = (0.6, 0.4, 0.55, 0.3)
    habits = [(0.9, alarm, 0.1, 0.9) for alarm in alarms]
    result = ModelSizes().join(of_models(habits, seeds=5, each=60, luck=0.004, spread=0.02))
    assert claims_of(result) == {LARGER: "inconclusive", THESE: "holds"}
    assert "surely worse than the next smaller: model-2" in result.answer


def test_what_did_not_learn_the_task_is_left_out() -> None:
    habits = rising(0.06)
    habits[0] = (0.5, 0.5, 0.5, 0.5)
    result = ModelSizes().join(of_models(habits, each=40))
    assert result.table("models")["learnt"].tolist() == [0, 1, 1, 1, 1]
    assert "not surely learnt: model-0" in result.headline()
    assert result.facts["counted"] == 4
    two = ModelSizes().join(of_models([habits[0], *habits[3:]], each=40))
    assert two.reasons()["score_per_doubling_among_models"] == TOO_FEW
    assert set(claims_of(two)) == {LARGER, THESE}
    assert claims_of(two)[LARGER] == "not-applicable"
    none = ModelSizes().join(of_models([habits[0]] * 3, each=40))
    assert set(none.reasons().values()) == {NOT_LEARNT}
    assert "Nothing is sure" in none.answer


def test_one_seed_decides_nothing() -> None:
    result = ModelSizes().join(of_models(rising(0.1), seeds=1))
    assert set(claims_of(result).values()) == {"inconclusive"}


def changed(result: Result, **how: Any) -> Result:
    return replace(result, provenance=replace(result.provenance, **how))


def refused(results: Sequence[Result]) -> str:
    with pytest.raises(DataError) as caught:
        ModelSizes().join(results)
    return caught.value.problem


def test_only_like_is_compared() -> None:
    one, two, *_ = models()
    assert "two models or more" in refused([one])
    assert "of the same model: model-0 and model-0" in refused([one, one])
    other = changed(two, corpus={"name": "hans", "fingerprint": "h"})
    assert "had different pairs: model-0 (made-up" in refused([one, other])
    assert "hans" in refused([one, other])
    assert "different training data" in refused([one, changed(two, ingredients={"data": "e"})])
    assert "versions of the study" in refused([one, changed(two, study_version=3)])
    more = changed(two, parameters={"seeds": 5, "methods": ["hex"]})
    assert "different settings: seeds = 3 and 5." in refused([one, more])
    with_hex = changed(two, parameters={"seeds": 3, "methods": ["hex"]})
    assert ModelSizes().join([one, with_hex]).facts["counted"] == 2
    unknown = changed(two, model={"name": "m", "fingerprint": "x"})
    assert "how many parameters m has" in refused([one, unknown])
    old = replace(two, arrays=two.arrays.drop_vars("said"))
    assert "before answers were kept" in refused([one, old])


def bertology(*words: object, code: int = 0) -> str:
    done = CliRunner().invoke(app, [str(w) for w in words], prog_name="bertology")
    assert done.exit_code == code, done.output
    return " ".join(done.output.split())


def test_the_command_joins_what_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    store = Store(str(tmp_path))
    ids = [store.save(result)[:8] for result in models()[::2]]
    shown = bertology("join", "model-sizes", *ids, "--store", tmp_path)
    assert "larger ones surely score more" in shown
    (made,) = store.list("model-sizes")
    assert made.command == f"bertology join model-sizes {' '.join(ids)} --store {tmp_path}"
    assert made.identity[:8] in bertology("list", "--store", tmp_path)
    again = bertology("join", "model-sizes", ids[0], ids[0], "--store", tmp_path, code=2)
    assert "name each result once" in again
    assert "has no finished result 'ffff'" in bertology(
        "join", "model-sizes", "ffff", "--store", tmp_path, code=2
    )
    wrong = bertology("join", "subnetwork-overlap", *ids, "--store", tmp_path, code=2)
    assert "be of subnetworks" in wrong
    assert "'model-sizes'" in bertology("join", "model-size", *ids, code=2)
    help_text = bertology("join", "training-steps", "--help")
    assert "Examples:" in help_text
    assert "--measure" in help_text
