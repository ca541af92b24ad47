"""Nulls of repairs and static vectors: random models, and scores that belong to other pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np

import bertology as bt
import planted_links
from bertology.data.corpus import Corpus, Example, Field
from bertology.studies.geometry.static_embeddings import StaticEmbeddings
from bertology.studies.geometry.vector_repairs import VectorRepairs
from nulls import HOLDS, Null, judged
from nulls.models import encoder, mini, random_model, texts

_PAIRS = 200
_SCORED = frozenset({Field.TEXT, Field.TEXT_B, Field.LABEL})


@cache
def _pairs() -> Corpus:
    return bt.load_corpus("grammar-paraphrase", limit=3000, seed=0)


def _shared_words(corpus: Corpus) -> Corpus:
    """Judged by the words that two texts share: what any vectors of words tell."""
    made = []
    for one in corpus:
        first, second = ({*text.lower().split()} for text in one.texts)
        share = len(first & second) / len(first | second)
        made.append(Example(one.id, one.text, one.text_b, float(share)))
    return replace(corpus, examples=made, fields=_SCORED, task=None, origin={})


def _dealt(corpus: Corpus, seed: int) -> Corpus:
    """The same scores, each at another pair."""
    order = np.random.default_rng(seed).permutation(len(corpus))
    labels = [float(corpus[int(at)].label or 0) for at in order]
    made = [replace(e, label=x) for e, x in zip(corpus, labels, strict=True)]
    return replace(corpus, examples=made, origin={})


def random_repairs(seed: int) -> Mapping[str, str]:
    """A random model tells which words two texts share, and repairs may help it to."""
    given = _shared_words(_pairs().take(_PAIRS, seed=seed))
    study = VectorRepairs(resamples=200, vector=("mean", "first")[seed // 3 % 2])
    return judged("vector-repairs", planted_links.ask(study, encoder(random_model(seed)), given))


def other_scores(seed: int) -> Mapping[str, str]:
    """The bundled model, asked for scores that were dealt out anew."""
    given = _dealt(_shared_words(_pairs().take(_PAIRS, seed=seed)), seed)
    return judged("vector-repairs", planted_links.ask(VectorRepairs(resamples=200), mini(), given))


def other_scores_of_words(seed: int) -> Mapping[str, str]:
    """Words are in several pairs each; every word has a score of chance, and a pair their mean."""
    rng = np.random.default_rng(seed)
    words = sorted({w for e in texts(seed) for w in e.get("words") if w.isalpha()})[:150]
    of = dict(zip(words, rng.normal(size=len(words)), strict=True))
    made = []
    for at in range(_PAIRS):
        a, b = rng.choice(words, 2, replace=False)
        made.append(Example(str(at), str(a), str(b), float(of[a] + of[b])))
    given = Corpus("words", made, _SCORED)
    return judged("vector-repairs", planted_links.ask(VectorRepairs(resamples=200), mini(), given))


@cache
def _words(name: str) -> Corpus:
    return bt.load_corpus(name)


def random_statics(seed: int) -> Mapping[str, str]:
    """A random model's contexts tell no more of words than those of its shuffled weights."""
    name = ("grammar-word-pairs", "grammar-analogies")[seed % 2]
    study = StaticEmbeddings(resamples=200, contexts_examples=400, seed=seed)
    reader = encoder(random_model(seed))
    return judged("static-embeddings", planted_links.ask(study, reader, _words(name)))


def other_scores_of_statics(seed: int) -> Mapping[str, str]:
    """The bundled model, asked for scores that were dealt out anew among pairs of words."""
    given = _dealt(_words("grammar-word-pairs"), seed)
    study = StaticEmbeddings(resamples=200, contexts_examples=400, seed=seed)
    return judged("static-embeddings", planted_links.ask(study, mini(), given))


_FALSE = dict.fromkeys(("repairs-raise-agreement", "standardising-raises-agreement"), HOLDS)

_STATIC = dict.fromkeys(
    ("contexts-make-better-static-vectors", "lower-layers-make-better-static-vectors"), HOLDS
)

NULLS = (
    Null("random model (repairs)", random_repairs, _FALSE),
    Null("scores of other pairs (repairs)", other_scores, _FALSE),
    Null("scores of words of chance (repairs)", other_scores_of_words, _FALSE),
    Null("random model (static vectors)", random_statics, _STATIC),
    Null("scores of other pairs (static vectors)", other_scores_of_statics, _STATIC),
)
