"""Separator no-op: planted models whose [SEP] carries nothing or everything, and random ones."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf

import bertology as bt
import tiny
from bertology.data.corpus import Corpus, Example, Field
from bertology.model.encoder import Encoder
from bertology.results.result import Result
from result_conformance import ResultConformance, claims_of

WORDS = ["good", "bad", "the", "."]
_WAY, _ANSWER, _SEPARATES, _SPEAKS = range(4)  # features; each also has its negative at + 4


def _feature(row: torch.Tensor, feature: int, value: float) -> None:
    row[feature], row[feature + 4] = value, -value


def planted(*, speaks: float = 0.02, seed: int = 0) -> hf.BertForMaskedLM:
    """From layer 3 on heads attend to [SEP] and to words, and carry which way words point.

    [SEP] itself points as much as `speaks` the way of "good": hardly, if not given.
    """
    config = hf.BertConfig(
        vocab_size=5 + len(WORDS), hidden_size=16, num_hidden_layers=9, num_attention_heads=4,
        intermediate_size=8, max_position_embeddings=40,
    )  # fmt: skip
    torch.manual_seed(seed)
    made = hf.BertForMaskedLM(config).eval()
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if "LayerNorm" not in name:
                parameter.zero_()
        words: Any = made.bert.embeddings.word_embeddings.weight
        words[:, 8:] = 0.1 * torch.randn(words.shape[0], 8)  # no token is empty
        for word, way in (("good", 1.0), ("bad", -1.0)):
            _feature(words[5 + WORDS.index(word)], _WAY, way)
            _feature(words[5 + WORDS.index(word)], _SPEAKS, 1.0)
        separator = words[tokenizer().sep_token_id]
        _feature(separator, _SEPARATES, 1.0)
        _feature(separator, _WAY, speaks)
        for depth, layer in enumerate(made.bert.encoder.layer[3:]):
            attention = layer.attention
            for first in range(0, 16, 4):
                attention.self.query.bias[first] = 4.0
                attention.self.key.weight[first, _SEPARATES] = 1.0 + 0.05 * depth
                attention.self.key.weight[first, _SPEAKS] = 1.0
                _feature(attention.self.value.weight[first], _WAY, 0.5)
                attention.output.dense.weight[_ANSWER, first] = 0.5
                attention.output.dense.weight[_ANSWER + 4, first] = -0.5
        dense = made.cls.predictions.transform.dense.weight
        _feature(dense[_WAY], _ANSWER, 3.0)
        _feature(dense[_WAY + 4], _ANSWER, -3.0)
    return made


def tokenizer() -> Any:
    return tiny.tokenizer(WORDS, max_length=40)


def corpus(size: int = 60, *, seed: int = 0) -> Corpus:
    """Texts whose words all point one way, so that a hidden one can be told from the others."""
    rng = random.Random(seed)
    texts = []
    for _ in range(size):
        word = rng.choice(["good", "bad"])
        texts.append(" ".join([word] * rng.choice([4, 5, 6]) + [".", word]))
    return Corpus(
        "ways", [Example(str(i), t) for i, t in enumerate(texts)], frozenset({Field.TEXT})
    )


def run(model: Any, store: str = "memory://noop", *, texts: int = 60) -> Result:
    encoder = Encoder(model, tokenizer(), name="planted", head="mlm")
    return bt.run("separator-noop", encoder, corpus=corpus(texts), store=store, progress=False)


class TestResult(ResultConformance):
    measures = frozenset({"sep-weight", "sep-carried", "layer-weight-sep", "layer-cut-sep"})

    @staticmethod
    def make() -> Result:
        return run(planted())


def test_a_separator_that_carries_nothing_is_a_no_op(tmp_path: object) -> None:
    found = run(planted(), f"{tmp_path}")
    outcomes = claims_of(found)
    assert set(outcomes.values()) == {"holds"}, outcomes
    evidence = found.evidence()
    # [SEP] has a value vector of nothing: what it carries, and what depends on it, is small.
    assert evidence["sep_drop_loss"].value == pytest.approx(0, abs=0.02)
    assert evidence["sep_drop_over_words"].value < -0.1
    heads = found.table("heads")
    assert (heads[heads["layer"] < 3]["sep_weight"] < 0.2).all()
    assert (heads[heads["layer"] > 2]["sep_weight"] > 0.24).all()


def test_a_separator_that_misleads_is_none(tmp_path: object) -> None:
    found = run(planted(speaks=1.0), f"{tmp_path}")
    outcomes = claims_of(found)
    assert outcomes["primer-attention.sep-carries-less-than-its-weight"] != "holds"
    assert found.evidence()["sep_share_rise"].low > 0.04  # it gets more all the same


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_said_of_a_random_model(seed: int, tmp_path: object) -> None:
    torch.manual_seed(seed)
    made = hf.BertForMaskedLM(planted().config).eval()
    assert "holds" not in claims_of(run(made, f"{tmp_path}")).values()


def test_it_equals_plain_transformers_and_autograd() -> None:
    from bertology.annotated.plain_classes import plain_classes
    from bertology.model.masked_lm.hidden_words import HiddenWords

    torch.manual_seed(0)
    made = hf.BertForMaskedLM(planted().config).eval()
    encoder = Encoder(made, tokenizer(), name="random")
    (batch,) = encoder.batches(["good bad good . bad", "bad good ."])
    kinds = plain_classes(encoder, batch)
    assert kinds.sum((0, 2)).tolist() == [2, 2, 2, 6]
    places, there = np.array([[1, 3], [2, 0]]), np.array([[True, True], [True, False]])
    before, seen = HiddenWords(encoder, batch, places, there).watch(torch.as_tensor(kinds))

    plain = hf.BertForMaskedLM(made.config).eval()
    plain.load_state_dict(made.state_dict())
    plain.set_attn_implementation("eager")
    for row in range(2):
        ids = batch.inputs["input_ids"][row : row + 1].clone()
        length = int(batch.real[row].sum())
        ids = ids[:, :length]
        at = places[row][there[row]]
        wanted = ids[0, at].clone()
        ids[0, at] = tokenizer().mask_token_id
        out = plain(input_ids=ids, output_attentions=True, output_hidden_states=True)
        for map_ in out.attentions:
            map_.retain_grad()
        loss = torch.nn.functional.cross_entropy(out.logits[0, at], wanted)
        loss.backward()  # type: ignore[no-untyped-call]
        loss = loss.detach()
        assert before.losses[row] == pytest.approx(float(loss), rel=1e-5)
        for layer, given in enumerate(out.attentions):
            attention = plain.bert.encoder.layer[layer].attention
            values = attention.self.value(out.hidden_states[layer])[0].detach()
            slopes, map_ = given.grad, given.detach()
            onward = attention.output.dense.weight.detach()
            for head in range(4):
                own = slice(4 * head, 4 * head + 4)
                moved = values[:, own] @ onward[:, own].T  # (S, M)
                norms = map_[0, head] * moved.norm(dim=-1)
                for kind in range(4):
                    keys = torch.as_tensor(kinds[row, kind, :length])
                    weight = float(map_[0, head][:, keys].sum(-1).mean())
                    carried = float((norms[:, keys].sum(-1) / norms.sum(-1)).mean())
                    slope = float(slopes[0, head][:, keys].abs().mean())
                    place = (row, kind, layer, head)
                    assert seen.weights[place] == pytest.approx(weight, rel=1e-4, abs=1e-6)
                    assert seen.carried[place] == pytest.approx(carried, rel=1e-4, abs=1e-6)
                    assert seen.slopes[place] == pytest.approx(slope, rel=1e-3, abs=1e-8)


def test_two_cuts_take_the_same_mass() -> None:
    from bertology.model.attention_cuts import CutAttention

    torch.manual_seed(1)
    encoder = Encoder(hf.BertForMaskedLM(planted().config).eval(), tokenizer(), name="random")
    (batch,) = encoder.batches(["good bad good . bad"])
    sep, words = torch.zeros(2, 1, 7, dtype=torch.bool)
    sep[0, -1], words[0, 1:4] = True, True
    site = "layer.1.head.2.pattern"
    whole = encoder.run(batch, record=site)[site][0]
    for cut, beside in ((sep, words), (words, sep)):
        dropped = encoder.run(batch, do=CutAttention(cut, beside, [1], False), record=site)[site][0]
        assert (whole - dropped).sum(-1) == pytest.approx(
            torch.minimum(whole[:, -1], whole[:, 1:4].sum(-1)), abs=1e-6
        )
        made_up = encoder.run(batch, do=CutAttention(cut, beside, [1]), record=site)[site][0]
        assert made_up.sum(-1) == pytest.approx(torch.ones(7), abs=1e-6)
        assert torch.allclose(made_up, dropped / dropped.sum(-1, keepdim=True), atol=1e-6)
