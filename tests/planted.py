"""A model whose answer is known: one head carries it, one head spoils it, the rest do nothing.

A text holds one marked word ("good" or "bad", which is the label) among fillers ("up", "down")
that point the same two ways at random. Head 0.2 finds the marked word and tells [CLS] which way
it points. Head 1.1 finds the fillers and adds which way most of them point: noise. Nothing else
moves information between tokens. Every feature is written as +x and -x in two dimensions, so that
LayerNorm leaves its sign alone.
"""

from __future__ import annotations

import csv
import random
from pathlib import Path
from typing import Any

import torch
import transformers as hf

import tiny
from bertology.data.corpus import Corpus, Example, Field, Task

CARRIER, SPOILER = (0, 2), (1, 1)
WORDS = ["good", "bad", "up", "down", "the", "a"]
_WAY, _ANSWER, _MARK, _FILL = 0, 1, 2, 3  # features; each also has its negative at + 4
TASK = Task("planted", "classification", ("bad", "good"), ("accuracy",))


def _write(weight: torch.Tensor, row: int, column: int, value: float) -> None:
    weight[row, column], weight[row + 4, column] = value, -value


def model(*, spoil: float = 0.0, seed: int = 0) -> Any:
    """The planted model; `spoil` is how loudly the second head speaks."""
    return tiny.copied(f"planted {spoil} {seed}", lambda: _model(spoil, seed))


def _model(spoil: float, seed: int) -> hf.BertForSequenceClassification:
    config = hf.BertConfig(
        vocab_size=5 + len(WORDS), hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=8, max_position_embeddings=40, num_labels=2,
    )  # fmt: skip
    torch.manual_seed(seed)
    made = hf.BertForSequenceClassification(config).eval()
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if "LayerNorm" not in name:
                parameter.zero_()
        words = made.bert.embeddings.word_embeddings.weight
        for word, way, mark in (("good", 1, 1), ("bad", -1, 1), ("up", 1, 0), ("down", -1, 0)):
            row = words[5 + WORDS.index(word)]
            row[_WAY], row[_WAY + 4] = float(way), -float(way)
            feature = _MARK if mark else _FILL
            row[feature], row[feature + 4] = 1.0, -1.0
        words[:, 8:] = 0.1 * torch.randn(words.shape[0], 8)  # no token is empty
        _head(made, CARRIER, looks_for=_MARK, loudness=1.0)
        if spoil:
            _head(made, SPOILER, looks_for=_FILL, loudness=spoil)
        made.bert.pooler.dense.weight[0, _ANSWER] = 3.0
        made.classifier.weight[1, 0], made.classifier.weight[0, 0] = 4.0, -4.0
    return made


def _head(made: Any, place: tuple[int, int], *, looks_for: int, loudness: float) -> None:
    layer = made.bert.encoder.layer[place[0]].attention
    first = 4 * place[1]
    layer.self.query.bias[first] = 8.0
    layer.self.key.weight[first, looks_for] = 8.0
    layer.self.value.weight[first, _WAY] = 1.0
    _write(layer.output.dense.weight, _ANSWER, first, loudness)


def tokenizer() -> Any:
    return tiny.tokenizer(WORDS, max_length=40)


def corpus(size: int = 300, *, seed: int = 0) -> Corpus:
    """Texts with one marked word and an odd number of fillers."""
    rng = random.Random(seed)
    examples = []
    for i in range(size):
        label = rng.randrange(2)
        words = [rng.choice(["up", "down"]) for _ in range(rng.choice([5, 7, 9]))]
        words.insert(rng.randrange(len(words) + 1), WORDS[1 - label])
        words.insert(0, rng.choice(["the", "a"]))
        examples.append(Example(str(i), " ".join(words), label=label))
    return Corpus("planted", examples, frozenset({Field.TEXT, Field.LABEL}), TASK)


def written(folder: Path, *, train: int = 160, validation: int = 80) -> Path:
    """The task in files, as studies that train models want it."""
    folder.mkdir()
    for split, size, seed in (("train", train, 1), ("validation", validation, 2)):
        rows = [(e.text, TASK.labels[int(e.get("label"))]) for e in corpus(size, seed=seed)]
        with (folder / f"{split}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("text", "label"), *rows])
    return folder
