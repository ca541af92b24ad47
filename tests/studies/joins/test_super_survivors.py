"""Super-survivors: planted ones are found with what they are, chance and layers give none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import made_survivors as made
from bertology.errors import DataError, ParameterError
from bertology.results.known_claims import load_claims
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.studies.joins.super_survivors import NOTICED, SuperSurvivors, slightly_more
from result_conformance import ResultConformance, claims_of

SHAPE = (made.LAYERS, made.HEADS)
HETEROGENEOUS = "nuggets-lottery.super-survivors-are-not-more-heterogeneous"
LINGUISTIC = "nuggets-lottery.super-survivors-are-not-the-linguistic-heads"
CHANCE = np.zeros(SHAPE)


def others(mixed: np.ndarray, rng: np.random.Generator, effect: Any = None) -> list[Result]:
    """Map types and relations of heads, the same heads in both."""
    shares = np.where(mixed, rng.beta(20, 1, SHAPE), rng.beta(1, 20, SHAPE))
    effects = rng.normal(0, 0.01, SHAPE) if effect is None else effect
    return [made.types(shares, rng), made.followers(mixed), made.ablation(effects)]


def planted(draw: int = 0, *, same: bool = False) -> tuple[np.ndarray, Result]:
    """Heads that survive, and the join: they are the heterogeneous ones, or chosen apart."""
    rng = np.random.default_rng(draw)
    strong = rng.random(SHAPE) < 0.45
    mixed = strong if same else rng.random(SHAPE) < 0.4
    return strong, made.joined(6.0 * strong, others(mixed, rng), draw)


class TestResult(ResultConformance):
    measures = frozenset({"survival-in-runs", "mlp-survival-in-runs"})

    @staticmethod
    def make() -> Result:
        return planted()[1]


def test_planted_survivors_are_found_and_nothing_else() -> None:
    strong, result = planted()
    found = result.table("heads")["super_survivor"].to_numpy().reshape(SHAPE)
    assert (found <= strong).all()
    assert found.sum() > 0.95 * strong.sum()
    mlps = result.table("mlps").set_index("layer")
    assert mlps.loc[0, "survival"] > 0.9  # lower MLPs were made to survive
    assert not mlps.loc[8:, "super_survivor"].any()
    assert set(result.table("heads")["tasks"][found.ravel()]) == {4}


def of_survivors(odds_of_others: float, odds: float, draw: int) -> dict[str, str]:
    """Verdicts where other heads, and super-survivors, are heterogeneous with these odds."""
    rng = np.random.default_rng([draw, 9])
    strong = rng.random(SHAPE) < 0.45
    mixed = rng.random(SHAPE) < np.where(strong, odds, odds_of_others)
    return claims_of(made.joined(6.0 * strong, others(mixed, rng), draw, resamples=100))


def test_survivors_with_fewer_heterogeneous_maps_do_not_have_more() -> None:
    held = [list(of_survivors(0.5, 0.2, draw).values()).count("holds") for draw in range(4)]
    assert sum(held) >= 6


def test_survivors_that_are_three_times_as_heterogeneous_do_have_more() -> None:
    assert all("holds" not in of_survivors(0.05, 0.15, draw).values() for draw in range(8))
    told = [list(of_survivors(0.15, 0.45, draw).values()).count("fails") for draw in range(4)]
    assert sum(told) >= 6


def test_survivors_chosen_apart_are_seldom_said_to_have_more() -> None:
    said = [outcome for draw in range(4) for outcome in claims_of(planted(draw)[1]).values()]
    assert said.count("fails") <= 1
    assert (planted()[1].table("associations")["p_adjusted"] > 0.05).all()


def test_a_little_more_for_sure_is_neither_more_nor_no_more() -> None:
    assert "surely have more of them (2.0 points" in slightly_more(Estimate(0.02, 0.01, 0.03, 384))
    assert not slightly_more(Estimate(0.01, -0.01, 0.03, 384))  # holds
    assert not slightly_more(Estimate(0.04, 0.02, 0.06, 384))  # open


def test_survivors_that_are_the_heterogeneous_heads_are_told() -> None:
    _, result = planted(same=True)
    assert claims_of(result) == {HETEROGENEOUS: "fails", LINGUISTIC: "fails"}
    rows = result.table("associations").set_index("what")
    assert rows.loc["heterogeneous", "low"] > 0.4
    assert rows.loc["heterogeneous", "p_adjusted"] < 0.05
    compared = result.table("compared").set_index("what")
    assert compared.loc["vertical", "high"] < 0  # what is heterogeneous is nothing else


def test_effects_of_disabling_are_ranked_within_layers() -> None:
    rng = np.random.default_rng(3)
    strong = rng.random(SHAPE) < 0.45
    effect = rng.normal(0, 0.005, SHAPE) - 0.01 * strong
    result = made.joined(6.0 * strong, others(rng.random(SHAPE) < 0.4, rng, effect), 3)
    rows = result.table("associations").set_index("what")
    assert rows.loc["effect", "high"] < 0
    assert rows.loc["effect", "p_adjusted"] < 0.05


@pytest.mark.parametrize("by_layer", [False, True])
def test_chance_and_layers_alone_judge_nothing(by_layer: bool) -> None:
    rng = np.random.default_rng(5)
    slope = np.linspace(-3, 3, made.LAYERS)[:, None] * np.ones(SHAPE)
    mixed = rng.random(SHAPE) < 0.4 + slope / 8
    for draw in range(4):
        result = made.joined(slope if by_layer else CHANCE, others(mixed, rng), draw)
        assert set(claims_of(result).values()) == {"not-applicable"}
        assert result.table("heads")["super_survivor"].any() == by_layer
        assert (result.table("heads")["p_in_layer"] > 0.01).all()


def test_agreement_of_seeds_alone_is_not_one_of_tasks() -> None:
    rng = np.random.default_rng(6)
    result = made.joined(CHANCE, others(rng.random(SHAPE) < 0.4, rng), 6, by_task=4.0)
    assert result.table("heads")["super_survivor"].any()  # of many runs, but of few tasks
    assert result.facts["shared_p"] > 0.05
    (why,) = {v.reason for v in result.verdicts()}
    assert "tasks do not surely agree" in why


def pruned(**how: Any) -> list[Result]:
    rng = np.random.default_rng(7)
    return [made.pruning(name, CHANCE, rng, **how) for name in made.TASKS[:2]]


def test_each_run_tells_by_what_it_kept() -> None:
    rng = np.random.default_rng(8)
    tasks = [
        made.pruning("mrpc", CHANCE, rng, kept=[5, 2, 4, 4, 0], learnt=[1, 1, 1, 1, 0]),
        made.pruning("rte", CHANCE, rng),
    ]
    result = SuperSurvivors(resamples=100).join(tasks)
    assert result.facts["runs"] == 9  # what did not learn its task is left out
    mrpc, rte = (task.arrays["heads_left"].to_numpy() for task in tasks)
    left = np.concatenate([mrpc[range(4), [5, 2, 4, 4]], rte[:, 5]])
    np.testing.assert_allclose(result.table("heads")["survival"], left.mean(0).ravel())
    assert result.facts["heads_left"] == pytest.approx(left.mean())
    deeper = SuperSurvivors(resamples=100, steps=4).join(tasks)
    assert deeper.facts["runs"] == 8
    assert deeper.table("runs")["used"].sum() == 8
    assert "2 of 10 runs are left out" in deeper.headline()
    with pytest.raises(DataError, match="kept 6 steps"):
        SuperSurvivors(resamples=100, steps=6).join(tasks)


def test_a_few_deep_prunings_make_survivors_sure_that_many_shallow_ones_do_not() -> None:
    """At the size that all runs kept, 90 %, nothing can be sure; their own sizes tell."""
    rng, strong = np.random.default_rng(12), np.zeros(SHAPE)
    strong[3, :4] = 6.0
    tasks = [made.pruning("mrpc", strong, rng, kept=[1, 2, 1, 1, 2])] + [
        made.pruning(name, strong, rng, steps=8) for name in ("rte", "sst-2")
    ]
    found = SuperSurvivors(resamples=400).join(tasks).table("heads")
    assert set(np.flatnonzero(found["super_survivor"])) == {36, 37, 38, 39}
    shallow = SuperSurvivors(resamples=400, steps=1).join(tasks).table("heads")
    assert not shallow["super_survivor"].any()


def test_what_cannot_be_sure_says_how_many_runs_it_takes() -> None:
    rng = np.random.default_rng(9)
    strong, mixed = rng.random(SHAPE) < 0.8, rng.random(SHAPE) < 0.4
    result = made.joined(6.0 * strong, others(mixed, rng), 9, steps=1)
    (why,) = {v.reason for v in result.verdicts()}
    assert "90 % of the heads left it takes about 79 runs, and there are 20" in why
    assert "Nothing is sure" in result.answer


def test_an_open_claim_says_what_would_settle_it() -> None:
    rng = np.random.default_rng(11)
    strong = rng.random(SHAPE) < 0.45
    mixed = rng.random(SHAPE) < np.where(strong, 0.6, 0.3)
    result = made.joined(2.0 * strong, others(mixed, rng), 11, tasks=3, seeds=4)
    assert set(claims_of(result).values()) == {"inconclusive"}
    for verdict in result.verdicts():
        assert "runs would make enough super-survivors sure" in verdict.measured


def test_one_task_is_not_judged_and_runs_that_were_not_pruned_are_left_out() -> None:
    rng = np.random.default_rng(11)
    beside = others(rng.random(SHAPE) < 0.4, rng)
    result = SuperSurvivors(resamples=100).join([pruned()[0], *beside])
    assert all("two tasks" in str(v.reason) for v in result.verdicts())
    assert result.answer
    assert "compared" not in result.figures()  # there is nothing to compare
    assert all(drawing.draw().axes for drawing in result.drawings())
    fewer = SuperSurvivors(resamples=100).join(pruned(kept=[0, 3, 3, 3, 3]))
    assert fewer.facts["runs"] == 8
    nothing = SuperSurvivors(resamples=100).join([*pruned(kept=[0] * 5), *beside])
    assert all("could lose a step" in str(v.reason) for v in nothing.verdicts())
    with pytest.raises(DataError, match="has learnt its task"):
        SuperSurvivors(resamples=100).join(pruned(learnt=[0] * 5))


def test_without_other_studies_survival_is_told() -> None:
    result = SuperSurvivors(resamples=100).join(pruned())
    assert [d.name for d in result.drawings()] == ["survival", "mlps"]
    reasons = {v.claim.id: str(v.reason) for v in result.verdicts()}
    assert "map-types" in reasons[HETEROGENEOUS]
    assert "syntax-heads" in reasons[LINGUISTIC]


def test_sources_say_which_model_was_looked_at() -> None:
    _, result = planted()
    told = result.table("sources").set_index("study")["measured_on"]
    assert set(told["importance-pruning"]) == {"the model fine-tuned with each seed"}
    assert told["map-types"] == "a fine-tuned model"
    assert told["syntax-heads"] == "the pre-trained model"
    assert "map-types of a fine-tuned model" in result.headline()


def test_several_results_of_a_study_are_averaged() -> None:
    rng = np.random.default_rng(12)
    shares = [rng.random(SHAPE) for _ in range(2)]
    result = SuperSurvivors(resamples=100).join([*pruned(), *(made.types(s, rng) for s in shares)])
    np.testing.assert_allclose(
        result.table("heads")["heterogeneous"], np.mean(shares, axis=0).ravel()
    )


def test_what_does_not_belong_together_is_refused() -> None:
    one, _ = pruned()
    join = SuperSurvivors(resamples=100)
    with pytest.raises(ParameterError, match="one for each task"):
        join.join([one, one])
    with pytest.raises(ParameterError, match="importance-pruning"):
        join.join([made.followers(CHANCE)])
    small = made.made("map-types", {"heads": pd.DataFrame({"layer": [0], "head": [0]})})
    with pytest.raises(DataError, match="other heads"):
        join.join([one, small])
    old = made.made("importance-pruning", dict(one.tables), task="old")
    with pytest.raises(DataError, match="after each step"):
        join.join([one, old])
    cut = made.pruning("rte", CHANCE, np.random.default_rng(0))
    cut.arrays["heads_left"][:, :, 0, 0] = False
    with pytest.raises(DataError, match="from the start"):
        join.join([one, cut])


def test_borders_are_those_of_the_claims() -> None:
    rules = [c.rule for c in load_claims() if c.study == "super-survivors"]
    assert {rule.value for rule in rules} == {NOTICED}
