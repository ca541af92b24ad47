"""A model of which it is known which heads and MLPs carry its task: two heads and one MLP.

A text holds one word that tells its label, among words ("the", "a") that point the same two ways
at random. Head 0.2 finds labels that are written "good" and "bad", head 1.1 those that are written
"up" and "down"; both tell [CLS], and only the MLP of layer 1 hands on what they told to where the
classifier reads. Everything else does nothing, but for small random weights that are in no path.
"""

from __future__ import annotations

import random

import torch
import transformers as hf

import planted
from bertology.data.corpus import Corpus, Example, Field
from bertology.model.encoder import Encoder

HEADS, MLPS = ((0, 2), (1, 1)), (1,)
_ANSWER, _READ = 1, 8  # features; each also has its negative, at + 4
TASK = planted.TASK


def model(seed: int = 0, *, layers: int = 3) -> hf.BertForSequenceClassification:
    config = hf.BertConfig(
        vocab_size=5 + len(planted.WORDS), hidden_size=16, num_hidden_layers=layers,
        num_attention_heads=4, intermediate_size=8, max_position_embeddings=40, num_labels=2,
        id2label=dict(enumerate(TASK.labels)), label2id={n: i for i, n in enumerate(TASK.labels)},
    )  # fmt: skip
    torch.manual_seed(seed)
    made = hf.BertForSequenceClassification(config).eval()
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if "LayerNorm" not in name:
                parameter.zero_()
        words = made.bert.embeddings.word_embeddings.weight
        ways = {"good": 1, "bad": -1, "up": 1, "down": -1, "the": 1, "a": -1}
        for word, way in ways.items():
            row = words[5 + planted.WORDS.index(word)]
            row[0], row[4] = float(way), -float(way)
            if word not in ("the", "a"):
                kind = 2 if word in ("good", "bad") else 3
                row[kind], row[kind + 4] = 1.0, -1.0
        words[:, 9:12] = 0.1 * torch.randn(words.shape[0], 3)  # no token is empty
        planted._head(made, HEADS[0], looks_for=2, loudness=2.0)
        planted._head(made, HEADS[1], looks_for=3, loudness=2.0)
        mlp = made.bert.encoder.layer[MLPS[0]]
        mlp.intermediate.dense.weight[0, _ANSWER] = 4.0
        mlp.intermediate.dense.weight[1, _ANSWER] = -4.0
        for place, sign in ((_READ, 1.0), (_READ + 4, -1.0)):
            mlp.output.dense.weight[place, 0] = sign
            mlp.output.dense.weight[place, 1] = -sign
        made.bert.pooler.dense.weight[0, _READ] = 0.5  # far from where it is flat
        made.classifier.weight[1, 0], made.classifier.weight[0, 0] = 4.0, -4.0
    return made


def encoder(seed: int = 0) -> Encoder:
    made = model(seed)
    return Encoder(made, planted.tokenizer(), head="classification", name="planted")


def corpus(size: int = 200, *, seed: int = 0) -> Corpus:
    rng = random.Random(seed)
    examples = []
    for i in range(size):
        label = rng.randrange(2)
        words = [rng.choice(["the", "a"]) for _ in range(rng.choice([5, 7, 9]))]
        told = (("bad", "good"), ("down", "up"))[rng.randrange(2)][label]
        words.insert(rng.randrange(len(words) + 1), told)
        examples.append(Example(str(i), " ".join(words), label=label))
    return Corpus("planted-parts", examples, frozenset({Field.TEXT, Field.LABEL}), TASK)
