"""A masked language model in which each word changes the guess at what hangs from it, by its place.

All sentences have the same seven places, so that a place knows its head: "the dog often gladly sees
a ball". The one head that does anything attends from a place to the place of its head and adds what
the word there is; [MASK] adds nothing. Features are +x and -x, half of the dimensions apart.
"""

from __future__ import annotations

import random

import torch
import transformers as hf

import tiny
from bertology.data.corpus import Corpus, Example, Field
from bertology.model.encoder import Encoder

PLACES = [
    ["the", "a"], ["dog", "cat"], ["often", "now"], ["gladly", "here"], ["sees", "likes"],
    ["some", "every"], ["ball", "bone"],
]  # fmt: skip
HEADS = [1, 4, 4, 4, -1, 6, 4]
RELATIONS = ["det", "nsubj", "advmod", "advmod", "root", "det", "obj"]
WORDS = [word for words in PLACES for word in words]
LAYERS, SIZE, WIDTH = 2, 16, 64
_WORD, _READ = 12, 20  # the first features of words, and of what was read of another word


def model() -> hf.BertForMaskedLM:
    """Features 0 to 8: the place (with [CLS] and [SEP]); from 12: the word; from 20: its head's."""
    config = hf.BertConfig(
        vocab_size=5 + len(WORDS), hidden_size=WIDTH, num_hidden_layers=LAYERS,
        num_attention_heads=WIDTH // SIZE, intermediate_size=8, max_position_embeddings=16,
    )  # fmt: skip
    made = hf.BertForMaskedLM(config).eval()
    half = WIDTH // 2
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if "LayerNorm" not in name:
                parameter.zero_()
        places = made.bert.embeddings.position_embeddings.weight
        for at in range(9):
            places[at, at], places[at, at + half] = 1.0, -1.0
        words = made.get_input_embeddings().weight
        for place in PLACES:
            for k, word in enumerate(place):
                row = words[5 + WORDS.index(word)]
                row[_WORD + k], row[_WORD + k + half] = 1.0, -1.0
        attention = made.bert.encoder.layer[0].attention
        for at, head in enumerate(HEADS):
            if head >= 0:
                attention.self.query.weight[head, at + 1] = 6.0  # places are counted after [CLS]
            attention.self.key.weight[at, at + 1] = 6.0
        for k in range(2):
            attention.self.value.weight[k, _WORD + k] = 1.0
            attention.output.dense.weight[_READ + k, k] = 1.0
            attention.output.dense.weight[_READ + k + half, k] = -1.0
    return made


def encoder(made: hf.BertForMaskedLM) -> Encoder:
    return Encoder(made, tiny.tokenizer(WORDS, max_length=16), name="planted", head="mlm")


def random_model(seed: int, spread: float = 0.2) -> hf.BertForMaskedLM:
    """A model of the same shape that nobody planted anything in."""
    config = model().config
    config.initializer_range = spread
    torch.manual_seed(seed)
    return hf.BertForMaskedLM(config).eval()


def corpus(size: int = 40, *, seed: int = 0) -> Corpus:
    rng = random.Random(seed)
    examples = []
    for i in range(size):
        words = [rng.choice(place) for place in PLACES]
        known = {"words": words, "heads": HEADS, "relations": RELATIONS}
        examples.append(Example(str(i), " ".join(words), annotations=known))
    fields = {Field.TEXT, Field.WORDS, Field.HEADS, Field.RELATIONS}
    return Corpus("planted-impact", examples, frozenset(fields))
