"""Classifiers whose reasons are known: one word decides, and attention tells of it or does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
import transformers as hf

import planted
from bertology.data.corpus import Corpus, Field
from bertology.model.encoder import Encoder

LAST = 1  # layer


def _without_heads(made: Any) -> None:
    for layer in made.bert.encoder.layer:
        own, onward = layer.attention.self, layer.attention.output.dense
        for part in (own.query.bias, own.key.weight, own.value.weight, onward.weight):
            part.zero_()


def reads_one_word() -> hf.BertForSequenceClassification:
    """One layer, all heads of which find the marked word and tell which way it points.

    With a layer below it, LayerNorm would leave a gradient nothing to tell.
    """
    made = planted.model()
    made.bert.encoder.layer = made.bert.encoder.layer[:1]
    made.config.num_hidden_layers = 1
    with torch.no_grad():
        _without_heads(made)
        for head in range(4):
            planted._head(made, (0, head), looks_for=planted._MARK, loudness=0.25)
    return made


def looks_elsewhere() -> hf.BertForSequenceClassification:
    """The first layer tells the answer; all heads of the last look at fillers and bring nothing."""
    made = planted.model()
    with torch.no_grad():
        for head in range(4):
            planted._head(made, (LAST, head), looks_for=planted._FILL, loudness=0.0)
    return made


def by_chance(seed: int) -> hf.BertForSequenceClassification:
    """Random weights."""
    torch.manual_seed(seed)
    config = planted.model().config
    config.initializer_range = 0.3
    return hf.BertForSequenceClassification(config).eval()


def encoder(made: Any, name: str = "planted") -> Encoder:
    return Encoder(made, planted.tokenizer(), head="classification", name=name)


def corpus(size: int = 60, *, seed: int = 0) -> Corpus:
    """The texts of `planted`, with the marked word as what people gave as the reason."""
    made = []
    plain = planted.corpus(size, seed=seed)
    for one in plain:
        words, offsets, at = one.text.split(), list[tuple[int, int]](), 0
        for word in words:
            offsets.append((at, at + len(word)))
            at += len(word) + 1
        which = next(i for i, word in enumerate(words) if word in ("good", "bad"))
        known = {"words": words, "offsets": offsets, "rationales": [[which, which + 1]]}
        made.append(replace(one, annotations=known))
    more = {Field.WORDS, Field.OFFSETS, Field.RATIONALES}
    return replace(plain, examples=made, fields=plain.fields | more)
