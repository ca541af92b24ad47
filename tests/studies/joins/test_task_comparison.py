"""Results of several tasks together: made ones, whose answer is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import planted_links as planted
from bertology.annotated.tagger import Tags
from bertology.errors import DataError, ParameterError
from bertology.model.encoder import Encoder
from bertology.results.evidence import evidence_array
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.results.rules import Outcome
from bertology.results.store import Store
from bertology.stats import Estimate
from bertology.studies import STUDIES
from bertology.studies.attention.token_classes import TokenClasses, TokenClassesResult
from bertology.studies.joins.task_comparison import TaskComparison, TaskComparisonResult
from result_conformance import ResultConformance, told

LAYERS, HEADS = 12, 12
WHERE = np.indices((LAYERS, HEADS)).reshape(2, -1)
TYPES = np.array(["vertical", "diagonal", "heterogeneous"])
PLANTED = np.random.default_rng(9).normal(0, 1, LAYERS * HEADS)  # what both tasks lose by head


def made(study: str, task: str, columns: dict[str, Any], *, pair: bool = True) -> Result:
    table = pd.DataFrame({"layer": WHERE[0], "head": WHERE[1], **columns})
    corpus = {"name": task, "fingerprint": task, "pair": pair}
    provenance = Provenance(study, 1, {}, {"name": "m", "fingerprint": f"m-{task}"}, corpus)
    facts = {"level": 0.95, "informed": 1, "examples": 200, "margin": 1.0}
    return Result(provenance, {"heads": table}, xr.Dataset(attrs=facts))


def ablation(
    task: str,
    seed: int,
    *,
    shared: float = 0.0,
    layers: float = 0.0,
    missed: Sequence[int] = (),
    reach: float = 5.0,
) -> Result:
    """Effects with noise of one; heads that are `missed` lose eight."""
    noise = np.random.default_rng(seed).normal(0, 1, LAYERS * HEADS)
    effect = noise + shared * PLANTED + layers * WHERE[0]
    effect[list(missed)] -= 8
    columns = {
        "difference": effect,
        "simultaneous_low": effect - reach,
        "simultaneous_high": effect + reach,
        "p_adjusted": np.where(np.abs(effect) > reach, 1e-4, 1.0),
    }
    return made("head-ablation", task, columns)


def types(task: str, kinds: Any) -> Result:
    return made("map-types", task, {"type": np.asarray(kinds)})


def classes(task: str, weight: float, *, pair: bool, half: float = 0.01) -> Result:
    found = made("token-classes", task, {}, pair=pair)
    found_weight = Estimate(weight, weight - half, weight + half, 200)
    beyond = Estimate(weight - 0.1, weight - 0.1 - half, weight - 0.1 + half, 200)
    arrays = evidence_array({"sep_weight": found_weight, "sep_weight_beyond_even": beyond})
    return TokenClassesResult(found.provenance, found.tables, arrays)


def compared(results: Sequence[Result], **how: int) -> Result:
    return TaskComparison(**how).join(results)


class TestResult(ResultConformance):
    @staticmethod
    def make() -> Result:
        return compared([ablation("a", 1), ablation("b", 2)], resamples=200)


def outcomes(result: Result) -> dict[str, Outcome]:
    return {v.claim.rule.quantity: told(v) for v in result.verdicts()}


def test_what_was_planted_is_found_and_its_claims_hold() -> None:
    same = np.random.default_rng(1).choice(TYPES, LAYERS * HEADS)
    almost = np.where(np.arange(LAYERS * HEADS) < 10, "vertical", same)
    result = compared(
        [
            ablation("a", 1, shared=1.0, missed=(3, 40)),
            ablation("b", 2, shared=1.0, missed=(40,)),
            ablation("c", 3),
            types("a", same),
            types("b", almost),
            classes("single", 0.30, pair=False),
            classes("a", 0.20, pair=True),
            classes("b", 0.22, pair=True),
        ],
        resamples=1000,
    )
    table = result.table("pairs").set_index(["comparison", "first", "second"])
    assert table.loc[("ranking of heads", "a", "b"), "low"] > 0
    assert table.loc[("ranking of heads", "a", "c"), "low"] < 0
    assert table.loc[("shared loss", "a", "b"), "low"] > 0
    assert table.loc[("shared loss", "a", "b"), "head"] == "3.4"  # the fortieth
    assert table.loc[("shared loss", "a", "c"), "low"] <= 0
    assert table.loc[("map types", "a", "b"), "value"] > 0.8
    found = result.evidence()
    assert found["single_text_sep_lead"].value == pytest.approx(0.08)
    assert found["single_text_sep_lead"].low < 0.08 - 0.01 * np.sqrt(2)  # two comparisons
    judged = {"largest_shared_loss", "same_types", "single_text_sep_lead"}
    judged |= {"single_text_sep_lead_beyond_even"}
    assert outcomes(result) == dict.fromkeys(judged, Outcome.HOLDS)
    assert set(found) == {*judged, "shared_ranking"}
    assert found["same_types"].unit == "heads"
    assert found["single_text_sep_lead"].unit == "examples"
    assert list(result.figures()) == ["losses", "types", "sep"]
    for name in result.figures():
        assert ("[SEP]" in result.figures()[name].caption) == (name == "sep")
        first, *others = result.plot(name).axes
        rows = len(first.get_yticklabels())
        for axes in (first, *others):  # no row is empty: what is not compared is not drawn
            dots = sum(
                len(line.get_xdata()) for line in axes.get_lines() if line.get_marker() == "o"
            )
            assert dots == rows


def test_ranking_heads_alike_is_not_missing_the_same_head() -> None:
    """Both lose the same small amounts, none of which is sure: no head is shared for sure."""
    both = [ablation(task, seed, shared=0.8) for seed, task in enumerate("ab")]
    result = compared(both, resamples=300)
    assert result.evidence()["shared_ranking"].low > 0
    assert outcomes(result)["largest_shared_loss"] is Outcome.INCONCLUSIVE
    # Where it is sure that neither loses a tenth of a point, nothing that matters can be shared.
    sure = [ablation(task, seed, reach=1.0) for seed, task in enumerate("ab")]
    for one in sure:
        one.tables["heads"]["difference"] /= 1e5
        one.tables["heads"]["simultaneous_low"] = -0.0009
        one.tables["heads"]["simultaneous_high"] = 0.0009
        one.tables["heads"]["p_adjusted"] = 1.0
    assert outcomes(compared(sure, resamples=300))["largest_shared_loss"] is Outcome.NEGLIGIBLE


def test_value_and_bounds_are_of_one_number() -> None:
    """The number of heads missed in both had a value, a lower and an upper end of three kinds."""
    one, two = ablation("a", 1, missed=(3, 40)), ablation("b", 2, missed=(3, 40))
    for result in (one, two):
        heads = result.tables["heads"]
        heads.loc[3, "difference"] = -20.0  # a larger loss in both, of which neither is sure
        heads.loc[3, ["simultaneous_low", "simultaneous_high", "p_adjusted"]] = (-40.0, 1.0, 1.0)
    row = compared([one, two], resamples=200).table("pairs").set_index("comparison")
    found = row.loc["shared loss"]
    losses = [-result.tables["heads"]["difference"] for result in (one, two)]
    assert found["head"] == "3.4"
    assert found["value"] == pytest.approx(min(loss[40] for loss in losses))
    assert 0 < found["low"] <= found["value"]
    assert found["low"] < found["value"] - 5  # corrected for two tasks beside the heads
    assert found["high"] == pytest.approx(40)  # the head that is not sure may be the larger one
    # One task that surely misses a head is not enough.
    alone = compared([one, ablation("c", 3)], resamples=200).evidence()["largest_shared_loss"]
    assert alone.low <= 0 < alone.high


def test_the_best_pair_of_tasks_is_one_pair() -> None:
    """Value and bounds came from different pairs of tasks."""
    tasks = [ablation(t, i, missed=(7,) if t in "ab" else ()) for i, t in enumerate("abcd")]
    result = compared(tasks, resamples=200)
    rows = result.table("pairs").query("comparison == 'shared loss'")
    found = result.evidence()["largest_shared_loss"]
    here = rows[(rows["value"] == found.value) & (rows["low"] == found.low)]
    assert list(here["first"] + here["second"]) == ["ab"]
    assert found.high == rows["high"].max()


def test_the_paper_has_no_cola_and_compares_absolute_weights() -> None:
    tasks = [classes("sst-2", 0.4, pair=False), classes("mrpc", 0.2, pair=True)]
    cola = classes("cola", 0.1, pair=False)  # would make the claim fail
    found = compared([*tasks, cola]).evidence()
    assert found["single_text_sep_lead"].value == pytest.approx(0.2)
    assert found["single_text_sep_lead_beyond_even"].value == pytest.approx(-0.1)
    assert outcomes(compared([*tasks, cola]))["single_text_sep_lead"] is Outcome.HOLDS
    assert "single_text_sep_lead" not in compared([tasks[1], cola]).evidence()


def test_no_claim_holds_by_chance() -> None:
    held = []
    for seed in range(10):
        random = np.random.default_rng(seed)
        kinds = [random.choice(TYPES, LAYERS * HEADS) for _ in range(3)]
        result = compared(
            [
                *(ablation(t, 100 * seed + i, layers=0.5) for i, t in enumerate("abc")),
                *(types(t, k) for t, k in zip("abc", kinds, strict=True)),
                classes("single", 0.2 + random.normal(0, 0.005), pair=False),
                classes("a", 0.2 + random.normal(0, 0.005), pair=True),
            ],
            resamples=300,
        )
        held += [q for q, outcome in outcomes(result).items() if outcome is Outcome.HOLDS]
    assert len(held) <= 1  # 30 verdicts of intervals of 95 %, and one side counts


@pytest.mark.parametrize("heads", [(planted.SEPARATOR,), ()])
def test_one_sep_gets_what_two_share(
    heads: tuple[tuple[int, int], ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Dull:
        name = "all nouns"

        def tag(self, sentences: list[list[str]]) -> list[Tags]:
            return [Tags(("NOUN",) * len(s), ("",) * len(s)) for s in sentences]

    monkeypatch.setattr("bertology.annotated.tagger.find_tagger", lambda name: Dull())
    encoder = Encoder(planted.model(*heads), planted.tokenizer())
    found = []
    for pair in (False, True):
        corpus = planted.corpus(30, pairs=pair)
        result = planted.ask(TokenClasses(resamples=100), encoder, corpus)
        about = {**result.provenance.corpus, "pair": pair}
        result.provenance = replace(result.provenance, corpus=about)
        found.append(result)
    lead = compared(found).evidence()["single_text_sep_lead_beyond_even"]
    if heads:
        assert compared(found).evidence()["single_text_sep_lead"].low > 0.01
        assert lead.low > 0.01
        assert lead.value == pytest.approx(0.5 / 16, abs=0.01)  # one head of 16
    else:
        assert lead.value == pytest.approx(0, abs=1e-4)  # although single texts are shorter


def test_what_cannot_be_compared_is_not_judged() -> None:
    constant = [types(t, ["heterogeneous"] * LAYERS * HEADS) for t in "ab"]
    unlearnt = ablation("b", 2)
    unlearnt.arrays.attrs["informed"] = 0
    pairs = [classes(t, 0.2, pair=True) for t in "ab"]
    result = compared([*constant, ablation("a", 1), unlearnt, *pairs])
    assert result.evidence() == {}
    assert "needs two tasks" in result.reasons()[""]
    assert set(outcomes(result).values()) == {Outcome.NOT_APPLICABLE}
    assert result.figures() == {}


def test_refusals() -> None:
    with pytest.raises(DataError, match="two tasks"):
        compared([ablation("a", 1)])
    with pytest.raises(ParameterError, match="one result of a study and task"):
        compared([ablation("a", 1), ablation("a", 2)])
    with pytest.raises(ParameterError, match="be of head-ablation"):
        compared([made("head-sets", "a", {})])
    fewer = types("b", TYPES[[0] * LAYERS * HEADS])
    fewer.tables["heads"] = fewer.tables["heads"].iloc[:12]
    with pytest.raises(DataError, match="different numbers of heads"):
        compared([ablation("a", 1), fewer])
    bare = ablation("b", 2)
    del bare.tables["heads"]
    with pytest.raises(DataError, match="no table of heads"):
        compared([ablation("a", 1), bare])


def test_it_is_stored_as_what_it_is_and_is_no_study(tmp_path: Path) -> None:
    result = compared([ablation("a", 1), ablation("b", 2)], resamples=200)
    store = Store(tmp_path)
    store.save(result)
    again = store.load(result.identity)
    assert isinstance(again, TaskComparisonResult)
    assert again.evidence() == result.evidence()
    assert again.headline() == "2 tasks compared, two at a time"
    assert list(again.figures()) == ["losses"]  # what was not compared is not drawn
    assert "task-comparison" not in list(STUDIES)


def test_a_stored_comparison_that_is_made_no_more_does_no_harm() -> None:
    """The page of a model broke off at a result of an earlier version."""
    result = compared([ablation("a", 1), ablation("b", 2)], resamples=200)
    pairs = result.tables["pairs"]
    old = pairs.head(1).assign(comparison="missed heads")
    result.tables["pairs"] = pd.concat([pairs, old], ignore_index=True)
    assert list(result.figures()) == ["losses"]
    result.tables["pairs"] = old
    assert not result.figures()
    assert result.answer
    assert len(result.in_units("pairs", result.shown("pairs"))) == 1
