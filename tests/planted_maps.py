"""A model with two heads whose maps are known, and texts for it."""

from __future__ import annotations

import random

import torch
import transformers as hf

import tiny
from bertology.data.corpus import Corpus, Example, Field
from bertology.model.encoder import Encoder

WORDS = ["the", "cat", "dog", "sees", "a", "bird", "and", "runs"]
SEP, MARK = 3, 60  # the token's id; the feature that only it has
POSITIONS = 32
PREVIOUS, STRIPE = (0, 1), (1, 0)


def corpus(size: int = 40, *, pairs: bool = False) -> Corpus:
    chance = random.Random(0)

    def text() -> str:
        return " ".join(chance.choice(WORDS) for _ in range(chance.randint(7, 13)))

    examples = [Example(str(i), text(), text() if pairs else None) for i in range(size)]
    fields = {Field.TEXT, Field.TEXT_B} if pairs else {Field.TEXT}
    return Corpus("made up", examples, frozenset(fields))


def planted() -> Encoder:
    """Head 0.1 attends to the previous token, head 1.0 to [SEP], all others to everything."""
    config = hf.BertConfig(
        vocab_size=5 + len(WORDS), hidden_size=64, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=8, max_position_embeddings=POSITIONS,
    )  # fmt: skip
    model = hf.BertModel(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "LayerNorm" not in name:
                parameter.zero_()
        model.embeddings.position_embeddings.weight[:, :POSITIONS] = torch.eye(POSITIONS)
        model.embeddings.word_embeddings.weight[SEP, MARK] = 2.0
        layer, head = PREVIOUS
        attention, rows = (
            model.encoder.layer[layer].attention.self,
            slice(32 * head, 32 * head + 32),
        )
        attention.query.weight[rows, :POSITIONS] = 4 * torch.eye(32)
        # A key says at which position it is the previous one.
        attention.key.weight[rows, :POSITIONS] = 4 * torch.eye(32).roll(1, 0)
        layer, head = STRIPE
        attention = model.encoder.layer[layer].attention.self
        attention.query.bias[32 * head] = 20.0
        attention.key.weight[32 * head, MARK] = 20.0
    return Encoder(model, tiny.tokenizer(WORDS, max_length=POSITIONS), name="planted")
