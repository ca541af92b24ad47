"""Sentences of things and attributes, made up, and states that tell some of what goes with what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from bertology.data.corpus import Corpus, Example, Field

RELATIONS = ("object-property", "object-affordance", "affordance-property")
FIELDS = frozenset({Field.TEXT, Field.LABEL, Field.ENTITY, Field.GROUP})
WIDTH = 6


@cache
def _vector(name: str) -> NDArray[np.float64]:
    return np.random.default_rng(crc32(name.encode())).normal(size=WIDTH)


def things(relation: str, n: int) -> list[str]:
    return [f"{relation.partition('-')[0]}{i}" for i in range(n)]


def attributes(relation: str, n: int) -> list[str]:
    return [f"{relation.rpartition('-')[2]}{i}" for i in range(n)]


def corpus(seed: int = 0, *, entities: int = 24, groups: int = 12) -> Corpus:
    """What goes with what is the sign of a product of vectors, plus what each of both has alone."""
    rng, found = np.random.default_rng(seed), []
    for relation in RELATIONS:
        alone = {name: rng.normal() for name in attributes(relation, groups)}
        for one in things(relation, entities):
            for other in attributes(relation, groups):
                score = _vector(one) @ _vector(other) / np.sqrt(WIDTH) + alone[other]
                about = {"entity": one, "group": other, "relation": relation}
                text = f"the {one} is {other} ."
                found.append(Example(f"{one}/{other}", text, None, int(score > 0.5), about))
    return Corpus("made", found, FIELDS)


def words(made: Corpus) -> list[str]:
    return sorted({word for example in made for word in example.text.split()})


def states(
    examples: Sequence[Example], told: Mapping[str, float], *, layers: int = 2, seed: int = 0
) -> NDArray[np.float16]:
    """(layers + 1, N, 2, width): vectors of thing and attribute, hidden by noise where not told.

    `told`: for each relation, how much of the thing's vector is there; only in the last layer.
    """
    rng = np.random.default_rng(seed)
    drawn: dict[tuple[str, int], NDArray[np.float64]] = {}
    found = np.zeros((layers + 1, len(examples), 2, WIDTH))
    for i, example in enumerate(examples):
        one, other = str(example.get("entity")), str(example.get("group"))
        for layer in range(layers + 1):
            noise = drawn.setdefault((one, layer), rng.normal(size=WIDTH))
            share = told[str(example.get("relation"))] if layer == layers else 0.0
            found[layer, i, 0] = share * _vector(one) + (1 - share) * noise
            found[layer, i, 1] = _vector(other)
    return found.astype(np.float16)
