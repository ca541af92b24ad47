"""Nulls of probes: random models, and annotation that was moved to other words."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import planted_links
from bertology.data.corpus import Corpus, Field
from bertology.studies.probing.edge_probes import EdgeProbes
from nulls import HOLDS, Null, judged
from nulls.models import encoder, mini, random_model, texts

_SENTENCES = 150
_WORDS = (
    "pos", "chunk-tag", "relation", "parent", "grandparent", "arc", "arc-relation",
)  # fmt: skip
_STUDY = EdgeProbes(tasks=_WORDS, resamples=200)


def random_probes(seed: int) -> Mapping[str, str]:
    """A random model tells words apart, and their places, but no more than shuffled weights do."""
    found = planted_links.ask(_STUDY, encoder(random_model(seed)), texts(seed, _SENTENCES))
    return judged("edge-probes", found)


def wide_random_probes(seed: int) -> Mapping[str, str]:
    """As wide as the bundled one and with more text, so that words alone are beaten by chance.

    What decides is then the input, and the same model with shuffled weights.
    """
    study = replace(_STUDY, tasks=("relation", "parent", "great-grandparent"))
    found = planted_links.ask(study, encoder(random_model(seed, wide=True)), texts(seed, 1000))
    return judged("edge-probes", found)


def moved(corpus: Corpus, seed: int) -> Corpus:
    """All labels drawn anew for each word, as often as they are; trees stay as they are."""
    rng, found = random.Random(seed), []
    pools = {f: [label for e in corpus for label in e.get(f)] for f in ("pos", "relations")}
    kinds = [chunk[2] for one in corpus for chunk in one.get("chunks")]
    for one in corpus:
        drawn = {f: rng.choices(pool, k=len(one.get("words"))) for f, pool in pools.items()}
        ends = sorted({*rng.sample(range(1, words := len(one.get("words"))), words // 2), words})
        drawn["chunks"] = [[a, b, rng.choice(kinds)] for a, b in pairwise([0, *ends])]
        found.append(replace(one, annotations={**one.annotations, **drawn}))
    return replace(corpus, examples=found)


def moved_labels(seed: int) -> Mapping[str, str]:
    """Labels of chance are told by no layer of the bundled model."""
    study = replace(_STUDY, tasks=("pos", "chunk-tag", "relation"))
    found = planted_links.ask(study, mini(), moved(texts(seed, _SENTENCES), seed))
    return judged("edge-probes", found)


_SPANS = replace(_STUDY, tasks=("entity", "frame-element", "entity-relation", "proto-role"))

_PROPERTIES = {"aware": ("nsubj", "A", "B"), "changed": ("obj", "nsubj:pass", "B", "C")}


def spans_of(corpus: Corpus, seed: int, *, chance: bool) -> Corpus:
    """Mentions as entities, pairs of roles as related; labels by their grammar, or of chance."""
    rng, found = random.Random(seed), []
    for one in corpus:
        known = one.annotations
        mentions = sorted((a, b) for cluster in known["coreference"] for a, b in cluster)
        phrases = sorted(tuple(span) for span in known["roles"].values())

        def label(span: tuple[int, int], *, of: dict[str, Any] = known) -> str:
            return rng.choice("ABCD") if chance else str(of["relations"][span[1] - 1])

        verb, roles = known["verb"], known["roles"]
        about = {
            "entities": [[*span, label(span)] for span in mentions],
            "entity_relations": [[*a, *b, label(a) + label(b)] for a, b in pairwise(phrases)],
            "proto_roles": [
                [verb, verb + 1, *span, {p: label(span) in of for p, of in _PROPERTIES.items()}]
                for span in phrases
            ],
            "roles": {f"{rng.choice('ABCD')}#{i}": s for i, s in enumerate(phrases)}
            if chance
            else roles,
        }
        found.append(replace(one, annotations={**known, **about}))
    added = {Field.ENTITIES, Field.ENTITY_RELATIONS, Field.PROTO_ROLES}
    return replace(corpus, examples=found, fields=corpus.fields | added)


def random_spans(seed: int) -> Mapping[str, str]:
    """A random model tells of spans no more than shuffled weights do."""
    given = spans_of(texts(seed, _SENTENCES), seed, chance=False)
    return judged("edge-probes", planted_links.ask(_SPANS, encoder(random_model(seed)), given))


def spans_of_chance(seed: int) -> Mapping[str, str]:
    """Labels of chance of spans and pairs are told by no layer of the bundled model."""
    given = spans_of(texts(seed, _SENTENCES), seed, chance=True)
    return judged("edge-probes", planted_links.ask(_SPANS, mini(), given))


_TOLD = ("parts-of-speech-are-told", "relations-are-told", "chunks-are-told")
_ALL = (*_TOLD, "distant-parents-are-lost", "syntax-is-best-told-in-the-middle")
_TOLD_OF_SPANS = (
    "roles-are-told", "entity-types-are-told", "relations-of-entities-are-told",
    "proto-roles-are-told",
)  # fmt: skip

NULLS = (
    Null("random model (probes)", random_probes, dict.fromkeys(_ALL, HOLDS)),
    Null("wide random model (probes)", wide_random_probes, dict.fromkeys(_ALL, HOLDS)),
    Null("labels of chance (probes)", moved_labels, dict.fromkeys(_ALL, HOLDS)),
    Null("random model (probes of spans)", random_spans, dict.fromkeys(_TOLD_OF_SPANS, HOLDS)),
    Null(
        "labels of chance (probes of spans)", spans_of_chance, dict.fromkeys(_TOLD_OF_SPANS, HOLDS)
    ),
)
