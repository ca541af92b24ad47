"""Overlap of subnetworks: shared ones are found, random ones agree as by chance."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from bertology.data.corpus import Task
from bertology.errors import ParameterError
from bertology.results.result import Result
from bertology.studies.joins.subnetwork_overlap import SubnetworkOverlap
from bertology.studies.pruning.subnetworks import METHODS
from made_subnetworks import made_up
from result_conformance import ResultConformance, told

SKILL = dict.fromkeys(METHODS, 0.75)


Masks = dict[str, np.ndarray]


def masks(
    kappa: float, common: np.random.Generator, own: np.random.Generator, more: float
) -> Masks:
    """Five seeds whose masks agree with those of other tasks by κ, in the long run.

    Seeds of the same task agree by `more` than that.
    """
    found = {}
    for name, shape in (("heads", (12, 12)), ("mlps", (12,)), ("weights", (400,))):
        shared, fresh = common.random(shape) < 0.5, own.random((5, *shape)) < 0.5
        tasks, which = own.random(shape) < 0.5, common.random(shape) < kappa / (kappa + more or 1)
        # Two masks agree where both kept the common one: with a probability of κ.
        kept = own.random((5, *shape)) < np.sqrt(kappa + more)
        found[name] = np.where(kept, np.where(which, shared, tasks), fresh).astype(np.int8)
    found["weights"] = np.packbits(found["weights"].astype(bool), axis=1)
    return found


@cache
def answers(name: str, learnt: bool) -> Result:
    """What a task's subnetworks answered; masks do not change it, and it takes most of the time."""
    some = masks(0.5, np.random.default_rng(0), np.random.default_rng(1), 0.0)
    kind = Task(name, "classification", ("no", "yes"), ("accuracy",))
    return made_up(SKILL, masks=some, task=kind, n=40, learnt=learnt)


def task(name: str, kappa: float, draw: int, own: float = 0.0, learnt: bool = True) -> Result:
    common, alone = (np.random.default_rng([draw, k]) for k in (0, len(name)))
    drawn, result = masks(kappa, common, alone, own), answers(name, learnt)
    arrays = result.arrays.copy(deep=True)
    for kind in ("heads", "mlps"):
        arrays[kind][:, 1] = drawn[kind]
    arrays["weights"][:, 0] = drawn["weights"]
    return replace(result, arrays=arrays)


def joined(kappa: float, draw: int = 0, **more: float) -> Result:
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
    sides = [r.arrays["heads"].to_numpy()[:, 1].reshape(5, -1) for r in (one, other)]
    expected = np.mean([cohen_kappa_score(a, b) for a in sides[0] for b in sides[1]])
    assert rows.loc[("heads", "mrpc", "qqp"), "kappa"] == pytest.approx(expected)


def test_tasks_that_were_not_learnt_are_not_judged() -> None:
    result = joined(0.1, learnt=False)
    assert {str(told(v)) for v in result.verdicts()} == {"not-applicable"}


def test_what_does_not_belong_together_is_refused() -> None:
    one = task("mrpc", 0.4, 3)
    with pytest.raises(ParameterError, match="one for each task"):
        SubnetworkOverlap().join([one, one])


def outcomes(kappa: float, own: float, draws: int) -> list[str]:
    """Of the claim that tasks differ, where they share heads by κ, and each has some of its own."""
    found = []
    for draw in range(draws):
        (verdict,) = joined(kappa, draw, own=own).verdicts()
        found.append(str(told(verdict)))
    return found


def test_tasks_that_agree_as_seeds_do_are_not_called_different() -> None:
    """Agreement across tasks may be low or high: what counts is whether seeds agree more."""
    for kappa in (0.1, 0.5, 0.8):
        assert outcomes(kappa, 0.0, 6).count("holds") <= 1


def test_tasks_that_have_heads_of_their_own_are_found() -> None:
    """Across tasks κ is above 0.4, and yet each task has heads of its own."""
    assert outcomes(0.5, 0.35, 3) == ["holds"] * 3
    found = joined(0.5, own=0.35).evidence()
    assert found["head_kappa_across"].value > 0.4
    assert found["head_within_over_across"].value == pytest.approx(
        found["head_kappa_within"].value - found["head_kappa_across"].value
    )


def test_masks_are_compared_where_all_seeds_of_all_tasks_are() -> None:
    """One seed of one task stops early; there all have the same heads, and later none has."""
    one, other = task("mrpc", 0.0, 1), task("qqp", 0.0, 1)
    both = []
    for result, stops in ((one, [3] * 5), (other, [3, 2, 3, 3, 3])):
        arrays = result.arrays
        heads = arrays["heads"].to_numpy()
        shared = np.broadcast_to(np.indices((12, 12)).sum(0) % 3 > 0, heads[:, :1].shape)
        deeper = np.concatenate([heads[:, :1], shared, heads[:, 1:] & shared], axis=1)
        more = arrays.drop_vars(["heads", "mlps", "importance_kept_steps"]).assign(
            heads=(("seed", "step", "layer", "head"), deeper.astype(np.int8)),
            importance_kept_steps=("seed", stops),
        )
        both.append(replace(result, arrays=more))
    found = SubnetworkOverlap().join(both)
    rows = found.table().set_index("kind").loc["heads"]
    assert (rows["kappa"] == 1).all()
    assert (rows["step"] == 1).all()
    assert rows["left"].to_numpy() == pytest.approx(2 / 3)
    assert found.facts["compared_step_heads"] == 1
    none = replace(both[1], arrays=both[1].arrays.assign(importance_kept_steps=("seed", [1] * 5)))
    result = SubnetworkOverlap().join([both[0], none])
    assert "no step" in result.reasons()["head_within_over_across"]
    assert result.answer


def test_one_task_tells_of_its_seeds_only() -> None:
    result = SubnetworkOverlap().join([task("mrpc", 0.6, 1)])
    assert set(result.evidence()) == {f"{k}_kappa_within" for k in ("head", "mlp", "weight")}
    assert {str(told(v)) for v in result.verdicts()} == {"not-applicable"}
    assert result.answer
    assert result.plot().axes
