"""Nulls of coreference: models in which no head resolves it, and annotation without meaning."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import planted_coreference as planted
import planted_links
from bertology.data.corpus import Corpus, Example
from bertology.data.loading import load_corpus
from bertology.model.encoder import Encoder
from bertology.studies.attention.coreference_heads import CoreferenceHeads
from nulls import HOLDS, Null, judged
from nulls.models import encoder, mini, random_model

_EFFORT = {"resamples": 200}


def _asked(reader: Encoder, corpus: Corpus) -> Mapping[str, str]:
    return judged(
        "coreference-heads", planted_links.ask(CoreferenceHeads(**_EFFORT), reader, corpus)
    )


def _grammar(seed: int) -> Corpus:
    """Sentences of the grammar with two mentions of something and one of something else."""
    corpus = load_corpus("grammar", limit=600, seed=seed)
    kept = [e for e in corpus if len(e.get("coreference")) > 1]
    return replace(
        corpus, examples=[e for e in kept if any(len(c) > 1 for c in e.get("coreference"))]
    )


def _dealt(example: Example, rng: random.Random) -> Example:
    clusters = example.get("coreference")
    mentions = [mention for cluster in clusters for mention in cluster]
    rng.shuffle(mentions)
    dealt = [sorted(mentions.pop() for _ in cluster) for cluster in clusters]
    return replace(example, annotations={**example.annotations, "coreference": dealt})


def random_heads(seed: int) -> Mapping[str, str]:
    """No head of a random model resolves anything, on documents of a few sentences."""
    reader = planted.encoder(planted.random_model(spread=(0.1, 0.3, 0.6)[seed % 3], seed=seed))
    return _asked(reader, planted.corpus(40, seed=seed))


def random_words(seed: int) -> Mapping[str, str]:
    """The same with words of the grammar, sentence by sentence."""
    return _asked(encoder(random_model(seed)), _grammar(seed))


def dealt_mentions(seed: int) -> Mapping[str, str]:
    """A head resolves what is annotated, and then mentions are dealt to clusters at random."""
    return _asked(planted.encoder(planted.model()), planted.corpus(40, shuffled=True, seed=seed))


def dealt_sentences(seed: int) -> Mapping[str, str]:
    """The same with the bundled model and sentences of the grammar."""
    corpus, rng = _grammar(seed), random.Random(seed)
    return _asked(mini(), replace(corpus, examples=[_dealt(e, rng) for e in corpus]))


_BOTH = dict.fromkeys(
    (
        "a-head-resolves-coreference-like-rules",
        "a-head-resolves-coreference-beyond-head-match",
    ),
    HOLDS,
)

NULLS = (
    Null("random model (coreference)", random_heads, _BOTH),
    Null("random model (coreference, grammar)", random_words, _BOTH),
    Null("mentions dealt at random", dealt_mentions, _BOTH),
    Null("mentions dealt at random (grammar)", dealt_sentences, _BOTH),
)
