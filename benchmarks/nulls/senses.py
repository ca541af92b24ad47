"""Nulls of word senses: random models, Gaussian states, and senses that were dealt out anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import bertology as bt
import made_senses as made
import planted_links
from bertology.data.corpus import Corpus
from bertology.studies.geometry.word_senses import WordSenses
from bertology.studies.geometry.words_in_context import WordsInContext
from nulls import HOLDS, Null, judged
from nulls.models import encoder, mini, random_model

_TEXTS = 320
_PAIRED = 160  # each has two texts, and a probe for each layer
_OPTIONS = {"resamples": 200, "pictured": 0, "k": (1, 5)}
_SENSES = dict.fromkeys(
    ("senses-are-told-by-neighbours", "senses-form-clusters", "more-than-the-words-around"), HOLDS
)
_PAIRS = dict.fromkeys(("the-same-sense-is-nearer", "a-probe-tells-the-same-sense"), HOLDS)


@cache
def _texts() -> Corpus:
    return bt.load_corpus("grammar-senses", limit=4000, seed=0)


@cache
def _pairs() -> Corpus:
    return bt.load_corpus("grammar-sense-pairs", limit=4000, seed=0)


def _senses(reader: object, texts: Corpus, seed: int) -> Mapping[str, str]:
    found = planted_links.ask(WordSenses(**_OPTIONS, seed=seed), reader, texts)  # type: ignore[arg-type]
    return judged("word-senses", found)


def _in_context(reader: object, texts: Corpus, seed: int) -> Mapping[str, str]:
    study = WordsInContext(seed=seed)
    return judged("words-in-context", planted_links.ask(study, reader, texts))  # type: ignore[arg-type]


def random_senses(seed: int) -> Mapping[str, str]:
    """A random model mixes words with those around, which tell of the sense."""
    return _senses(encoder(random_model(seed)), _texts().take(_TEXTS, seed=seed), seed)


def gaussian(seed: int) -> Mapping[str, str]:
    """States of chance, more or fewer of them; senses differ in how frequent they are."""
    with pytest.MonkeyPatch.context() as patch:
        texts = made.corpus((120, 240, 480)[seed % 3], seed=seed, senses=2 + seed % 2)
        found = made.simulated(patch, texts, apart=0.0, seed=seed, pictured=0)
    return judged("word-senses", found)


def dealt(seed: int) -> Mapping[str, str]:
    """The bundled model, asked for senses that were dealt out anew among a word's occurrences."""
    texts, rng = _texts().take(_TEXTS, seed=seed), np.random.default_rng(seed)
    senses = [[list(one) for one in example.get("senses")] for example in texts]
    places: dict[str, list[tuple[int, int]]] = {}
    for at, own in enumerate(senses):
        for which, one in enumerate(own):
            places.setdefault(str(one[2]), []).append((at, which))
    for of in places.values():
        names = [senses[at][which][3] for at, which in of]
        for (at, which), name in zip(of, rng.permutation(names), strict=True):
            senses[at][which][3] = str(name)
    pairs = zip(texts, senses, strict=True)
    examples = [replace(e, annotations={**e.annotations, "senses": own}) for e, own in pairs]
    return _senses(mini(), replace(texts, examples=examples, origin={}), seed)


def random_pairs(seed: int) -> Mapping[str, str]:
    """A random model: words around the same sense are alike in these sentences."""
    return _in_context(encoder(random_model(seed)), _pairs().take(_PAIRED, seed=seed), seed)


def gaussian_pairs(seed: int) -> Mapping[str, str]:
    """States of chance."""
    with pytest.MonkeyPatch.context() as patch:
        texts = made.pairs((160, 320)[seed % 2], seed=seed)
        found = made.simulated_pairs(patch, texts, apart=0.0, seed=seed)
    return judged("words-in-context", found)


def dealt_pairs(seed: int) -> Mapping[str, str]:
    """The bundled model, asked for answers that were dealt out anew."""
    texts = _pairs().take(_PAIRED, seed=seed)
    order = np.random.default_rng(seed).permutation(len(texts))
    labels = [texts[int(at)].label for at in order]
    examples = [replace(e, label=label) for e, label in zip(texts, labels, strict=True)]
    return _in_context(mini(), replace(texts, examples=examples, origin={}), seed)


NULLS = (
    Null("random model (senses)", random_senses, _SENSES),
    Null("Gaussian states (senses)", gaussian, _SENSES),
    Null("senses dealt anew (senses)", dealt, _SENSES),
    Null("random model (words in context)", random_pairs, _PAIRS),
    Null("Gaussian states (words in context)", gaussian_pairs, _PAIRS),
    Null("answers dealt anew (words in context)", dealt_pairs, _PAIRS),
)
