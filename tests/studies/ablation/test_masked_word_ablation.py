"""Masked-word ablation finds the one head that copies a neighbour, and nothing in random models."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf

import tiny
from bertology.data.corpus import Corpus, Example, Field
from bertology.model.encoder import Encoder
from bertology.model.interventions import UniformAttention
from bertology.model.masked_lm.hidden_words import HiddenWords, draw_hidden
from bertology.model.sweeps.replay import Sweep, Variant
from bertology.results.result import Result
from bertology.studies.ablation.masked_word_ablation import MaskedWordAblation, by_frequency
from planted_links import ask
from result_conformance import ResultConformance

COPIER = (1, 2)
WORDS = ["dog", "cat", "ball", "bone", "man", "sun"]
PLACES, WIDTH, HEADS = 14, 128, 4
_SIZE = WIDTH // HEADS


def model(*, copies: bool = True) -> hf.BertForMaskedLM:
    """In head 1.2 each place attends to its neighbour (places 1 and 2, 3 and 4, …) and reads it.

    Features 0 to 13: the place; 14 to 19: the word; each has its negative half the width away.
    """
    config = hf.BertConfig(
        vocab_size=5 + len(WORDS), hidden_size=WIDTH, num_hidden_layers=2,
        num_attention_heads=HEADS, intermediate_size=8, max_position_embeddings=16,
    )  # fmt: skip
    made = hf.BertForMaskedLM(config).eval()
    half, first = WIDTH // 2, _SIZE * COPIER[1]
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if "LayerNorm" not in name:
                parameter.zero_()
        places = made.bert.embeddings.position_embeddings.weight
        words = made.get_input_embeddings().weight
        for at in range(PLACES):
            places[at, at], places[at, at + half] = 1.0, -1.0
        for k in range(len(WORDS)):
            words[5 + k, PLACES + k], words[5 + k, PLACES + k + half] = 1.0, -1.0
        made.cls.predictions.transform.dense.weight.copy_(torch.eye(WIDTH))
        attention = made.bert.encoder.layer[COPIER[0]].attention
        for at in range(1, PLACES - 1):
            neighbour = at + 1 if at % 2 else at - 1
            attention.self.query.weight[first + neighbour, at] = 3.0
            attention.self.key.weight[first + at, at] = 3.0
        if copies:
            for k in range(len(WORDS)):
                attention.self.value.weight[first + PLACES + k, PLACES + k] = 1.0
                attention.output.dense.weight[PLACES + k, first + PLACES + k] = 2.0
                attention.output.dense.weight[PLACES + k + half, first + PLACES + k] = -2.0
    return made


def encoder(made: hf.BertForMaskedLM) -> Encoder:
    return Encoder(made, tiny.tokenizer(WORDS, max_length=16), name="planted", head="mlm")


def random_model(seed: int) -> hf.BertForMaskedLM:
    config = model().config
    config.initializer_range = 0.3
    torch.manual_seed(seed)
    return hf.BertForMaskedLM(config).eval()


def corpus(size: int = 80, *, seed: int = 0) -> Corpus:
    """Every word stands twice, side by side."""
    rng = random.Random(seed)
    texts = (
        " ".join(w for _ in range(rng.choice([4, 5, 6])) for w in [rng.choice(WORDS)] * 2)
        for _ in range(size)
    )
    examples = [Example(str(i), text) for i, text in enumerate(texts)]
    return Corpus("pairs", examples, frozenset({Field.TEXT}))


def ablated(made: hf.BertForMaskedLM, **how: Any) -> Result:
    found: Result = ask(MaskedWordAblation(**{"resamples": 200, **how}), encoder(made), corpus())
    return found


def sure(result: Result) -> list[tuple[int, int]]:
    rows = result.table("heads")
    rows = rows[rows["sure"]]
    return list(zip(rows["layer"], rows["head"], strict=True))


class TestResult(ResultConformance):
    measures = frozenset({"masked-loss", "layer-masked-loss"})

    @staticmethod
    def make() -> Result:
        return ablated(model())

    def test_exactly_the_head_that_copies_is_missed(self, result: Result) -> None:
        assert sure(result) == [COPIER]
        heads = result.table("heads").set_index(["layer", "head"])["rise"]
        assert heads[COPIER] > 0.5
        assert heads.drop(COPIER).abs().max() < 1e-5
        assert list(result.table("layers")["sure"]) == [False, True]
        found = result.evidence()
        assert found["known"].low > 0
        assert found["largest_head_rise"].value == pytest.approx(heads[COPIER])
        assert result.answer.startswith("1 of 2 layers surely changes")

    def test_numbers_for_comparing_are_of_texts(self, result: Result) -> None:
        rows = {c.title: c for c in result.compared()}
        means = [c.estimate.value for c in rows.values()]
        table = result.table("layers")["rise"]
        assert means == pytest.approx(
            [result.table("heads")["rise"].mean(), table.max(), 0.0], abs=1e-5
        )
        halves = result.arrays["half_rises"].to_numpy()
        assert halves.shape == (2, 2, 4)
        assert (halves[:, COPIER[0], COPIER[1]] > 0.3).all()


@pytest.mark.parametrize("method", ["zero", "mean"])
def test_other_ways_to_disable_find_it_too(method: str) -> None:
    assert sure(ablated(model(), method=method)) == [COPIER]


def test_of_models_that_know_nothing_nothing_is_told() -> None:
    assert sure(ablated(model(copies=False))) == []
    for made in (model(copies=False), *(random_model(seed) for seed in range(6))):
        result = ablated(made)
        assert not result.evidence()
        assert not result.compared()
        assert result.answer.startswith("Nothing is sure")


def test_of_texts_whose_words_the_tokenizer_does_not_know_nothing_is_told() -> None:
    texts = [Example(str(i), "zebra zebra") for i in range(4)]
    odd = Corpus("odd", texts, frozenset({Field.TEXT}))
    result: Result = ask(MaskedWordAblation(resamples=100), encoder(model()), odd)
    assert result.answer.startswith("Nothing is sure")
    assert not result.evidence()
    assert not result.drawings()
    assert result.table("heads")["rise"].isna().all()


def test_frequency_is_that_of_the_other_texts() -> None:
    found = by_frequency(np.array([1, 1, 1, 2]), np.array([0, 0, 1, 1]), 3, 4)
    # Of the others (1 and 2 in a vocabulary of four): 1 stands once, plus one, of two plus four.
    assert found[0] == pytest.approx(-np.log(2 / 6))
    assert found[1] == pytest.approx(-(np.log(3 / 6) + np.log(1 / 6)) / 2)
    assert np.isnan(found[2])


@pytest.mark.parametrize("name", ["bert", "roberta", "electra", "distilbert", "albert"])
@pytest.mark.parametrize("padded", [True, False])
def test_the_fast_sweep_equals_a_loop(name: str, padded: bool) -> None:
    from bertology.model.batch import Batch

    made = Encoder(tiny.model(name, "mlm"), tiny.tokenizer(WORDS), head="mlm")
    inputs = tiny.inputs() if padded else {k: v[:1] for k, v in tiny.inputs().items()}
    batch = Batch(inputs, range(len(inputs["input_ids"])))
    places = draw_hidden(batch.real.numpy(), list(batch.indices), share=0.4, seed=0)
    words = HiddenWords(made, batch, *places)
    sets = [((2, 1),), ((0, 1),), ((1, 0), (2, 3)), tuple((0, h) for h in range(4))]
    sweep = Sweep(made, [Variant(heads) for heads in sets])
    assert sweep.fast
    found = sweep.word_losses(words).numpy()
    expected = [words.predict().losses]
    expected += [words.predict(UniformAttention(heads)).losses for heads in sets]
    np.testing.assert_allclose(found, np.stack(expected), rtol=1e-4, atol=1e-5)
    assert np.abs(found[1:] - found[0]).max() > 1e-3
