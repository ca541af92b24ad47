"""Held-out scores against a plain loop over transformers' own forward."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional

from bertology.errors import DataError
from bertology.train.fresh import Architecture, fresh_bert
from bertology.train.pretrain.chance import Chance
from bertology.train.pretrain.config import Masking, Objective, Stage
from bertology.train.pretrain.evaluate import _batches, evaluate_mlm, held_out
from bertology.train.pretrain.masking import MaskableVocabulary, hide
from bertology.train.pretrain.network import Network
from bertology.train.pretrain.shards import Dealing, prepare
from bertology.train.pretrain.text import Document

SIZE = Architecture(layers=2, heads=2, hidden=16, max_length=32, dropout=0.3, spread=0.3)
LENGTH, TOKENS = 32, 160  # five rows at a time


@pytest.fixture
def model(tokenizer) -> Any:
    return fresh_bert("BertForPreTraining", SIZE, tokenizer, seed=1)


def network(model: Any, *stages: Stage) -> Network:
    return Network(model, stages, SIZE)


def plainly(net: Network, shards: Any, stage: int = 0, seed: int = 0) -> dict[str, float]:
    """One row at a time through the whole model, one prediction at a time."""
    chance, pieces = Chance(seed)("held-out"), MaskableVocabulary.of(shards, "cpu")
    masking = net.stages[stage].objective.masking
    losses: list[float] = []
    right: list[bool] = []
    relations: list[tuple[float, bool]] = []
    for rows in _batches(net, shards, stage, LENGTH, TOKENS, chance):
        hidden = hide(rows, masking, pieces, chance("hide"))
        for i in range(len(rows)):
            real = rows.ids.shape[1] if rows.real is None else int(rows.real[i].sum())
            with torch.no_grad():
                out = net.model.eval()(
                    input_ids=hidden.ids[i : i + 1, :real],
                    token_type_ids=rows.segments[i : i + 1, :real],
                )
            for t in hidden.chosen[i].nonzero().flatten().tolist():
                said, there = out.prediction_logits[0, t], rows.ids[i, t]
                losses.append(float(functional.cross_entropy(said, there)))
                right.append(bool(said.argmax() == there))
            if rows.relation is not None:
                said, there = out.seq_relationship_logits[0], rows.relation[i]
                loss = float(functional.cross_entropy(said, there))
                relations.append((loss, bool(said.argmax() == there)))
    found = {"mlm_loss": sum(losses) / len(losses), "mlm_accuracy": sum(right) / len(right)}
    if relations:
        found["sentence_loss"] = sum(loss for loss, _ in relations) / len(relations)
        found["sentence_accuracy"] = sum(r for _, r in relations) / len(relations)
    return found


def test_scores_are_those_of_a_plain_loop(model, shards):
    found = evaluate_mlm(model, shards, length=LENGTH, batch_tokens=TOKENS, pairing="nsp")
    net = network(model, Stage(Objective()))
    assert found == pytest.approx(plainly(net, shards), rel=1e-5)
    assert found.keys() == {"mlm_loss", "mlm_accuracy", "sentence_loss", "sentence_accuracy"}


@pytest.mark.parametrize("pairing", ["sop", "full-sentences"])
def test_padding_is_not_seen(model, shards, pairing):
    """The plain loop cuts it off; the rows of `sop` have some."""
    losses = ("mlm", "sentence") if pairing == "sop" else ("mlm",)
    objective = Objective(pairing, Masking(units="words", share=0.3), losses)
    net = network(model, Stage(objective))
    found = held_out(net, shards, length=LENGTH, batch_tokens=TOKENS)
    assert found == pytest.approx(plainly(net, shards), rel=1e-5)


def test_they_do_not_depend_on_the_batch(model, shards):
    found = [evaluate_mlm(model, shards, length=LENGTH, batch_tokens=n) for n in (32, 320, 10**6)]
    assert found[0] == pytest.approx(found[1], rel=1e-5)
    assert found[0] == pytest.approx(found[2], rel=1e-5)


def test_they_are_the_same_every_time_and_chance_is_left_alone(model, shards):
    torch.manual_seed(0)
    before = torch.get_rng_state()
    one = evaluate_mlm(model, shards, length=LENGTH)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(1)
    assert evaluate_mlm(model, shards, length=LENGTH) == one
    assert evaluate_mlm(model, shards, length=LENGTH, seed=1) != one


@pytest.mark.parametrize("training", [True, False])
def test_the_model_is_left_as_it_was(model, shards, training):
    model.train(training)
    weights = {n: w.clone() for n, w in model.state_dict().items()}
    one = evaluate_mlm(model, shards, length=LENGTH)
    assert model.training == training
    assert model.bert.embeddings.dropout.training == training
    assert evaluate_mlm(model, shards, length=LENGTH) == one, "no dropout, whatever its mode"
    assert all(torch.equal(w, weights[n]) for n, w in model.state_dict().items())


def test_who_knows_the_answer_is_always_right(model, shards, monkeypatch):
    """Logits that say what was hidden, whatever is hidden."""
    known: dict[str, torch.Tensor] = {}
    judge = Network.judge

    def tell(self: Network, view: Any, stage: int) -> Any:
        known["tokens"], known["relation"] = view.hidden.targets.flatten(), view.rows.relation
        return judge(self, view, stage)

    def logits(wanted: torch.Tensor, classes: int) -> torch.Tensor:
        return 50.0 * functional.one_hot(wanted, classes)

    monkeypatch.setattr(Network, "judge", tell)
    classes = model.config.vocab_size
    monkeypatch.setattr(
        model.cls.predictions, "forward", lambda states: logits(known["tokens"], classes)
    )
    monkeypatch.setattr(
        model.cls.seq_relationship, "forward", lambda states: logits(known["relation"], 2)
    )
    found = evaluate_mlm(model, shards, length=LENGTH, pairing="nsp")
    assert found["mlm_accuracy"] == found["sentence_accuracy"] == 1
    assert found["mlm_loss"] == pytest.approx(0, abs=1e-6)


def test_who_knows_nothing_is_right_as_often_as_chance(model, shards):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    found = evaluate_mlm(model, shards, length=LENGTH)
    size = model.config.vocab_size
    assert found["mlm_loss"] == pytest.approx(torch.log(torch.tensor(float(size))).item(), 1e-5)
    assert found["mlm_accuracy"] == 0, "all zero: the first piece is said, which is [PAD]"


def test_a_shared_loss_is_measured_as_its_first_stage_has_it(model, shards):
    first = Stage(Objective("full-sentences", losses=("mlm",)))
    second = Stage(Objective("sop", losses=("mlm", "sentence")), begins=0.5)
    both = held_out(network(model, first, second), shards, length=LENGTH, batch_tokens=TOKENS)
    alone = held_out(network(model, first), shards, length=LENGTH, batch_tokens=TOKENS)
    assert {k: both[k] for k in alone} == alone
    assert both.keys() - alone.keys() == {"sentence_loss", "sentence_accuracy"}


def test_too_short_a_text_is_said_clearly(model, tokenizer, tmp_path):
    texts = [Document(("Ba ke.",)) for _ in range(40)]
    made = prepare(tmp_path / "s", texts, tokenizer, dealing=Dealing(held_out=0.1))
    with pytest.raises(DataError, match=r"too short for rows of 32 tokens \(full-sentences\)"):
        evaluate_mlm(model, made, length=LENGTH)


def test_rows_are_no_longer_than_the_model_takes(model, shards):
    assert evaluate_mlm(model, shards, length=500) == evaluate_mlm(model, shards, length=LENGTH)


def test_a_masked_language_model_is_taken_too(tokenizer, shards):
    made = fresh_bert("BertForMaskedLM", SIZE, tokenizer, seed=1)
    assert evaluate_mlm(made, shards, length=LENGTH).keys() == {"mlm_loss", "mlm_accuracy"}
