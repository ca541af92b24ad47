"""Tables of several studies side by side: made ones, whose answer is known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bertology.errors import DataError, ParameterError
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.results.rules import Outcome
from bertology.results.store import Store
from bertology.stats.contrasts import group_contrast
from bertology.studies import STUDIES
from bertology.studies.joins.head_profile import HeadProfile, HeadProfileResult
from result_conformance import ResultConformance, told

LAYERS, HEADS = 6, 6
WHERE = np.indices((LAYERS, HEADS)).reshape(2, -1)
NOISE = np.random.default_rng(0).normal(0, 0.001, LAYERS * HEADS)
MISSED = (WHERE[0] == 5) & (WHERE[1] < 2)  # heads 5.0 and 5.1


def made(study: str, columns: dict[str, Any], **facts: Any) -> Result:
    model = {"name": f"model-of-{study}", "fingerprint": study}
    table = pd.DataFrame({"layer": WHERE[0], "head": WHERE[1], **columns})
    corpus = {"name": "made", "fingerprint": "made"}
    provenance = Provenance(study, 1, {}, model, corpus)
    return Result(provenance, {"heads": table}, xr.Dataset(attrs=facts))


def ablation(
    effect: Any = NOISE, *, informed: int = 1, reach: float = 0.005, worse: Any = NOISE
) -> Result:
    """`worse`: the net share of examples whose loss rises."""
    effect, worse = np.asarray(effect), np.asarray(worse)
    columns = {
        "difference": effect,
        "simultaneous_low": effect - reach,
        "simultaneous_high": effect + reach,
        "p_adjusted": np.where(np.abs(effect) > reach, 0.01, 1.0),
        "loss_balance": worse,
        "loss_balance_low": worse - reach,
        "loss_balance_high": worse + reach,
        "loss_p_adjusted": np.where(np.abs(worse) > reach, 0.01, 1.0),
    }
    result = made("head-ablation", columns, informed=informed, examples=500)
    error = np.diag(np.full(len(effect), (reach / 4) ** 2))
    for name in ("effect_covariance", "loss_covariance"):
        result.arrays[name] = (("of_head", "with_head"), error)
    return result


def relations(chosen: Any = MISSED, **further: Any) -> Result:
    columns = {"weight": 0.3 * chosen, "excess": 0.2 * chosen, "sure": chosen}
    columns |= {"above_percentile": chosen, **further}
    return made("relation-heads", columns)


def types(heterogeneous: Any = MISSED) -> Result:
    names = np.where(heterogeneous, "heterogeneous", "vertical").astype(object)
    names[:4] = "diagonal"
    return made("map-types", {"type": names})


def profile_of(results: Sequence[Result]) -> Result:
    return HeadProfile().join(results)


class TestResult(ResultConformance):
    measures = frozenset({"role-in-task", "relation-head"})

    @staticmethod
    def make() -> Result:
        return profile_of([ablation(), relations(), types()])


def groups(result: Result) -> pd.DataFrame:
    return result.table("groups").set_index("group")


def test_every_study_gives_its_columns_and_none_is_needed() -> None:
    change = made("attention-change", {"cosine": 1 - 0.1 * WHERE[0], "divergence": 0.0 * NOISE})
    maps = made("attention-maps", {"entropy": 1.0 + 0 * NOISE, "self": NOISE})
    profile = profile_of([maps, change, relations(), types(), ablation()])
    heads = profile.table()
    wanted = {"effect", "effect_p", "relation_excess", "relation_head", "map_type", "entropy"}
    assert wanted | {"cosine_with_before", "self"} <= set(heads.columns)
    assert len(heads) == LAYERS * HEADS
    assert np.allclose(heads["cosine_with_before"], 1 - 0.1 * heads["layer"])
    assert list(heads["effect"]) == list(NOISE)
    assert set(profile.table("sources")["model"]) >= {"model-of-head-ablation"}
    assert profile.provenance.model["name"] == "model-of-head-ablation"
    only = profile_of([change])
    assert only.evidence() == {}
    assert "no result of head-ablation" in only.reasons()[""]
    assert only.figures() == {}
    assert list(profile_of([change, ablation()]).tables) == ["heads", "sources"]


def test_the_order_of_the_results_says_nothing() -> None:
    results = [ablation(), relations(), types()]
    assert profile_of(results).same_content(profile_of(results[::-1]))


def test_heads_that_are_missed_are_found_by_their_relation_and_type() -> None:
    profile = profile_of([ablation(NOISE - 0.1 * MISSED), relations(), types()])
    found, evidence = groups(profile), profile.evidence()
    assert evidence["relation_heads_effect"].high < 0
    assert evidence["heterogeneous_heads_effect"].high < 0
    assert found.loc["relation heads", "p_adjusted"] < 0.05
    assert found.loc["vertical", "contrast"] > 0  # the others hold those that are missed
    assert found.loc["diagonal", "p_adjusted"] > 0.05
    assert evidence["largest_loss_of_relation_heads"].low > 0.09
    crosstab = profile.table("crosstab").set_index("map_type")
    assert crosstab.loc["heterogeneous", "surely_missed"] == 2
    assert crosstab["surely_missed"].sum() == 2
    assert crosstab["heads"].sum() == LAYERS * HEADS
    assert crosstab.loc["heterogeneous", "relation_heads"] == 2


def test_relation_heads_that_nobody_misses_are_said_to_be_harmless() -> None:
    missed_elsewhere = NOISE - 0.1 * ((WHERE[0] == 0) & (WHERE[1] == 0))
    evidence = profile_of([ablation(missed_elsewhere), relations(), types()]).evidence()
    assert evidence["largest_loss_of_relation_heads"].high < 0.01
    assert not evidence["relation_heads_effect"].high < 0


def test_each_relation_head_alone_must_cost_less() -> None:
    """The upper bounds were corrected for all 144 heads, of which nobody had picked any."""
    swept = ablation()
    heads = swept.tables["heads"]
    for end, sign in (("low", -1), ("high", 1)):
        heads[f"simultaneous_{end}"] = heads["difference"] + sign * 0.02
        heads[f"alone_{end}"] = heads["difference"] + sign * 0.008
        heads[f"loss_balance_{end}"] = heads["loss_balance"] + sign * 0.05
        heads[f"loss_alone_{end}"] = heads["loss_balance"] + sign * 0.02
    evidence = profile_of([swept, relations(), types()]).evidence()
    loss = -heads["difference"].to_numpy()[MISSED.astype(bool)].min()
    assert evidence["largest_loss_of_relation_heads"].high == pytest.approx(loss + 0.008)
    assert evidence["largest_loss_of_relation_heads"].low < loss - 0.015
    assert evidence["largest_share_worse_of_relation_heads"].high < 0.03


def test_what_one_example_does_to_many_heads_is_no_evidence_from_many_heads() -> None:
    """Each example moves all heads of a layer alike, up or down by chance: no head has an effect.

    Exchanging heads alone, as if they were independent, finds an effect of layer 5 in every third.
    """
    rng, layer, n = np.random.default_rng(1), WHERE[0], 100
    wrong = tested = 0
    for seed in range(100):
        moved = rng.random((LAYERS, n)) < 0.1
        signs = rng.choice([-1.0, 1.0], size=n)
        psi = (moved * signs)[layer] + rng.normal(0, 0.02, (layer.size, n))
        effect, covariance = psi.mean(1), np.cov(psi) / n
        found, p = group_contrast(
            effect, layer == 5, covariance, n=n, resamples=400, level=0.95, seed=seed
        )
        assert (p < 0.04) <= found.excludes(0)  # the interval and the test agree
        wrong += found.excludes(0)
        heads_only, _ = group_contrast(
            effect, layer == 5, 0 * covariance, n=n, resamples=400, level=0.95, seed=seed
        )
        tested += heads_only.excludes(0)
    assert wrong <= 5
    assert tested > 15  # so the simulation would have caught it


def test_the_loss_is_judged_beside_the_score() -> None:
    """Answers become less probable, and none flips: groups were tested by the score only."""
    profile = profile_of([ablation(worse=NOISE + 0.1 * MISSED), relations(), types()])
    found, evidence = groups(profile), profile.evidence()
    assert not evidence["relation_heads_effect"].excludes(0)
    assert evidence["relation_heads_share_worse"].low > 0.03
    assert evidence["heterogeneous_heads_share_worse"].low > 0
    assert evidence["largest_share_worse_of_relation_heads"].low > 0.09
    assert found.loc["relation heads", "loss_p_adjusted"] < 0.05 < found["p_adjusted"].min()
    assert found.loc["vertical", "loss_contrast"] < 0
    assert len(profile.plot("groups").axes) >= 2
    outcomes = {v.claim.id.partition(".")[2]: told(v) for v in profile.verdicts()}
    assert outcomes["disabling-heterogeneous-heads-raises-the-loss-more"] is Outcome.HOLDS
    assert outcomes["disabling-relation-heads-leaves-the-loss"] is Outcome.FAILS
    assert outcomes["disabling-relation-heads-raises-the-loss-like-others"] is Outcome.FAILS
    assert outcomes["disabling-heterogeneous-heads-hurts-more"] is Outcome.INCONCLUSIVE


ALL, NONE = np.ones(LAYERS * HEADS, bool), np.zeros(LAYERS * HEADS, bool)


@pytest.mark.parametrize(
    ("others", "quantity", "why"),
    [
        ([], "relation_heads_effect", "no result of relation-heads"),
        ([], "heterogeneous_heads_share_worse", "no result of map-types"),
        ([types()], "largest_loss_of_relation_heads", "no result of relation-heads"),
        ([relations(NONE)], "relation_heads_effect", "no head is surely a relation head"),
        ([relations(ALL)], "relation_heads_share_worse", "all heads are relation heads"),
        ([relations()], "heterogeneous_heads_effect", "no result of map-types"),
        ([relations(), types(NONE)], "heterogeneous_heads_effect", "no head has mostly"),
    ],
)
def test_each_quantity_has_its_own_reason(others: list[Result], quantity: str, why: str) -> None:
    """Without relation-heads it was said that no head attends along frames, of map types too."""
    profile = profile_of([ablation(), *others])
    assert quantity not in profile.evidence()
    assert profile.reasons()[quantity].startswith("not judged: ")
    assert why in profile.reasons()[quantity]
    assert not set(profile.reasons()) & set(profile.evidence())


def test_an_old_ablation_cannot_be_compared_by_groups() -> None:
    old = ablation()
    del old.arrays["effect_covariance"]
    with pytest.raises(DataError, match="older version"):
        profile_of([old, types()])
    assert "groups" not in profile_of([old]).tables


def test_relation_heads_are_those_above_the_percentile_that_are_sure() -> None:
    above = WHERE[0] == 5
    both = profile_of([relations(above_percentile=above & (WHERE[1] > 0))])
    chosen = both.table()[both.table()["relation_head"]]
    assert list(zip(chosen["layer"], chosen["head"], strict=True)) == [(5, 1)]


def test_heads_of_another_relation_decide_no_claim_about_frames() -> None:
    other = relations()
    other.arrays.attrs["relation"] = "nsubj"
    profile = profile_of([ablation(), other, types()])
    judged = {"heterogeneous_heads_effect", "heterogeneous_heads_share_worse"}
    assert set(profile.evidence()) == judged
    assert "are of nsubj" in profile.reasons()["relation_heads_effect"]
    assert "are of nsubj" in profile.reasons()["largest_loss_of_relation_heads"]


def test_an_uninformed_model_judges_no_claim() -> None:
    profile = profile_of([ablation(informed=0), relations(), types()])
    assert profile.evidence() == {}
    assert "constant answer" in profile.reasons()[""]


def test_what_cannot_be_joined_is_refused() -> None:
    with pytest.raises(ParameterError, match="at least one"):
        profile_of([])
    with pytest.raises(ParameterError, match="one result of a study"):
        profile_of([ablation(), ablation()])
    with pytest.raises(ParameterError, match="head-sets"):
        profile_of([made("head-sets", {})])
    small = ablation()
    small.tables["heads"] = small.tables["heads"].iloc[:-1]
    with pytest.raises(DataError, match="other heads"):
        profile_of([small, relations()])
    small.tables = {}
    with pytest.raises(DataError, match="no table of heads"):
        profile_of([small])


def test_it_is_stored_and_drawn_like_any_result(tmp_path: Path) -> None:
    assert "head-profile" not in STUDIES  # nothing is run
    profile = profile_of([ablation(), relations(), types()])
    store = Store(str(tmp_path))
    again = store.load(store.save(profile))
    assert isinstance(again, HeadProfileResult)
    assert again.equals(profile)
    assert list(again.figures()) == ["groups", "relations"]
    assert again.plot("groups").axes
