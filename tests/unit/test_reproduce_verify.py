"""Which claims are chosen, and which steps of the plans they need."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bertology.errors import UnknownNameError
from bertology.model.shape import Shape
from bertology.reproduce import PAPERS, verify
from bertology.reproduce.execute import PlanResults
from bertology.reproduce.plan import FineTune, ReproductionOptions, RunStudy, StepPlan
from bertology.reproduce.planner import plan_paper
from bertology.reproduce.render.verdict_files import as_csv, as_json
from bertology.reproduce.verify import (
    ChosenClaims,
    Verification,
    VerificationPart,
    choose_claims,
    find_fine_tuned,
    needed_steps,
    plan_parts,
)
from bertology.results.known_claims import load_claims
from bertology.results.verdicts import Claim
from bertology.studies import JOINS, STUDIES

SHAPE = Shape(layers=12, heads=12, hidden=192, head_size=16, mlp=768)
OPTIONS = ReproductionOptions("some-model", tasks=("grammar-paraphrase",), examples=20)


def whole_plan() -> StepPlan:
    return plan_paper(PAPERS.get("dark-secrets"), OPTIONS, SHAPE)


def claim(name: str) -> Claim:
    return next(c for c in load_claims() if c.id == name)


def keys(plan: StepPlan) -> list[str]:
    return [step.key.partition("@")[0] for step in plan.steps]


def test_without_a_wish_all_claims_about_a_given_model_are_taken() -> None:
    chosen = choose_claims(())
    assert {c.id.partition(".")[0] for c in chosen.claims} >= {"dark-secrets"}
    assert not any(c.study == "pretraining-objectives" for c in chosen.claims)
    trained = {c.study for c, _ in chosen.left_out}
    assert trained >= {"fragments", "heuristics", "model-sizes", "super-survivors"}
    assert all(STUDIES.get(study).trains_models for study in trained - {*JOINS})
    assert not any(STUDIES.get(c.study).trains_models for c in chosen.claims if c.study in STUDIES)
    assert all("models of its own" in why for _, why in chosen.left_out)
    assert any(c.study == "head-profile" for c in chosen.claims)
    assert len(chosen.claims) + len(chosen.left_out) == len(load_claims())


def test_claims_are_named_by_id_or_by_words() -> None:
    (one,) = choose_claims(["dark-secrets.disabling-some-heads-hurts"]).claims
    assert one.study == "head-ablation"
    some = choose_claims(
        ["frame", "dark-secrets.disabling-some-heads-hurts", "predicate frame"]
    ).claims
    assert len({c.id for c in some}) == len(some) > 3
    named = choose_claims(["primer-training.sentence-order-beats-nsp"])
    assert not named.left_out
    for nothing in ("words that nobody says", " "):
        with pytest.raises(UnknownNameError, match="claims --search"):
            choose_claims([nothing])


def test_only_what_is_needed_is_left_of_a_plan() -> None:
    plan = whole_plan()
    assert keys(needed_steps(plan, {"relation-heads"})) == ["relation-heads"]
    assert keys(needed_steps(plan, {"head-ablation"})) == ["finetune", "head-ablation"]
    joined = ["relation-heads", "finetune", "map-types", "attention-change", "head-ablation"]
    assert keys(needed_steps(plan, {"head-profile"})) == [*joined, "head-profile"]
    assert not needed_steps(plan, {"relation-heads"}).tasks
    every = {s.study for s in plan.steps if not isinstance(s, FineTune)}
    assert needed_steps(plan, every).steps == plan.steps


def test_claims_of_a_paper_without_a_plan_have_the_steps_of_their_studies() -> None:
    names = ("primer-training.sentence-order-beats-nsp", "primer-training.width-improves-tasks")
    chosen = [claim(n) for n in (*names, "dark-secrets.disabling-some-heads-hurts")]
    paper, rest = plan_parts(chosen, replace(OPTIONS, seeds=2), SHAPE)
    assert keys(paper.plan) == ["finetune", "head-ablation"]
    objectives, sweep = rest.plan.steps
    assert isinstance(objectives, RunStudy)
    assert isinstance(sweep, RunStudy)
    assert objectives.parameters["objectives"] == ("mlm-nsp", "sop")
    assert objectives.parameters["seeds"] == 2
    assert sweep.parameters["vary_layers"] == sweep.parameters["extras"] == ()
    for step in (objectives, sweep):
        STUDIES.get(step.study)(**step.parameters)  # takes what it is given
        assert (step.data.split, step.data.limit) == ("train", 20)


def test_claims_of_a_part_of_a_survey_have_the_steps_of_its_plan() -> None:
    """Their ids open with another name than the paper's."""
    names = ("primer-attention.sep-is-a-no-op", "nuggets-attention.important-heads-can-be-zeroed")
    nuggets, primer = plan_parts([claim(n) for n in names], OPTIONS, SHAPE)
    assert (nuggets.title, primer.title) == ("BERTology Nuggets", "A Primer in BERTology")
    assert keys(primer.plan) == ["separator-noop"]
    joined = ["relation-heads", "finetune", "map-types", "head-ablation", "head-profile"]
    assert keys(nuggets.plan) == joined


