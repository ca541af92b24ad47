"""Overlap of subnetworks: shared ones are found, random ones agree as by chance."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from bertology.data.corpus import Task
from bertology.errors import ParameterError
from bertology.results.result import Result
from bertology.studies.joins.subnetwork_overlap import SubnetworkOverlap
from bertology.studies.pruning.subnetworks import METHODS
from made_subnetworks import made_up
from result_conformance import ResultConformance

SKILL = dict.fromkeys(METHODS, 0.75)


Masks = dict[str, np.ndarray]


def masks(kappa: float, common: np.random.Generator, own: np.random.Generator) -> Masks:
    """Five seeds whose masks agree with those of other tasks by κ, in the long run."""
    found = {}
    for name, shape in (("heads", (12, 12)), ("mlps", (12,)), ("weights", (400,))):
        shared, fresh = common.random(shape) < 0.5, own.random((5, *shape)) < 0.5
        # Two masks agree where both kept the common one: with a probability of κ.
        kept = own.random((5, *shape)) < np.sqrt(kappa)
        found[name] = np.where(kept, shared, fresh).astype(np.int8)
    found["weights"] = np.packbits(found["weights"].astype(bool), axis=1)
    return found


def task(name: str, kappa: float, draw: int, **more: object) -> Result:
    drawn = masks(kappa, np.random.default_rng([draw, 0]), np.random.default_rng([draw, len(name)]))
    kind = Task(name, "classification", ("no", "yes"), ("accuracy",))
    return made_up(SKILL, masks=drawn, task=kind, n=40, **more)  # type: ignore[arg-type]


def joined(kappa: float, draw: int = 0, **more: object) -> Result:
    tasks = [task(name, kappa, draw, **more) for name in ("mrpc", "qqp", "stsb2")]
    return SubnetworkOverlap().join(tasks)


class TestResult(ResultConformance):
    @staticmethod
    def make() -> Result:
        return joined(0.5)


def test_what_is_shared_is_found() -> None:
    found = joined(0.6).evidence()
    for kind in ("head", "weight"):
        assert found[f"{kind}_kappa_across"].low > 0.4
        assert found[f"{kind}_kappa_across"].value == pytest.approx(0.6, abs=0.12)
    assert found["head_kappa_within"].value == pytest.approx(0.6, abs=0.12)


def test_random_subnetworks_agree_as_by_chance() -> None:
    result = joined(0.0)
    found = result.evidence()
    for quantity in ("head_kappa_across", "head_kappa_within", "weight_kappa_across"):
        assert found[quantity].low < 0.03
        assert found[quantity].value == pytest.approx(0, abs=0.06)
    table = result.table()
    assert np.abs(table["jaccard"] - table["chance"]).max() < 0.3
    assert len(table) == 3 * 6


def test_kappa_is_that_of_scikit_learn() -> None:
    one, other = task("mrpc", 0.4, 3), task("qqp", 0.4, 3)
    rows = SubnetworkOverlap().join([one, other]).table().set_index(["kind", "first", "second"])
    sides = [r.arrays["heads"].to_numpy().reshape(5, -1) for r in (one, other)]
    expected = np.mean([cohen_kappa_score(a, b) for a in sides[0] for b in sides[1]])
    assert rows.loc[("heads", "mrpc", "qqp"), "kappa"] == pytest.approx(expected)


def test_tasks_that_were_not_learnt_are_not_judged() -> None:
    result = joined(0.1, learnt=False)
    assert {str(v.outcome) for v in result.verdicts()} == {"not-applicable"}


def test_what_does_not_belong_together_is_refused() -> None:
    one = task("mrpc", 0.4, 3)
    with pytest.raises(ParameterError, match="one for each task"):
        SubnetworkOverlap().join([one, one])


def test_a_border_is_not_taken_for_less() -> None:
    held = sum(
        str(v.outcome) == "holds"
        for draw in range(6)
        for v in joined(0.45, draw).verdicts()
    )  # fmt: skip
    assert held <= 1


def test_one_task_tells_of_its_seeds_only() -> None:
    result = SubnetworkOverlap().join([task("mrpc", 0.6, 1)])
    assert set(result.evidence()) == {f"{k}_kappa_within" for k in ("head", "mlp", "weight")}
    assert {str(v.outcome) for v in result.verdicts()} == {"not-applicable"}
    assert result.answer
    assert result.plot().axes
