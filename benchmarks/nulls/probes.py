"""Nulls of probes: random models, and annotation that was moved to other words."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import planted_links
from bertology.data.corpus import Corpus
from bertology.studies.probing.edge_probes import EdgeProbes
from nulls import HOLDS, Null, judged
from nulls.models import encoder, mini, random_model, texts

_SENTENCES = 150
_STUDY = EdgeProbes(resamples=200)


def random_probes(seed: int) -> Mapping[str, str]:
    """A random model tells words apart, and their places, but no more than shuffled weights do."""
    found = planted_links.ask(_STUDY, encoder(random_model(seed)), texts(seed, _SENTENCES))
    return judged("edge-probes", found)


def moved(corpus: Corpus, seed: int) -> Corpus:
    """All labels drawn anew for each word, as often as they are; trees stay as they are."""
    rng, found = random.Random(seed), []
    pools = {f: [label for e in corpus for label in e.get(f)] for f in ("pos", "relations")}
    for one in corpus:
        drawn = {f: rng.choices(pool, k=len(one.get("words"))) for f, pool in pools.items()}
        found.append(replace(one, annotations={**one.annotations, **drawn}))
    return replace(corpus, examples=found)


def moved_labels(seed: int) -> Mapping[str, str]:
    """Labels of chance are told by no layer of the bundled model."""
    found = planted_links.ask(_STUDY, mini(), moved(texts(seed, _SENTENCES), seed))
    return judged("edge-probes", found)


_TOLD = ("parts-of-speech-are-told", "relations-are-told")
_ALL = (*_TOLD, "distant-parents-are-lost", "syntax-is-best-told-in-the-middle")

NULLS = (
    Null("random model (probes)", random_probes, dict.fromkeys(_TOLD, HOLDS)),
    Null("labels of chance (probes)", moved_labels, dict.fromkeys(_ALL, HOLDS)),
)
