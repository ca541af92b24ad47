"""Nulls of word order: random models, trees of other sentences, and neighbours without trees."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import pytest
import test_linear_order as simulated

import bertology as bt
import planted_links
from bertology.data.corpus import Corpus
from bertology.studies.probing.linear_order import LinearOrder
from nulls import HOLDS, Null, judged
from nulls.models import encoder, mini, random_model

_SENTENCES, _FEWER = 240, 160


@cache
def _grammar() -> Corpus:
    return bt.load_corpus("grammar-order", limit=4000)


def random_order(seed: int) -> Mapping[str, str]:
    """Random models lose the place of words too, but no more than shuffled weights do."""
    study = LinearOrder(resamples=200, seed=seed)
    texts = _grammar().take(_SENTENCES, seed=seed)
    return judged("linear-order", planted_links.ask(study, encoder(random_model(seed)), texts))


def exchanged(corpus: Corpus, seed: int) -> Corpus:
    """Every sentence gets the tree of another one of the same length, if there is one."""
    rng, by_length = random.Random(seed), defaultdict(list)
    for one in corpus:
        by_length[len(one.get("words"))].append(one)
    found = []
    for same in by_length.values():
        given = rng.sample(same, len(same))
        for one, other in zip(same, given, strict=True):
            trees = {f: other.get(f) for f in ("pos", "heads", "relations")}
            found.append(replace(one, annotations={**one.annotations, **trees}))
    rng.shuffle(found)
    return replace(corpus, examples=found)


def exchanged_trees(seed: int) -> Mapping[str, str]:
    """No layer of the bundled model tells the main clause of another sentence."""
    study = LinearOrder(resamples=200, seed=seed)
    texts = exchanged(_grammar().take(_FEWER, seed=seed), seed)
    return judged("linear-order", planted_links.ask(study, mini(), texts))


def only_neighbours(seed: int) -> Mapping[str, str]:
    """Layers that know ever more words around each, and no structure."""
    with pytest.MonkeyPatch.context() as patch:
        found = simulated.neighbours(patch, _grammar().take(_SENTENCES, seed=seed), seed)
    return judged("linear-order", found)


_STRUCTURE = (
    "the-main-auxiliary-is-told-by-structure",
    "the-subject-is-told-by-structure",
    "the-main-auxiliary-is-told-as-order-fades",
    "the-subject-is-told-as-order-fades",
)
_ORDER = ("lower-layers-tell-word-order", "word-order-is-lost-around-a-third")

NULLS = (
    Null("random model (order)", random_order, dict.fromkeys((*_STRUCTURE, *_ORDER), HOLDS)),
    Null("trees of other sentences (order)", exchanged_trees, dict.fromkeys(_STRUCTURE, HOLDS)),
    Null("only neighbours (order)", only_neighbours, dict.fromkeys(_STRUCTURE, HOLDS)),
)
