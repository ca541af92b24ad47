"""Models whose loudest dimensions carry what a hidden word is, or carry nothing.

All words of a text point one way ("good" or "bad"). Layer 0 attends evenly, so that a masked word
learns which way the others point. The way is written as +x and -x in two dimensions; the output
LayerNorms are loud in two dimensions: in those, or in two that carry nothing.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
import transformers as hf

import tiny
from bertology.data.corpus import Corpus, Example, Field
from bertology.model.encoder import Encoder

WORDS = ["good", "bad"]
WIDTH, LAYERS = 64, 6  # thirty random pairs have no dimension in common
CARRIERS, SILENT = (3, 3 + WIDTH // 2), (9, 9 + WIDTH // 2)


def model(
    loud: tuple[int, ...] = CARRIERS, *, scale: float = 1.5, wide: int = 8, seed: int = 0
) -> hf.BertForMaskedLM:
    """The planted model; `loud` are the outliers of the output LayerNorms."""
    config = hf.BertConfig(
        vocab_size=5 + len(WORDS), hidden_size=WIDTH, num_hidden_layers=LAYERS,
        num_attention_heads=4, intermediate_size=wide, max_position_embeddings=40,
    )  # fmt: skip
    torch.manual_seed(seed)
    made = hf.BertForMaskedLM(config).eval()
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if "LayerNorm" not in name:
                parameter.zero_()
        words: Any = made.bert.embeddings.word_embeddings.weight
        words.copy_(0.3 * torch.randn(words.shape))  # no token is empty
        words[:, list(CARRIERS)] = 0.0
        for word, way in (("good", 1.0), ("bad", -1.0)):
            words[5 + WORDS.index(word), list(CARRIERS)] = torch.tensor([way, -way])
        first = made.bert.encoder.layer[0].attention
        first.self.value.weight[0, CARRIERS[0]] = 1.0
        first.output.dense.weight[CARRIERS[0], 0] = 2.0
        first.output.dense.weight[CARRIERS[1], 0] = -2.0
        for layer in made.bert.encoder.layer:
            norm = layer.output.LayerNorm
            norm.weight += 0.01 * torch.randn(WIDTH)
            norm.weight[list(loud)] *= scale
        dense = made.cls.predictions.transform.dense.weight
        for carrier in CARRIERS:
            dense[carrier, carrier] = 3.0
    return made


def tokenizer() -> Any:
    return tiny.tokenizer(WORDS, max_length=40)


def corpus(size: int = 60, *, seed: int = 0) -> Corpus:
    """Texts of one word each, several times over."""
    rng, texts = random.Random(seed), []
    for _ in range(size):
        texts.append(" ".join([rng.choice(WORDS)] * rng.choice([4, 5, 6])))
    examples = [Example(str(i), t) for i, t in enumerate(texts)]
    return Corpus("ways", examples, frozenset({Field.TEXT}))


def encoder(made: Any, head: str = "mlm") -> Encoder:
    return Encoder(made, tokenizer(), name="planted", head=head)


MANY = [f"w{i}" for i in range(60)]
ODDS = 1 / np.arange(1, 1 + len(MANY)) / (1 / np.arange(1, 1 + len(MANY))).sum()


def frequency_encoder(by: str = "bias", *, wide: int = 8, seed: int = 0) -> Encoder:
    """A model that knows how frequent words are, and nothing else.

    Its frequencies are the true ones. They stand in the output bias, or are written by the loud
    dimensions (`by` "outliers"), whose bias is the same in every text. All else is random.
    """
    config = hf.BertConfig(
        vocab_size=6 + len(MANY), hidden_size=WIDTH, num_hidden_layers=LAYERS,
        num_attention_heads=4, intermediate_size=wide, max_position_embeddings=40,
        tie_word_embeddings=False,
    )  # fmt: skip
    torch.manual_seed(seed)
    made = hf.BertForMaskedLM(config).eval()
    logs = torch.full((config.vocab_size,), -30.0)
    logs[6:] = torch.as_tensor(np.log(ODDS), dtype=torch.float32)
    with torch.no_grad():
        for layer in made.bert.encoder.layer:
            layer.output.LayerNorm.bias[list(SILENT)] = 4.0
        head = made.cls.predictions
        for parameter in (head.decoder.weight, head.decoder.bias, head.transform.dense.weight):
            parameter.zero_()
        if by == "bias":
            head.decoder.bias.copy_(logs)
        else:
            head.transform.dense.weight[0, list(SILENT)] = 1.0
            one = torch.zeros(WIDTH)
            one[0] = 1.0
            # Of what has one entry only, a LayerNorm makes the same whatever that entry is.
            scaled = torch.nn.functional.layer_norm(one, (WIDTH,))[0]
            head.decoder.weight[:, 0] = logs / scaled
    words = tiny.tokenizer([".", *MANY], max_length=40)
    return Encoder(made, words, name="frequencies", head="mlm")


def frequency_corpus(size: int = 60, *, seed: int = 0) -> Corpus:
    """Texts of words drawn by their frequency, with much punctuation, which is not asked for."""
    rng = np.random.default_rng(seed)
    rows = (rng.choice(MANY, size=rng.integers(4, 9), p=ODDS) for _ in range(size))
    examples = [Example(str(i), " . ".join(row)) for i, row in enumerate(rows)]
    return Corpus("frequencies", examples, frozenset({Field.TEXT}))
