"""Attention explanations: attention that tells the answer, attention that does not, and chance."""

from __future__ import annotations

import csv
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import bertology as bt
import explorer
import planted
import planted_explanations as made
import planted_links
import tiny
from bertology.errors import BertologyError, MissingExtraError
from bertology.model.added_parts import add_part
from bertology.model.attributions.answering import Eraser, check_classifier, log_odds
from bertology.model.attributions.gradients import (
    captum_gradients,
    integrated_gradients,
    log_odds_at,
    path_to_masks,
)
from bertology.model.attributions.last_layer import last_layer_only
from bertology.model.attributions.method_names import METHODS, TITLES
from bertology.model.attributions.methods import attribute
from bertology.model.attributions.other_attention import PermutedAttention, find_attention
from bertology.model.attributions.units import units_of
from bertology.model.encoder import Encoder
from bertology.results.result import Result
from bertology.studies.attention.attention_explanations import AttentionExplanations
from bertology.studies.attention.attention_explanations.scores import (
    Ordered,
    example_scores,
    of_chance,
    rationale_words,
)
from bertology.studies.study import Context
from result_conformance import ResultConformance, claims_of

QUICK = {"search_steps": 30, "permutations": 2, "orders": 2, "path_steps": 8, "resamples": 400}


def run(model: Any, corpus: Any = None, **more: Any) -> Result:
    given = made.corpus(40) if corpus is None else corpus
    return bt.run(
        "attention-explanations", made.encoder(model), corpus=given, store="memory://explained",
        progress=False, **QUICK, **more,
    )  # fmt: skip


@cache
def faithful() -> Result:
    return run(made.reads_one_word())


def column(found: Result, score: str, name: str) -> dict[str, float]:
    table = found.table("methods")
    rows = table[table["score"] == score]
    return dict(zip(rows["method"], rows[name], strict=True))


class TestResult(ResultConformance):
    @staticmethod
    def make() -> Result:
        return faithful()


def test_every_method_finds_the_one_word_that_is_read() -> None:
    found = faithful()
    assert all(column(found, "f1", "mean")[name] == 1 for name in METHODS)
    assert all(column(found, "comprehensiveness", "gain_low")[name] > 0 for name in METHODS)
    assert all(column(found, "sufficiency", "mean")[name] < 0.01 for name in METHODS)
    gains = found.plot("gains").axes[0]
    assert "(points)" in gains.get_xlabel().replace("\n", " ")  # a difference; a score is in %
    rows = {name.get_text() for name in gains.get_yticklabels()}
    assert rows == {TITLES[name] for name in METHODS}  # random orders are what they are set against
    outcomes = claims_of(found)
    assert outcomes["primer-attention.attention-beats-chance-as-explanation"] == "holds"
    assert outcomes["primer-attention.attention-agrees-with-human-rationales"] == "holds"
    assert outcomes["primer-attention.other-attention-gives-the-same-answer"] == "fails"
    assert found.evidence()["permuted_variation"].value > 0.2
    others = set(outcomes) - {n for n, outcome in outcomes.items() if outcome == "holds"}
    assert "primer-attention.erasing-by-attention-needs-more-words" in others
    assert "primer-attention.norms-explain-better-than-weights" in others


def test_attention_that_looks_elsewhere_is_exposed() -> None:
    found = run(made.looks_elsewhere())
    assert found.evidence()["attention_over_random"].high < 0
    marked = column(found, "comprehensiveness", "gain_low")
    for name in ("gradient-x-input", "integrated-gradients", "left-out"):
        assert marked[name] > 0
        assert column(found, "f1", "mean")[name] == 1
    outcomes = claims_of(found)
    assert outcomes["primer-attention.attention-beats-chance-as-explanation"] == "fails"
    for name in (
        "attention-agrees-less-with-leaving-out-than-gradients",
        "erasing-by-attention-needs-more-words",
        "other-attention-gives-the-same-answer",
    ):
        assert outcomes[f"primer-attention.{name}"] == "holds", name
    assert found.evidence()["permuted_variation"].value == pytest.approx(0, abs=1e-6)


