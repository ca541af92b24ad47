"""Nulls of sentence probes: random models, labels of chance, groups that the same layers tell."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import test_sentence_probes as simulated

import bertology as bt
import planted_links
from bertology.data.corpus import Corpus
from bertology.studies.probing.sentence_probes import SentenceProbes
from nulls import BORDER, HOLDS, Null, judged
from nulls.models import encoder, mini, random_model

_SENTENCES = 500
_CLAIM = "surface-then-syntax-then-semantics"


@cache
def _grammar() -> Corpus:
    return bt.load_corpus("grammar-sentences", limit=4000, split="train")


def random_sentences(seed: int) -> Mapping[str, str]:
    """Random models tell what words tell, at any layer."""
    texts = _grammar().take(_SENTENCES, seed=seed)
    study = SentenceProbes(resamples=200, seed=seed)
    found = planted_links.ask(study, encoder(random_model(seed)), texts)
    return judged("sentence-probes", found)


def dealt(corpus: Corpus, seed: int) -> Corpus:
    """Every sentence gets the labels of another one."""
    given = [one.get("sentence_labels") for one in corpus]
    random.Random(seed).shuffle(given)
    return replace(
        corpus,
        examples=[
            replace(one, annotations={**one.annotations, "sentence_labels": labels})
            for one, labels in zip(corpus, given, strict=True)
        ],
    )


def dealt_labels(seed: int) -> Mapping[str, str]:
    """Labels of chance have no layers."""
    texts = dealt(_grammar().take(_SENTENCES, seed=seed), seed)
    study = SentenceProbes(resamples=200, seed=seed)
    return judged("sentence-probes", planted_links.ask(study, mini(), texts))


def unequal_difficulty(seed: int) -> Mapping[str, str]:
    """All groups grow alike with layers; surface is the easiest, semantics the hardest."""
    with pytest.MonkeyPatch.context() as patch:
        return judged("sentence-probes", simulated.unequal(patch, seed))


def same_layers(seed: int) -> Mapping[str, str]:
    """Surface is first; syntax and semantics are told alike by the layers after it."""
    later = np.array([0.0, 0.2, 0.6, 0.6])
    sharp = dict.fromkeys(simulated.TASKS, later) | {"length": np.array([0.0, 1.0, 0.2, 0.0])}
    with pytest.MonkeyPatch.context() as patch:
        return judged("sentence-probes", simulated.simulated(patch, sharp, seed=seed))


NULLS = (
    Null("random model (sentences)", random_sentences, {_CLAIM: HOLDS}),
    Null("labels of other sentences", dealt_labels, {_CLAIM: HOLDS}),
    Null("unequal difficulty (sentences)", unequal_difficulty, {_CLAIM: HOLDS}),
    Null("the same layers tell syntax and semantics", same_layers, {_CLAIM: BORDER}),
)
