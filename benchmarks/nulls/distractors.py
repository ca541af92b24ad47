"""Nulls of attention past distractors: layers that point, random models, answers drawn anew."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import cache

import numpy as np
import test_attention_distractors as planted
import torch
import transformers as hf

import bertology as bt
import planted_links
from bertology.data.corpus import Corpus
from bertology.model.encoder import Encoder
from bertology.studies.attention.attention_distractors import AttentionDistractors
from nulls import HOLDS, Null, judged
from nulls.models import Stored, mini, random_model

_BEST_EFFORT = {"resamples": 200}


@cache
def pairs(name: str) -> Corpus:
    return bt.load_corpus(name, limit=1000, seed=0)


def random_pointers(seed: int) -> Mapping[str, str]:
    """No head of a random model knows a subject or an antecedent."""
    torch.manual_seed(seed)
    guessing = hf.BertForMaskedLM(random_model(seed).config).eval()
    reader = Encoder(guessing, mini().tokenizer, name="random", head="mlm")
    corpus = pairs(("grammar-agreement", "grammar-reflexives")[seed % 2]).take(80, seed=seed)
    found = planted_links.ask(AttentionDistractors(**_BEST_EFFORT), reader, corpus)
    return judged("attention-distractors", found)


def pointing_layer(seed: int) -> Mapping[str, str]:
    """All heads of one layer point to the subject, however sharply."""
    strength, made = random.Random(seed).uniform(0.5, 1.5), planted.whole_layer()
    with torch.no_grad():
        made.encoder.layer[0].attention.self.key.weight *= strength
    found = planted_links.ask(
        AttentionDistractors(**_BEST_EFFORT), planted.guessing(made), planted.corpus(60, seed=seed)
    )
    return judged("attention-distractors", found)


@cache
def pointers_of_mini() -> Stored:
    some = pairs("grammar-agreement").take(300, seed=1)
    return Stored(AttentionDistractors(**_BEST_EFFORT), some, head="mlm")


def drawn_guesses(seed: int) -> Mapping[str, str]:
    """Which guesses are right is dealt anew among the sentences of a kind."""
    stored, rng = pointers_of_mini(), np.random.default_rng(seed)
    part, kinds = stored.part, stored.part["kind"].to_numpy()
    better = part["better"].to_numpy().copy()
    for kind in np.unique(kinds):
        better[kinds == kind] = rng.permutation(better[kinds == kind])
    return judged(
        "attention-distractors", stored.concluded(part.assign(better=("example", better)))
    )


_WEAK = "attention-is-a-weak-indicator"
_STRONG = "a-head-is-a-strong-pointer"
_CLEARER = "attention-is-clearer-where-the-guess-is-right"

NULLS = (
    Null("random model (distractors)", random_pointers, dict.fromkeys((_STRONG, _CLEARER), HOLDS)),
    Null("all heads of a layer point", pointing_layer, {_WEAK: HOLDS}),
    Null("guesses dealt anew", drawn_guesses, {_CLEARER: HOLDS}),
)
