"""Crossed seeds: known spreads are found, luck is not taken for seeds, a tiny study runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import bertology as bt
import made_seeds
import planted
from bertology.data.loading import load_corpus
from bertology.errors import DataError, JobError, ParameterError
from bertology.model.encoder import Encoder
from bertology.results.result import Result
from bertology.studies.study import Context
from bertology.studies.training.seed_variance import SeedVariance, SeedVarianceResult
from result_conformance import ResultConformance, claims_of


class TestResult(ResultConformance):
    @staticmethod
    def make() -> Result:
        return made_seeds.made_up(failing=0.2)


def test_planted_spreads_are_found() -> None:
    """Weights make runs differ by five points, the order by none; half-way all is told."""
    result = made_seeds.made_up(
        (0.05, 0.0, 0.01), seeds=9, orders=6, examples=800, told=0.99, base=0.8
    )
    found = result.evidence()
    assert found["initialisation_spread"].value == pytest.approx(0.05, abs=0.02)
    assert found["initialisation_spread"].low > 0.02
    assert found["order_spread"].high < 0.03
    assert found["run_spread"].low < 0.051 < found["run_spread"].high
    verdicts = claims_of(result)
    assert verdicts["primer-finetuning.seeds-change-scores"] == "holds"
    assert verdicts["primer-finetuning.new-weights-contribute"] == "holds"
    stopping = result.table("stopping").set_index("share")
    assert stopping.loc[2 / 3, "correlation_low"] > 0.3
    assert abs(stopping.loc[2 / 3, "loss"]) < 0.01
    assert stopping.loc[1.0, "saving"] == 0
    best = result.table("best")
    assert best["elsewhere"].is_monotonic_increasing
    assert (best["picked"] >= best["elsewhere"] - 1e-9).all()


def test_equal_runs_bear_no_claim_out() -> None:
    held, draws = 0, 12
    for draw in range(draws):
        result = made_seeds.made_up((0.0, 0.0, 0.0), told=0.0, examples=150, draw=draw)
        held += any(
            outcome == "holds"
            for claim, outcome in claims_of(result).items()
            if "stopping" not in claim
        )
    assert held <= binom.ppf(0.999, draws, 0.05)


def test_failed_runs_are_counted() -> None:
    result = made_seeds.made_up(failing=0.4, draw=3)
    runs = result.table("runs")
    assert 0 < runs["failed"].sum() < len(runs)
    assert f"{runs['failed'].sum()} of 25 runs failed" in result.headline()
    constant = float(result.facts["constant"])
    assert runs.loc[runs["failed"], "accuracy"].unique() == pytest.approx([constant])


def test_runs_that_learnt_nothing_are_not_judged() -> None:
    result = made_seeds.made_up(failing=1.0)
    assert not result.evidence()
    assert "no run is surely better" in result.answer
    assert set(claims_of(result).values()) == {"not-applicable"}


def test_two_seeds_of_each_kind_give_no_verdicts() -> None:
    result = made_seeds.made_up(seeds=2, orders=3)
    assert not result.evidence()
    assert set(claims_of(result).values()) == {"not-applicable"}
    assert "fewer than three" in result.answer
    assert set(result.figures()) == {"components"}


# The real thing, tiny ----------------------------------------------------------------------------


def knowing() -> Encoder:
    return Encoder(planted.model(), planted.tokenizer(), head="classification", name="planted")


def test_a_tiny_study_runs_and_its_parts_are_pure(tmp_path: Path) -> None:
    corpus = load_corpus(str(planted.written(tmp_path / "task", train=48, validation=40)))
    how: dict[str, Any] = {
        "epochs": 1, "batch_size": 16, "learning_rate": 1e-3, "seeds": 3, "orders": 3, "looks": 2,
    }  # fmt: skip
    result = bt.run("seed-variance", knowing(), task=corpus, store=str(tmp_path / "store"), **how)
    assert isinstance(result, SeedVarianceResult)
    runs = result.table("runs").set_index(["initialisation", "order"])["accuracy"]
    assert len(runs) == 9
    assert "3 initialisations × 3 orders" in result.headline()
    study, told = SeedVariance(**how), list[int]()
    part = study.measure(knowing(), corpus, "order-2-seed-1", Context(advance=told.append))
    said, labels = part["predictions"].to_numpy(), part["labels"].to_numpy()
    assert said.shape == (2, 40)
    assert (said[-1] == labels).mean() == runs[1, 2]
    assert sum(told) == 100


def test_a_run_that_diverges_is_a_failed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def diverge(job: Any, *, watch: Any, **more: Any) -> None:
        watch.look(5, np.full(80, np.nan))
        raise JobError("the loss is nan")

    monkeypatch.setattr("bertology.train.tuning.tune", diverge)
    corpus = load_corpus(str(planted.written(tmp_path / "task")))
    study = SeedVariance(epochs=1, batch_size=16, looks=2)
    part = study.measure(knowing(), corpus, "order-0-seed-0", Context())
    assert int(part["diverged"]) == 1
    assert set(part["predictions"].to_numpy().ravel()) == {part.attrs["constant"]}


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ParameterError, match="orders"):
        SeedVariance(orders=1)
    labels = np.zeros(9)
    study = SeedVariance(seeds=2, orders=2, looks=1)
    parts = {
        f"order-{j}-seed-{i}": made_seeds.part(labels[None], labels + (i + j == 2), (1.0,))
        for i in range(2)
        for j in range(2)
    }
    with pytest.raises(DataError, match="changed between two parts"):
        study.conclude(parts, made_seeds.provenance())
