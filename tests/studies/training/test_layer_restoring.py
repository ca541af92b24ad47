"""Layers set back: a task that lives in one layer is found there, and nothing where nothing is."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import binom

import bertology as bt
import made_restored
import planted
import tiny
from bertology.data.loading import load_corpus
from bertology.errors import CapabilityError, InterruptedRunError
from bertology.model.encoder import Encoder
from bertology.results.result import Result
from bertology.studies.study import Context
from bertology.studies.training.layer_restoring import (
    LayerRestoring,
    LayerRestoringResult,
    asked_changes,
)
from bertology.train.restoring import Change, Restorer
from result_conformance import ResultConformance, claims_of


class TestResult(ResultConformance):
    measures = frozenset({"restored-loss", "below-loss", "above-loss", "weights-moved"})

    @staticmethod
    def make() -> Result:
        return made_restored.made_up(made_restored.upper_only)


def test_upper_layers_that_matter_are_found() -> None:
    result = made_restored.made_up(made_restored.upper_only, examples=1000)
    verdicts = claims_of(result)
    assert verdicts["primer-finetuning.lower-layers-can-be-restored"] == "holds"
    assert verdicts["primer-finetuning.upper-layers-need-fine-tuning-more"] == "holds"
    found = result.evidence()
    assert found["upper_restored_loss"].value == pytest.approx(0.08, abs=0.03)
    layers = result.table("layers")
    assert set(layers.loc[layers["sure"], "layer"]) <= {3, 4, 5}
    assert layers["below"].iloc[2] < 0.02 < layers["below"].iloc[-1]
    assert layers["above"].iloc[0] > layers["above"].iloc[-1]
    assert layers["above"].iloc[0] == layers["below"].iloc[-1]  # all layers, either way
    assert (layers["restored_low"] <= layers["restored"]).all()


def test_the_opposite_makes_both_claims_fail() -> None:
    result = made_restored.made_up(
        lambda change: 0.1 * sum(layer < 2 for layer in change.layers), examples=1000
    )
    verdicts = claims_of(result)
    assert set(verdicts.values()) == {"fails"}


def test_changes_of_the_same_worth_bear_no_claim_out() -> None:
    held, draws = 0, 10
    for draw in range(draws):
        result = made_restored.made_up(lambda change: 0.05, draw=draw, seeds=3, examples=200)
        verdicts = claims_of(result)
        held += "holds" in verdicts.values()
    assert held <= binom.ppf(0.999, draws, 0.05)


def test_one_seed_decides_nothing_and_none_is_judged_without_learning() -> None:
    one = made_restored.made_up(made_restored.upper_only, seeds=1)
    assert set(claims_of(one).values()) == {"inconclusive"}
    assert not any(m.sure is not None for m in one.measures())
    poor = made_restored.made_up(lambda change: 0.0, skill=0.5)
    assert set(claims_of(poor).values()) == {"not-applicable"}
    assert "not surely more than 5 points better than a constant answer" in poor.answer


def test_models_with_little_to_lose_are_not_judged() -> None:
    lost = made_restored.upper_only
    weak = made_restored.made_up(lost, skill=0.58, seeds=5, examples=1000)
    assert 0 < weak.table("parts")["score"].iloc[0] - 0.55 < 0.05  # surely learnt, hardly more
    assert set(claims_of(weak).values()) == {"not-applicable"}
    assert "too little to lose" in weak.answer
    enough = made_restored.made_up(lost, skill=0.75, seeds=5, examples=1000)
    assert "not-applicable" not in claims_of(enough).values()


# Models ------------------------------------------------------------------------------------------


def tuned() -> Encoder:
    """A model that knows its task in layer 0 only; layer 1 was moved for nothing."""
    model = planted.model()
    model.config.id2label = dict(enumerate(planted.TASK.labels))
    return Encoder(model, planted.tokenizer(), head="classification", name="planted")


def before() -> Encoder:
    """The same before: layer 0 without what it learnt, layer 1 and the embeddings as they were."""
    base = copy.deepcopy(tuned().base)
    torch.manual_seed(1)
    with torch.no_grad():
        for layer, size in ((0, 0.05), (1, 1e-3)):
            for weight in base.encoder.layer[layer].parameters():  # type: ignore[union-attr]
                if weight.dim() > 1:
                    weight.copy_(size * torch.randn(weight.shape))
    return Encoder(base, planted.tokenizer(), name="before")


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Result:
    """The study, with the planted model in the place of one that was fine-tuned."""
    monkeypatch.setattr(
        "bertology.train.iterative_pruning.tuned_encoder", lambda *given, **more: tuned()
    )
    corpus = load_corpus(str(planted.written(tmp_path / "task", train=40, validation=150)))
    return bt.run(
        "layer-restoring", before(), task=corpus, store=str(tmp_path / "store"), seeds=2, epochs=1
    )


def test_the_layer_in_which_the_task_lives_is_found(found: Result) -> None:
    assert isinstance(found, LayerRestoringResult)
    layers, parts = found.table("layers"), found.table("parts").set_index("set_back")
    assert parts.loc["whole model", "score"] == 1
    assert layers["restored"].to_numpy() == pytest.approx([0.5, 0.0], abs=0.15)
    assert layers["sure"].tolist() == [True, False]
    assert layers["below"].iloc[0] == layers["restored"].iloc[0]
    assert layers["above"].iloc[1] == layers["restored"].iloc[1]
    assert parts.loc["embeddings", "loss"] == 0
    assert parts.loc["lowest third", "loss"] > 0.3
    assert parts.loc["encoder, 0 % of fine-tuning", "loss"] > 0.3
    assert claims_of(found)["primer-finetuning.lower-layers-can-be-restored"] == "fails"


def test_weights_come_back_to_the_bit_and_changes_are_what_they_say() -> None:
    after, first = tuned(), before()
    restorer = Restorer(first, after)
    kept = {n: w.detach().clone() for n, w in after.model.named_parameters()}
    given = dict(first.base.named_parameters())
    inside = {n.removeprefix("bert.") for n in kept if ".layer.0." in n}
    for change, wanted in (
        (Change((0,)), lambda n: given[n]),
        (Change((0,), kept=0.5), lambda n: (given[n] + kept[f"bert.{n}"]) / 2),
    ):
        with restorer.changed(change):
            now = dict(after.base.named_parameters())
            for name in inside:
                torch.testing.assert_close(now[name], wanted(name))
            others = set(now) - inside
            assert all(torch.equal(now[n], kept[f"bert.{n}"]) for n in others)
    with restorer.changed(Change((0, 1), fresh=True), seed=3):
        weight = after.base.get_parameter("encoder.layer.0.intermediate.dense.weight")
        assert 0.01 < weight.detach().std() < 0.03  # as the config has it
    assert all(torch.equal(w, kept[n]) for n, w in after.model.named_parameters())
    moved = restorer.moved()
    assert moved[0] > 0
    assert len(moved) == 2


def test_every_change_is_asked_for_once_and_has_a_name_of_its_own() -> None:
    for layers in (1, 2, 3, 12):
        names = [change.name for change in asked_changes(layers)]
        assert len(set(names)) == len(names)
    assert Change((0, 1, 2)).name == "restored 0-2"
    assert Change((4,), fresh=True).name == "fresh 4"
    assert Change((0, 1), embeddings=True, kept=0.25).name == "kept-0.25 embeddings 0-1"
    assert len(asked_changes(12)) == 12 * 5 - 3 + 2 + 4


def test_a_real_model_is_trained_once_for_both_runs(tmp_path: Path) -> None:
    corpus = load_corpus(str(planted.written(tmp_path / "task", train=48, validation=40)))
    encoder = Encoder(tiny.model("bert"), tiny.tokenizer(planted.WORDS), name="tiny")
    study = LayerRestoring(epochs=1, batch_size=16, learning_rate=1e-3)
    told: list[int] = []
    context = Context(advance=told.append, trained=tmp_path / "trained")
    one = study.measure(encoder, corpus, "fine-tuned-seed-1", context)
    again = study.measure(encoder, corpus, "fine-tuned-seed-1", Context(trained=context.trained))
    assert sum(told) == 100
    assert one.identical(again)
    assert len(list((tmp_path / "trained" / "models").iterdir())) == 1
    assert np.isfinite(one["moved"]).all()


def test_what_cannot_be_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = load_corpus(str(planted.written(tmp_path / "task", train=48, validation=40)))
    shared = Encoder(tiny.model("albert"), tiny.tokenizer(planted.WORDS), name="albert")
    with pytest.raises(CapabilityError, match="share their weights"):
        LayerRestoring().check(shared, corpus)

    def stop(*given: Any, **more: Any) -> None:
        raise InterruptedRunError("stopped")

    monkeypatch.setattr("bertology.train.iterative_pruning.tuned_encoder", stop)
    with pytest.raises(InterruptedRunError):
        LayerRestoring().measure(before(), corpus, "fine-tuned-seed-0", Context())


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_fresh_weights_are_the_same_on_a_gpu() -> None:
    found = []
    for device in ("cpu", "cuda"):
        after = tuned()
        after.model.to(device)
        restorer = Restorer(before(), after)
        with restorer.changed(Change((1,), fresh=True), seed=3):
            name = "encoder.layer.1.intermediate.dense.weight"
            found.append(after.base.get_parameter(name).detach().cpu().clone())
    assert torch.equal(*found)
