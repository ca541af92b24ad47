"""A model whose heads have known roles: what is not planted attends evenly.

Positions are one-hot, so heads that attend by place match queries with keys; marks of single tokens
are in dimensions of their own, so heads that attend to [CLS], [SEP] or a full stop match these.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

import torch
import transformers as hf

import tiny
from bertology.data.corpus import Corpus, Example, Field
from bertology.model.encoder import Encoder

WORDS = ["the", "cat", "dog", "sees", "a", "bird", "and", "runs", "."]
POSITIONS, LAYERS, HEADS = 32, 4, 4
OFFSETS = {"previous": -1, "next": 1, "self": 0}
MARKS = {"cls": (2, 40), "sep": (3, 50), "punctuation": (5 + WORDS.index("."), 60)}
ROLES = {
    (0, 0): "previous",
    (0, 3): "next",
    (1, 1): "self",
    (1, 2): "cls",
    (2, 0): "sep",
    (3, 3): "punctuation",
}
"""All other heads are broad."""


def corpus(size: int = 40, *, seed: int = 0) -> Corpus:
    chance = random.Random(seed)

    def text() -> str:
        return " ".join(chance.choice(WORDS[:-1]) for _ in range(chance.randint(8, 16))) + " ."

    examples = [Example(str(i), text()) for i in range(size)]
    return Corpus("made up", examples, frozenset({Field.TEXT}))


def planted(roles: Mapping[tuple[int, int], str] = ROLES) -> Encoder:
    size = POSITIONS * HEADS
    config = hf.BertConfig(
        vocab_size=5 + len(WORDS), hidden_size=size, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, intermediate_size=8, max_position_embeddings=POSITIONS,
    )  # fmt: skip
    model = hf.BertModel(config, add_pooling_layer=False).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "LayerNorm" not in name:
                parameter.zero_()
        model.embeddings.position_embeddings.weight[:, :POSITIONS] = torch.eye(POSITIONS)
        for token, mark in MARKS.values():
            model.embeddings.word_embeddings.weight[token, mark] = 2.0
        for (layer, head), role in roles.items():
            attention = model.encoder.layer[layer].attention.self
            first = POSITIONS * head
            rows = slice(first, first + POSITIONS)
            if role in OFFSETS:
                attention.query.weight[rows, :POSITIONS] = 4 * torch.eye(POSITIONS)
                # A key says at which position it is looked for.
                shifted = torch.eye(POSITIONS).roll(-OFFSETS[role], 0)
                attention.key.weight[rows, :POSITIONS] = 4 * shifted
            else:
                attention.query.bias[first] = 20.0
                attention.key.weight[first, MARKS[role][1]] = 20.0
    return Encoder(model, tiny.tokenizer(WORDS, max_length=POSITIONS), name="planted")
