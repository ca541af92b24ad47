"""Paradigms of negative polarity items with few words, a model that knows licensors and no scope.

"the cook not said that the boy ever left ." In the last layer every place attends to the licensor,
or to the plain word in its place, wherever it stands, and adds what it is; the head turns that into
"ever" or its plain word. Nothing in the model knows an order. Features are +x and -x, half of the
dimensions apart.
"""

from __future__ import annotations

import random

import torch
import transformers as hf

import tiny
from bertology.data.corpus import Corpus, Example, Field, Task
from bertology.data.grammar.licensing import FACTORS
from bertology.model.encoder import Encoder

LICENSORS = [("not", "also"), ("rarely", "often"), ("hardly", "soon"), ("never", "always"),
             ("barely", "now"), ("seldom", "then")]  # fmt: skip
ITEMS = [("ever", "once"), ("yet", "here"), ("either", "too"), ("anymore", "again"),
         ("anywhere", "there"), ("anyway", "well")]  # fmt: skip
PEOPLE = ["cook", "boy", "king", "girl", "doctor", "pilot", "judge", "nurse"]
VERBS = ["left", "came", "sang", "ran"]
OTHERS = ["the", "said", "that", "."]
WORDS = [*(w for pair in LICENSORS + ITEMS for w in pair), *PEOPLE, *VERBS, *OTHERS]
TASK = Task("made", "classification", ("unacceptable", "acceptable"), ("matthews", "accuracy"))
FIELDS = frozenset({Field.TEXT, Field.LABEL, Field.GROUP, Field.ITEM, Field.SENTENCE_LABELS})
WIDTH = 16
_MARK, _LICENSED, _READ = 0, 1, 2


def corpus(each: int = 1, *, seed: int = 0) -> Corpus:
    """So many paradigms for each of six environments and six items."""
    rng, found = random.Random(seed), []
    for number in range(each * len(LICENSORS) * len(ITEMS)):
        words = LICENSORS[number % 6], ITEMS[number // 6 % 6]
        (a, b), verb = rng.sample(PEOPLE, 2), rng.choice(VERBS)
        for cell in range(8):
            licensor, scope, npi = (not cell & bit for bit in (1, 2, 4))
            inside, outside = words[0][not licensor], words[1][not npi]
            if not scope:
                inside, outside = outside, inside
            text = f"the {a} {inside} said that the {b} {outside} {verb} ."
            told = ("yes" if yes else "no" for yes in (licensor, scope, npi))
            about = {
                "group": words[0][0], "npi": words[1][0], "item": str(number),
                "sentence_labels": dict(zip(FACTORS, told, strict=True)),
            }  # fmt: skip
            label = int(not npi or (licensor and scope))
            found.append(Example(f"{number}-{cell}", text, None, label, about))
    return Corpus("made", found, FIELDS, TASK)


def _put(row: torch.Tensor, feature: int, value: float) -> None:
    row[feature], row[feature + WIDTH // 2] = value, -value


def config() -> hf.BertConfig:
    return hf.BertConfig(
        vocab_size=5 + len(WORDS), hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=8, max_position_embeddings=24, hidden_act="relu",
    )  # fmt: skip


def knows_licensors() -> Encoder:
    """Items are likelier where there is a licensor, in scope or not."""
    made = hf.BertForMaskedLM(config()).eval()
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if "LayerNorm" not in name:
                parameter.zero_()
        words = made.get_input_embeddings().weight
        words[:, 7], words[:, 15] = 1.0, -1.0  # no token is empty
        for pairs, feature in ((LICENSORS, _LICENSED), (ITEMS, _READ)):
            for pair in pairs:
                for word, value in zip(pair, (1.0, -1.0), strict=True):
                    row = words[5 + WORDS.index(word)]
                    _put(row, feature, value)
                    if feature == _LICENSED:
                        _put(row, _MARK, 1.0)
        attention = made.bert.encoder.layer[1].attention
        attention.self.query.bias[0] = 20.0
        attention.self.key.weight[0, _MARK] = 4.0
        attention.self.value.weight[0, _LICENSED] = 1.0
        _put(attention.output.dense.weight[:, 0], _READ, 4.0)
        made.cls.predictions.transform.dense.weight.copy_(torch.eye(WIDTH))
    return encoder(made)


def random_model(seed: int) -> Encoder:
    """A model of the same shape that nobody planted anything in."""
    of = config()
    of.initializer_range = (0.1, 0.3, 0.6)[seed % 3]
    torch.manual_seed(seed)
    return encoder(hf.BertForMaskedLM(of).eval())


def encoder(made: hf.BertForMaskedLM, head: str = "mlm") -> Encoder:
    return Encoder(made, tiny.tokenizer(WORDS, max_length=24), name="made", head=head)
