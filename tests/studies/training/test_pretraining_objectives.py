"""Objectives: a planted difference is found, noise is not, and a tiny study runs to its end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy.stats import binom

import bertology as bt
from bertology.data.corpus import Corpus
from bertology.data.loading import load_corpus
from bertology.errors import (
    CapabilityError,
    InterruptedRunError,
    ParameterError,
    UnknownNameError,
)
from bertology.model.encoder import Encoder
from bertology.results.known_claims import load_claims
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.results.rules import Outcome
from bertology.results.store import Store
from bertology.studies.study import Context
from bertology.studies.training.pretraining_objectives import (
    _JUDGED,
    COMPARED_OBJECTIVES,
    PretrainingObjectives,
    PretrainingObjectivesResult,
)
from bertology.studies.training.shared import NOT_LEARNT
from bertology.train.pretrain.objectives import find_objective
from result_conformance import ResultConformance, told

GAINS = {  # over BERT's own objective, in every measure but the loss
    "static": -0.05, "no-sentence-loss": 0.03, "no-nsp": 0.03, "span-boundary": 0.06,
    "sop": 0.05, "three-way": 0.05,
    "stream-subsampled": 0.02, "permutation": 0.08, "ngram-order": 0.08, "ngram": 0.05,
    "continual": 0.09, "unk-mask": 0.0,
}  # fmt: skip


BASELINES = {"mlm_baseline": 0.1, "metric": "accuracy"}


def planted(
    gains: dict[str, float],
    *,
    seeds: int = 6,
    noise: float = 0.002,
    draw: int = 0,
    baseline: float = 0.5,
) -> Result:
    """The result of measurements that are made up: 0.7, what an objective gains, and noise."""
    rng = np.random.default_rng(draw)
    study = PretrainingObjectives(seeds=seeds)
    parts = {}
    for seed in range(seeds):
        luck = rng.normal(0, 0.05)  # of the seed, which pairing takes out
        for name in COMPARED_OBJECTIVES:
            score = 0.7 + gains.get(name, 0.0) + luck
            values = score + rng.normal(0, noise, 3)
            numbers = dict(
                zip(("mlm_accuracy", "pair_accuracy", "task_score"), values, strict=True)
            )
            numbers |= {"mlm_loss": 2 - score, "seconds": 1.0}
            if name == "replaced":
                numbers |= dict.fromkeys(("mlm_loss", "mlm_accuracy", "pair_accuracy"), np.nan)
            part = xr.Dataset(numbers, attrs={**BASELINES, "baseline": baseline})
            parts[f"{name}-seed-{seed}"] = part
    return study.conclude(parts, provenance())


class TestResult(ResultConformance):
    @staticmethod
    def make() -> Result:
        return planted(GAINS, seeds=2)


def provenance() -> Provenance:
    return Provenance(
        study="pretraining-objectives",
        study_version=1,
        parameters={},
        model={"name": "m", "fingerprint": "f"},
        corpus={"name": "made-up", "fingerprint": "c"},
    )


def outcomes(result: Result) -> dict[str, Outcome]:
    return {v.claim.id.partition(".")[2]: told(v) for v in result.verdicts()}


def test_planted_differences_bear_the_claims_out() -> None:
    result = planted(GAINS)
    found = outcomes(result)
    assert len(found) == 12
    assert set(found.values()) == {Outcome.HOLDS}
    table = result.table("objectives").set_index(["objective", "measure"])
    row = table.loc[("static", "task_score")]
    assert row["difference"] == pytest.approx(-0.05, abs=0.005)
    assert row["difference_low"] < -0.05 + 0.01 < row["difference_high"] + 0.02
    assert row["p"] <= row["p_adjusted"] < 0.05
    assert np.isnan(table.loc[("mlm-nsp", "task_score"), "p"])
    assert np.isnan(table.loc[("replaced", "mlm_accuracy"), "mean"])
    assert np.isfinite(table.loc[("replaced", "task_score"), "mean"])
    assert "replaced_over_no_nsp_mlm" not in result.evidence()


def test_the_opposite_makes_them_fail() -> None:
    found = outcomes(planted({n: -2 * abs(g) - 0.05 for n, g in GAINS.items()} | {"static": 0.1}))
    assert found["leaving-out-nsp-does-no-harm"] is Outcome.FAILS
    assert found["dynamic-masking-improves-tasks"] is Outcome.FAILS
    assert found["dynamic-masking-improves-mlm"] is Outcome.FAILS


def test_noise_is_not_taken_for_an_effect() -> None:
    """Every claim where it just does not hold: all together may be wrong in 2.5 % of all cases."""
    margin = ("no-sentence-loss", "no-nsp", "unk-mask", "stream-subsampled")
    alone = ("span-boundary", "permutation", "ngram-order", "continual")  # against no-nsp
    held, draws = 0, 12
    for draw in range(draws):
        found = outcomes(planted(dict.fromkeys(margin + alone, -0.01), noise=0.03, draw=draw))
        held += Outcome.HOLDS in found.values()
    assert held <= binom.ppf(0.999, draws, 0.025)  # 3, of 12 studies with twelve claims each


def test_one_seed_decides_nothing() -> None:
    result = planted(GAINS, seeds=1)
    assert set(outcomes(result).values()) == {Outcome.INCONCLUSIVE}
    assert result.plot().axes


def test_models_that_learnt_nothing_are_not_called_equal() -> None:
    assert outcomes(planted({}, noise=1e-4))["leaving-out-nsp-does-no-harm"] is Outcome.HOLDS
    result = planted({}, noise=1e-4, baseline=0.75)
    assert outcomes(result)["leaving-out-nsp-does-no-harm"] is Outcome.NOT_APPLICABLE
    reason = result.reasons()["no_nsp_over_nsp_task"]
    assert reason == NOT_LEARNT.format("no-sentence-loss", "fine-tuned score")
    assert "no_nsp_over_nsp_mlm" in result.evidence()
    assert "no_nsp_over_nsp_mlm" not in result.reasons()


def test_an_arm_that_collapsed_is_not_judged_to_fail() -> None:
    """As permutation and streams did, which the claims about them were said to fail by."""
    result = planted(GAINS | {"permutation": -0.5, "stream-subsampled": -0.5}, baseline=0.3)
    found = outcomes(result)
    unjudged = {name for name, outcome in found.items() if outcome is Outcome.NOT_APPLICABLE}
    assert unjudged == {"permutation-beats-masking", "streams-do-as-well-as-pairs"}
    assert set(found.values()) == {Outcome.HOLDS, Outcome.NOT_APPLICABLE}
    assert "permutation does not surely beat" in result.reasons()["permutation_over_no_nsp_task"]


def test_claims_are_corrected_together_and_shares_end_where_they_must() -> None:
    result = planted(GAINS, noise=0.01)
    table = result.table("objectives").set_index(["objective", "measure"])
    own = table.loc[("sop", "task_score")]
    judged = result.evidence()["sop_over_nsp_task"]
    assert judged.value == pytest.approx(own["difference"])
    assert judged.low < own["difference_low"]  # twelve claims, not one
    assert judged.level == pytest.approx(1 - 0.05 / 12)  # and says so
    assert judged.unit == "seeds"
    claimed = {c.rule.quantity for c in load_claims() if c.study == "pretraining-objectives"}
    assert claimed == set(_JUDGED)
    wild = planted({}, noise=0.6, seeds=2).table("objectives").set_index("measure")
    shares = wild.drop("mlm_loss")
    assert (shares["low"].dropna() >= 0).all()
    assert (shares["high"].dropna() <= 1).all()


def test_without_the_sentence_loss_rows_stay_the_same() -> None:
    nsp, none = (find_objective(n)[0].objective for n in ("mlm-nsp", "no-sentence-loss"))
    assert replace(nsp, losses=("mlm",)) == none
    tuning = PretrainingObjectives(finetune_examples=4).load_task()
    assert tuning is not None
    assert tuning.pooler == "fresh"


def test_names_are_those_of_the_recipes() -> None:
    from bertology.train.pretrain import objectives

    assert tuple(objectives.OBJECTIVES) == COMPARED_OBJECTIVES


def test_refuses_before_any_work(encoder: Encoder, text: Corpus, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="objective"):
        PretrainingObjectives(objectives=("mlm-nsp", "spam"))
    with pytest.raises(ParameterError, match="hold mlm-nsp"):
        PretrainingObjectives(objectives=("sop",))
    with pytest.raises(ParameterError, match="multiple of heads"):
        PretrainingObjectives(heads=3)
    with pytest.raises(CapabilityError, match="contrast"):
        run(encoder, text, tmp_path, pairs="grammar")
    with pytest.raises(CapabilityError):
        run(encoder, text, tmp_path, finetune="grammar")


TINY: dict[str, Any] = {
    "objectives": ("mlm-nsp", "no-nsp"), "layers": 1, "heads": 2, "hidden": 16, "updates": 20,
    "update_tokens": 256, "length": 32, "seeds": 2, "pair_examples": 10, "finetune_examples": 24,
    "finetune_epochs": 1,
}  # fmt: skip


def run(encoder: Encoder, text: Corpus, store: Path, **more: Any) -> PretrainingObjectivesResult:
    found = bt.run(
        "pretraining-objectives", encoder, corpus=text, store=str(store), progress=False,
        **(TINY | more),
    )  # fmt: skip
    assert isinstance(found, PretrainingObjectivesResult)
    return found


def test_a_tiny_study_runs_to_its_end(encoder: Encoder, text: Corpus, tmp_path: Path) -> None:
    result = run(encoder, text, tmp_path)
    runs = result.table("runs")
    assert list(runs["objective"]) == ["mlm-nsp", "no-nsp"] * 2
    measured = runs[["mlm_loss", "mlm_accuracy", "pair_accuracy", "task_score"]]
    assert np.isfinite(measured.to_numpy()).all()
    assert runs["mlm_loss"].nunique() == 4  # seeds and objectives make a difference
    again = Store(str(tmp_path)).load(result.identity)
    assert again.equals(result)
    assert again.plot("objectives").axes
    assert "masked-token accuracy" in again.headline()


def test_parts_tell_of_their_progress_and_repeat(encoder: Encoder, text: Corpus) -> None:
    study = PretrainingObjectives(**TINY | {"pairs": "none", "finetune": "none"})
    parts = study.parts(encoder.shape, text)
    assert parts[:2] == ["mlm-nsp-seed-0", "no-nsp-seed-0"]
    steps: list[int] = []
    one, two = (
        study.measure(encoder, text, parts[1], Context(advance=steps.append)) for _ in range(2)
    )
    assert sum(steps) == 2 * study.steps(parts[1], encoder.shape, text) == 40
    assert one.drop_vars("seconds").equals(two.drop_vars("seconds"))
    assert np.isnan(float(one["task_score"]))


def test_ctrl_c_reaches_the_session(
    encoder: Encoder, text: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bertology.train.pretrain import trial

    def stopped(*given: Any, **named: Any) -> Any:
        raise InterruptedRunError("Pre-training stopped at step 3 of 20.")

    monkeypatch.setattr(trial, "pretrain", stopped)
    with pytest.raises(InterruptedRunError, match="0 of 4 parts"):
        run(encoder, text, tmp_path)


@pytest.fixture(scope="module")
def text() -> Corpus:
    return load_corpus("grammar", split="train", limit=400)


@pytest.fixture
def encoder(text: Corpus) -> Encoder:
    import tiny
    from bertology.train.vocabulary import wordpieces

    lines = [str(t) for t in text.texts]
    pieces = wordpieces(lambda: lines, vocab_size=500, max_length=64)
    return Encoder(tiny.model("bert"), pieces, name="vocabulary")
