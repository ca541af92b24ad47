"""Nulls of structural probes: random models, and trees of chance over the same words."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import planted_links
from bertology.data.corpus import Corpus
from bertology.studies.probing.structural_probe import StructuralProbe
from nulls import HOLDS, Null, judged
from nulls.models import encoder, mini, random_model, texts

_SENTENCES = 150
_STUDY = StructuralProbe(ranks=(8, 32), resamples=200, keep=0)


def random_structure(seed: int) -> Mapping[str, str]:
    """A random model knows words and their places, but no more than shuffled weights do."""
    found = planted_links.ask(_STUDY, encoder(random_model(seed)), texts(seed, _SENTENCES))
    return judged("structural-probe", found)


def with_other_trees(corpus: Corpus, seed: int) -> Corpus:
    """Each word hangs from one that came before it in a random order; punctuation stays a leaf."""
    rng, found = random.Random(seed), []
    for one in corpus:
        relations = one.get("relations")
        words = [w for w, r in enumerate(relations) if r.partition(":")[0] != "punct"]
        rng.shuffle(words)
        heads = [words[0]] * len(relations)
        heads[words[0]] = -1
        for at in range(1, len(words)):
            heads[words[at]] = rng.choice(words[:at])
        found.append(replace(one, annotations={**one.annotations, "heads": heads}))
    return replace(corpus, examples=found)


def trees_of_chance(seed: int) -> Mapping[str, str]:
    """Trees that nothing tells are found in no layer of the bundled model."""
    found = planted_links.ask(_STUDY, mini(), with_other_trees(texts(seed, _SENTENCES), seed))
    return judged("structural-probe", found)


_ALL = (
    "trees-by-a-linear-map",
    "trees-are-best-in-the-middle",
    "depths-are-best-in-the-middle",
)

NULLS = (
    Null("random model (structural)", random_structure, dict.fromkeys(_ALL, HOLDS)),
    Null("trees of chance (structural)", trees_of_chance, dict.fromkeys(_ALL, HOLDS)),
)