def test_nothing_is_said_of_a_random_classifier() -> None:
    found = run(made.by_chance(0), made.corpus(16))
    assert "holds" not in claims_of(found).values()
    assert found.answer.startswith("Nothing is sure")


def test_integrated_gradients_are_complete_and_captums_own() -> None:
    encoder = made.encoder(made.by_chance(1))
    (batch,) = encoder.batches(made.corpus(5).texts)
    known = attribute(encoder, batch, ("integrated-gradients",), steps=8)
    path = path_to_masks(encoder, batch, known.units)
    found = integrated_gradients(encoder, batch, known.answers, path, steps=48)
    ends = log_odds(known.logits, known.answers) - log_odds_at(
        encoder, batch, known.answers, path.start
    )
    assert found.sum(1).numpy() == pytest.approx(ends.numpy(), abs=1e-3)
    assert not found[known.units.ids < 0].any()  # special tokens are the same at both ends
    theirs = captum_gradients(encoder, batch, known.answers, path, steps=48)
    assert theirs.numpy() == pytest.approx(found.numpy(), abs=1e-4)


def test_without_captum_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "captum.attr", None)
    encoder = made.encoder(made.by_chance(1))
    (batch,) = encoder.batches(made.corpus(5).texts)
    known = attribute(encoder, batch, ("integrated-gradients",), steps=8)
    path = path_to_masks(encoder, batch, known.units)
    with pytest.raises(MissingExtraError, match=re.escape("bertology[captum]")):
        captum_gradients(encoder, batch, known.answers, path)


@pytest.mark.parametrize("how", ["hidden", "masked"])
def test_leaving_out_is_a_plain_pass_without_the_word(how: str) -> None:
    model = made.by_chance(2)
    encoder = made.encoder(model)
    (batch,) = encoder.batches(["good up down", "the up bad down up"])
    known = attribute(encoder, batch, ("left-out", "attention"), how=how)
    row = list(batch.indices).index(1)
    ids = batch.inputs["input_ids"][row : row + 1, : int(batch.real[row].sum())].clone()
    mask = torch.ones_like(ids)
    if how == "hidden":
        mask[0, 3] = 0
    else:
        ids[0, 3] = encoder.tokenizer.mask_token_id
    with torch.no_grad():
        without = model(input_ids=ids, attention_mask=mask).logits
    answer = known.answers[row : row + 1]
    lost = log_odds(known.logits[row : row + 1], answer) - log_odds(without, answer)
    assert float(known.relevance["left-out"][row, 2]) == pytest.approx(float(lost), abs=1e-5)
    model.set_attn_implementation("eager")
    seen = model(input_ids=ids, output_attentions=True).attentions[-1][0, :, 0].mean(0)[1:-1]
    if how == "hidden":  # the ids are those of the text
        assert known.relevance["attention"][row, :5].tolist() == pytest.approx(
            seen.tolist(), abs=1e-5
        )


@pytest.mark.parametrize("family", ["albert", "deberta", "roberta"])
def test_other_families_are_explained_too(family: str) -> None:
    encoder = explorer.encoder_of("classification", family=family)
    batch = encoder.encode(["the keys are here .", "good dog"])
    found = attribute(encoder, batch, tuple(METHODS), steps=32)
    assert found.units.counts == [5, 2]
    path = path_to_masks(encoder, batch, found.units)
    ends = log_odds(found.logits, found.answers) - log_odds_at(
        encoder, batch, found.answers, path.start
    )
    assert found.relevance["integrated-gradients"].sum(1).tolist() == pytest.approx(
        ends.tolist(), abs=0.02
    )
    assert all((of[1, 2:] == 0).all() for of in found.relevance.values())
    other = find_attention(encoder, batch, steps=3, tolerance=0.5, seeds=[0, 1])
    assert (other.divergence > 0).all()


