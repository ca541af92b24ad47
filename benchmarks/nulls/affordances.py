"""Nulls of affordances: random models, drawn labels, and relations that are told alike."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
import test_affordances as made
import torch
import transformers as hf

import bertology as bt
import made_objects
from bertology.data.corpus import Corpus
from bertology.model.encoder import Encoder
from nulls import HOLDS, Null, judged
from nulls.agreement import SHAPE
from nulls.models import SPREADS, mini


def _asked(encoder: Encoder, corpus: Corpus, seed: int) -> Mapping[str, str]:
    return judged("affordances", made.ask(encoder, corpus, seed=seed, lens="none"))


def random_objects(seed: int) -> Mapping[str, str]:
    """A random model reads the bundled table of objects."""
    torch.manual_seed(seed)
    spread, tokens = SPREADS[seed % len(SPREADS)], mini().tokenizer
    config = hf.BertConfig(**SHAPE, vocab_size=len(tokens), initializer_range=spread)
    made_up = Encoder(hf.BertForMaskedLM(config).eval(), tokens, head="mlm", name="random")
    return _asked(made_up, bt.load_corpus("grammar-objects"), seed)


def drawn_labels(seed: int) -> Mapping[str, str]:
    """The bundled model; of each attribute as many things have it, but which ones is drawn."""
    rng, corpus = random.Random(seed), bt.load_corpus("grammar-objects")
    of: dict[tuple[str, str], list[int]] = {}
    for at, example in enumerate(corpus):
        of.setdefault((example.get("relation"), example.get("group")), []).append(at)
    examples = list(corpus.examples)
    for places in of.values():
        labels = rng.sample([corpus[at].label for at in places], len(places))
        for at, label in zip(places, labels, strict=True):
            examples[at] = replace(examples[at], label=label)
    return _asked(mini("mlm"), replace(corpus, examples=examples), seed)


def told_alike(seed: int) -> Mapping[str, str]:
    """States tell of every relation the same part."""
    share = float(np.random.default_rng(seed).uniform(0.5, 1.0))
    corpus = made_objects.corpus(seed, entities=32, groups=24)
    with pytest.MonkeyPatch.context() as patch:
        told = dict.fromkeys(made_objects.RELATIONS, share)
        return judged("affordances", made.with_states(told, corpus, patch, seed))


_EACH = "properties-and-affordances-are-guessed"
_LESS = "affordances-and-properties-are-related-less"

NULLS = (
    Null("random model (affordances)", random_objects, dict.fromkeys((_EACH, _LESS), HOLDS)),
    Null("labels drawn (affordances)", drawn_labels, dict.fromkeys((_EACH, _LESS), HOLDS)),
    Null("relations told alike (affordances)", told_alike, {_LESS: HOLDS}),
)
