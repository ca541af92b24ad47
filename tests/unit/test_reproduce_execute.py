"""A plan done out: what cannot be had is left out, with what needs it; the rest goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf

import tiny
from bertology.errors import CapabilityError, JobError, StoreError
from bertology.model.encoder import Encoder
from bertology.model.loading.steps import save_step
from bertology.reproduce.execute import CACHED, FAILED, NOT_RUN, PlanExecutor
from bertology.reproduce.plan import Combine, Data, FineTune, RunSteps, RunStudy, StepPlan
from bertology.results.store import Store
from bertology.run.session import Session

DATA = Data("grammar-paraphrase", limit=4, train_limit=4)
TUNING = FineTune(DATA)
PLAN = StepPlan(
    (DATA,),
    (
        TUNING,
        RunStudy("head-ablation", DATA, fine_tuned_by=TUNING.key),
        Combine("head-profile", DATA, *[("head-ablation@grammar-paraphrase",)] * 2),
    ),
)


def execute(folder: Path, error: Exception) -> tuple[Any, list[tuple[str, str]]]:
    def load(where: str, head: str) -> Encoder:
        raise error

    said: list[tuple[str, str]] = []
    executor = PlanExecutor(
        "some-model",
        folder,
        Session(Store(folder / "results")),
        load=load,
        log=lambda step, status, more: said.append((step.key, status)),
    )
    return executor.execute(PLAN), said


def test_what_cannot_be_had_is_left_out_with_what_needs_it(tmp_path: Path) -> None:
    done, said = execute(tmp_path, CapabilityError("has no classifier"))
    assert [status for _, status in said] == [NOT_RUN] * 3
    assert done.reasons == {
        "finetune@grammar-paraphrase": "has no classifier",
        "head-ablation@grammar-paraphrase": "needs finetune@grammar-paraphrase, which was not run",
        "head-profile@grammar-paraphrase": (
            "needs head-ablation@grammar-paraphrase, which was not run"
        ),
    }
    assert not done.results


def test_a_step_that_fails_does_not_end_the_rest(tmp_path: Path) -> None:
    done, said = execute(tmp_path, JobError("1 of 1 parts failed"))
    assert done.failed == ["finetune@grammar-paraphrase"]
    assert [status for _, status in said] == [FAILED, NOT_RUN, NOT_RUN]


def test_trouble_with_the_store_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        execute(tmp_path, StoreError("the disk is full"))


def test_a_study_is_run_at_every_step_that_the_model_kept(tmp_path: Path) -> None:
    data, said = Data("grammar", limit=6), list[str]()
    step = RunSteps("outlier-dimensions", "largest_sigma", data, {"draws": 0, "resamples": 100})
    model = tiny.save_reader(tmp_path / "model")
    for number in (0, 10, 100):
        made = hf.BertForMaskedLM.from_pretrained(model)
        with torch.no_grad():
            for layer in made.bert.encoder.layer:
                layer.output.LayerNorm.weight[3] += number / 10
        save_step(model, made, number)

    def executor() -> PlanExecutor:
        return PlanExecutor(
            str(model),
            tmp_path,
            Session(Store(tmp_path / "results")),
            load=lambda name, head: Encoder.load(name, head=head, device="cpu"),
            log=lambda step, status, more: said.append(status),
        )

    for _ in range(2):
        done = executor().execute(StepPlan((), (step,)))
    assert said[-1] == CACHED
    found = done.results["training-steps@grammar"]
    assert found.table("steps")["step"].tolist() == [0, 10, 100]
    assert found.table("steps")["value"].is_monotonic_increasing
    # Three steps cannot tell a change from drift: how early is open.
    early = found.evidence()["outlier_dimensions_largest_sigma_emerges"]
    assert (early.low, early.high) == (0, 1)
    (verdict,) = (v for v in found.verdicts() if v.claim.id.endswith("outliers-emerge-early"))
    assert str(verdict.outcome) == "inconclusive"