@pytest.mark.parametrize("family", ["bert", "roberta", "deberta", "albert"])
def test_what_is_computed_once_or_left_out_changes_no_number(family: str) -> None:
    encoder = explorer.encoder_of("classification", family=family)
    batch = encoder.encode(["the keys are here .", "good dog", "a dog that sees the keys is here"])
    last = encoder.shape.layers - 1
    change = PermutedAttention([last], [5, 6, 7], first_only=True)
    whole = encoder.run(batch, do=change).logits
    with last_layer_only(encoder, batch):
        again = encoder.run(batch, do=change).logits
    assert again.numpy() == pytest.approx(whole.numpy(), abs=1e-6)
    assert encoder.run(batch, do=change).logits.equal(whole)  # nothing stays in place
    units = units_of(batch, encoder.tokenizer.all_special_ids)
    rows = torch.tensor([2, 0, 2, 1, 2])
    gone = (units.ids[rows] >= 0) & (units.ids[rows] % 2 == torch.tensor([0, 1, 1, 0, 0])[:, None])
    gone[4] = units.ids[2] >= 0
    eraser = Eraser(encoder, tokens=12)
    plain = eraser._whole(batch, rows, gone)
    assert eraser.logits(batch, rows, gone).numpy() == pytest.approx(plain.numpy(), abs=1e-5)


@pytest.mark.parametrize(
    "part",
    [
        ("layer_choice", {"layers": [0, 2], "how": "mean"}),
        ("layer_mix", {}),
        ("adapters", {"size": 4}),
    ],
)
def test_parts_that_read_other_layers_see_what_each_of_them_gives(
    part: tuple[str, dict[str, Any]],
) -> None:
    model = tiny.model("bert", "classification")  # of three layers
    add_part(model, part[0], torch.Generator().manual_seed(0), **part[1])
    encoder = Encoder(model, tiny.tokenizer(["cat", "dog"]), head="classification")
    check_classifier(encoder)
    batch = encoder.encode(["cat dog dog cat", "dog"])
    change = PermutedAttention([2], [5, 6], first_only=True)
    whole = encoder.run(batch, do=change).logits
    with last_layer_only(encoder, batch):
        again = encoder.run(batch, do=change).logits
    assert again.numpy() == pytest.approx(whole.numpy(), abs=1e-6)


def test_norms_are_not_asked_of_adapters() -> None:
    model = made.reads_one_word()
    add_part(model, "adapters", torch.Generator().manual_seed(0), size=4)
    found = run(model, made.corpus(16))  # new adapters change no answer
    assert set(found.table("methods")["method"]) == {*METHODS, "random"} - {"norms"}
    assert column(found, "f1", "mean")["integrated-gradients"] == 1
    assert column(found, "f1", "mean")["left-out"] == 1
    assert "norms_over_attention" not in found.evidence()
    assert "adapters" in found.reasons()["norms_over_attention"]
    assert "norm-based attention" not in {
        name.get_text() for name in found.plot("gains").axes[0].get_yticklabels()
    }
    encoder = made.encoder(model)
    with pytest.raises(BertologyError, match="adapters after its heads"):
        attribute(encoder, encoder.encode("good up"), ("norms",))


def test_permuted_attention_deals_out_the_same_weights_without_padding() -> None:
    encoder = explorer.encoder_of("classification", family="bert")
    texts = ["the keys are here .", "good dog"]
    batch, site = encoder.encode(texts), "layer.0.head.*.pattern"
    own = encoder.run(batch, record=site)[site]
    for lone in (True, False):
        change = PermutedAttention([0], [1, 2], first_only=lone)
        other = encoder.run(batch, record=site, do=change)[site]
        assert other.sort(-1).values.numpy() == pytest.approx(own.sort(-1).values.numpy())
        assert not other[1, :, :4, 4:].any()  # padding gets none
        assert not other[:, :, 0].equal(own[:, :, 0])
        assert other[:, :, 1:].equal(own[:, :, 1:]) == lone
        alone = PermutedAttention([0], [2], first_only=lone)
        short = encoder.run(encoder.encode(texts[1]), record=site, do=alone)[site]
        assert other[1:, :, :4, :4].numpy() == pytest.approx(short.numpy(), abs=1e-6)


def test_chance_is_what_random_orders_have_in_the_mean() -> None:
    rng, marked = np.random.default_rng(0), np.array([True, False, True, False, False])
    drawn = [
        example_scores(
            Ordered(rng.permutation(5), None, np.full((1, 2, 2), 0.5)),
            answer=1,
            probability=0.8,
            sizes=[1],
            without=np.arange(5.0),
            marked=marked,
        )
        for _ in range(3000)
    ]
    known = of_chance(5, marked)
    assert set(known) == {"tau", "tau_size", "precision", "f1"}
    for name, value in known.items():
        assert np.mean([one[name] for one in drawn]) == pytest.approx(value, abs=0.02), name
    assert set(of_chance(5, np.ones(5, bool))) == {"tau", "tau_size"}  # all are marked: no order