def test_no_study_is_planned_on_data_without_its_fields() -> None:
    """`verify --claims numersense` planned number words on sentences without answers."""
    numbers = claim("numersense.number-words-are-known")
    pairs = replace(numbers, id="other-paper.pairs", study="agreement")
    joined = replace(numbers, id="other-paper.joined", study="head-profile")
    strange = replace(numbers, id="other-paper.strange", study="no-such-study")
    (part,) = plan_parts([numbers, pairs, joined, strange], OPTIONS, SHAPE)
    (step,) = part.plan.steps
    assert (step.study, step.data.name) == ("agreement", "grammar-agreement")
    why = part.without_steps
    assert set(why) == {"number-words", "head-profile", "no-such-study"}
    assert why["number-words"].startswith("grammar has no answer, candidates, which")
    assert "bertology run number-words --corpus NAME" in why["number-words"]
    assert "not installed" in why["no-such-study"]
    assert why["head-profile"] == JOINS.get("head-profile").lacking
    done = Verification(ChosenClaims((numbers,)), [part], [PlanResults()])
    assert done.why_open(done.judged[0]) == why["number-words"]


def test_a_plugins_claims_are_judged_on_a_classifier_where_they_need_one() -> None:
    ablation = replace(claim("dark-secrets.disabling-some-heads-hurts"), id="other-paper.ablation")
    types = replace(claim("dark-secrets.first-three-map-types-are-common"), id="other-paper.maps")
    (part,) = plan_parts([ablation, types], replace(OPTIONS, epochs=2), SHAPE)
    taught, asked, maps = part.plan.steps
    assert isinstance(taught, FineTune)
    assert taught.epochs == 2
    assert isinstance(asked, RunStudy)
    assert asked.fine_tuned_by == taught.key
    assert maps.data.name == "grammar"


def test_what_could_not_be_judged_is_told_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    strange = replace(
        claim("dark-secrets.disabling-some-heads-hurts"), id="x.y", study="no-such-study"
    )
    hurt = claim("dark-secrets.disabling-some-heads-hurts")
    plan = needed_steps(whole_plan(), {"head-ablation"})
    done = PlanResults(reasons={"head-ablation@grammar-paraphrase": "it has no heads"})
    parts = [
        VerificationPart("paper", (hurt,), plan),
        VerificationPart("rest", (strange,), StepPlan((), ())),
    ]
    found = Verification(ChosenClaims((hurt, strange)), parts, [done, PlanResults()])
    assert found.counts == {"not run": 2}
    assert [found.why_open(j) for j in found.open] == [
        "it has no heads",
        "its study 'no-such-study' is not installed here",
    ]
    record = json.loads(as_json(found, model={"name": "m"}, command="bertology verify m"))
    assert [c["reason"] for c in record["claims"]] == [found.why_open(j) for j in found.open]
    lines = as_csv(found).splitlines()
    assert len(lines) == 3
    assert lines[1].endswith(",not run,False,,it has no heads")
    monkeypatch.setattr(verify, "load_claims", lambda: [strange])
    ((_, why),) = choose_claims(()).left_out
    assert "not installed" in why


def test_a_step_that_failed_is_told_though_its_claim_was_judged_elsewhere() -> None:
    hurt = claim("dark-secrets.disabling-some-heads-hurts")
    key = "head-ablation@grammar-paraphrase"
    part = VerificationPart("paper", (hurt,), needed_steps(whole_plan(), {"head-ablation"}))
    left, broke = ({"reasons": {key: "killed"}, "failed": failed} for failed in ([], [key]))
    assert Verification(ChosenClaims((hurt,)), [part], [PlanResults(**left)]).failed == {}
    assert Verification(ChosenClaims((hurt,)), [part], [PlanResults(**broke)]).failed == {
        key: "killed"
    }


@pytest.mark.parametrize(
    ("record", "known"),
    [
        ({"start": "pretrained", "base": {"name": "b", "fingerprint": "f"}, "task": "t"}, True),
        ({"start": "random", "base": {"name": "b", "fingerprint": "f"}, "task": "t"}, False),
        (
            {"start": "4c", "lesson": {}, "base": {"name": "b", "fingerprint": "f"}, "task": "t"},
            True,
        ),
        ({"start": "pretrained", "base": None, "task": "t"}, False),
        ({}, False),
    ],
)
def test_what_a_classifier_was_is_read_beside_it(
    record: dict[str, Any], known: bool, tmp_path: Path
) -> None:
    (tmp_path / "bertology.json").write_text(json.dumps({"schema": 1, **record}))
    found = find_fine_tuned(str(tmp_path))
    assert (found is not None) == known
    if found is not None:
        assert (found.task, found.base, found.fingerprint) == ("t", "b", "f")


def test_a_record_that_cannot_be_read_makes_no_classifier(tmp_path: Path) -> None:
    assert find_fine_tuned(str(tmp_path)) is None
    assert find_fine_tuned("user/model") is None
    (tmp_path / "bertology.json").write_text("{")
    assert find_fine_tuned(str(tmp_path)) is None