def test_sizes_are_compared_where_a_method_has_no_sign() -> None:
    """Attention on a word that speaks against the answer is right, by its size."""
    said = np.full((1, 2, 2), 0.5)
    found = example_scores(
        Ordered(np.array([0, 1, 2]), np.array([0.7, 0.2, 0.1]), said),
        answer=1, probability=0.8, sizes=[1], without=np.array([-3.0, 1.0, 0.5]), marked=None,
    )  # fmt: skip
    assert found["tau_size"] == pytest.approx(1)
    assert found["tau"] < 0


def test_scores_are_what_they_say() -> None:
    said = np.array([[[0.4, 0.6], [0.9, 0.1]], [[0.7, 0.3], [0.5, 0.5]]])  # (share, 2, class)
    found = example_scores(
        Ordered(np.array([2, 0, 1]), np.array([0.5, 0.1, 0.9]), said),
        answer=1,
        probability=0.8,
        sizes=[1, 2],
        without=np.array([3.0, 1.0, 2.0]),
        marked=np.array([True, False, False]),
    )
    assert found["comprehensiveness"] == pytest.approx((0.2 + 0.5) / 2)
    assert found["sufficiency"] == pytest.approx((0.7 + 0.3) / 2)
    assert found["erased"] == pytest.approx(2 / 3)
    assert found["tau"] == pytest.approx(1 / 3)
    assert (found["precision"], found["f1"]) == (0.5, 0.0)
    # A word of the second text counts on after the first text and one more character.
    places = [(0, 0, 3), (0, 4, 7), (1, 0, 3)]
    marked = rationale_words(places, [[1, 3]], [[0, 3], [4, 7], [8, 11]], first_length=7)
    assert marked.tolist() == [False, True, True]


def test_an_adversary_is_trained_once_and_keeps_answers(tmp_path: Path) -> None:
    for split, size, seed in (("train", 48, 1), ("validation", 30, 2)):
        rows = [(e.text, planted.TASK.labels[int(e.label or 0)])
                for e in planted.corpus(size, seed=seed)]  # fmt: skip
        with (tmp_path / f"{split}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("text", "label"), *rows])
    corpus = bt.load_corpus(str(tmp_path), split="validation")
    encoder = made.encoder(made.looks_elsewhere())
    encoder.config.id2label = dict(enumerate(planted.TASK.labels))
    study = AttentionExplanations(**QUICK, adversary=48)
    found = planted_links.ask(study, encoder, corpus)
    evidence = found.evidence()
    assert evidence["trained_agreement"].value > 0.9
    assert evidence["trained_divergence"].value > 0
    assert set(found.table("attention")["attention"]) >= {"found", "trained"}
    kept = Context(trained=tmp_path / "trained")
    first = study.measure(encoder, corpus, "adversary", kept)
    (weights,) = tmp_path.rglob("adversaries/*/weights.safetensors")
    before = weights.stat().st_mtime_ns
    again = study.measure(encoder, corpus, "adversary", kept)
    assert weights.stat().st_mtime_ns == before
    assert again.equals(first)
    assert float(first["divergence"].mean()) == pytest.approx(evidence["trained_divergence"].value)


def test_what_cannot_be_explained_is_refused() -> None:
    base = Encoder(made.by_chance(0).bert, planted.tokenizer(), name="base")
    with pytest.raises(BertologyError, match="does not tell classes apart"):
        check_classifier(base)
    with pytest.raises(BertologyError, match="must be one of hidden, masked"):
        Eraser(made.encoder(made.by_chance(0)), "shouted")
    encoder = made.encoder(made.by_chance(0))
    with pytest.raises(BertologyError, match="method"):
        attribute(encoder, encoder.encode("good up"), ("atention",))
    with pytest.raises(BertologyError, match="be 0, or at least 2"):
        run(made.by_chance(0), adversary=1)
