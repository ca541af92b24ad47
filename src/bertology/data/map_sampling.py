"""Which attention maps to label: spread over layers, heads, examples and lengths."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import pairwise

from bertology.data.corpus import Corpus, Example
from bertology.data.map_labels import MapRecipe
from bertology.errors import DataError, ParameterError

_LENGTHS = 5  # groups of examples, from short to long, that get the same number of maps

HeadAddress = tuple[int, int]
"""A layer and a head, from 0."""


def sample_maps(
    model: str, corpus: Corpus, places: Sequence[HeadAddress], count: int, *, seed: int = 0
) -> list[MapRecipe]:
    """`count` different maps of `model`, the same ones for the same arguments.

    `places` are the heads that the model has. Every layer gets the same number of maps, up to
    one; so does every head of a layer, every fifth of the examples by length, and every example
    of such a fifth.
    """
    if count < 1:
        raise ParameterError("count", "sample_maps", "be at least 1", count)
    there_are = len(set(places)) * len(corpus)
    if count > there_are:
        raise DataError(
            f"{count} maps were asked for; {len(corpus)} examples of {corpus.name!r} and "
            f"{len(set(places))} heads make {there_are}.",
            hint=f"Ask for fewer with --count {there_are}, or give more examples.",
        )
    # Seeded by text, since Random takes that the same way in every process and version.
    chance = random.Random(f"maps {seed}")
    heads, examples = _heads(sorted(set(places)), chance), _examples(corpus, chance)
    chosen: dict[tuple[int, HeadAddress], MapRecipe] = {}
    while len(chosen) < count:
        place, at = next(heads), next(examples)
        first = at
        while (at, place) in chosen:  # small corpora: the next example that is free
            at = (at + 1) % len(corpus)
            if at == first:
                place = next(heads)
        example = corpus[at]
        layer, head = place
        chosen[at, place] = MapRecipe(
            model=model,
            corpus=corpus.name,
            split=corpus.split or "all",
            example=example.id,
            text=example.text,
            text_b=example.text_b,
            layer=layer,
            head=head,
        )
    return list(chosen.values())


def in_order_of(recipes: Sequence[MapRecipe], *, seed: int, turn: int) -> list[MapRecipe]:
    """The same maps in the order of one pass; each pass has another."""
    order = list(recipes)
    random.Random(f"order {seed} {turn}").shuffle(order)
    return order


def _heads(places: Sequence[HeadAddress], chance: random.Random) -> Iterator[HeadAddress]:
    """All places again and again; each run of as many as there are layers has every layer."""
    layers = sorted({layer for layer, _ in places})
    order = sorted({head for _, head in places})
    chance.shuffle(layers)
    chance.shuffle(order)
    rows = []
    for shift, layer in enumerate(layers):
        own = [head for head in order if (layer, head) in set(places)]
        # Another first head for each layer, so that a short list has different heads too.
        start = shift % len(own)
        rows.append([(layer, head) for head in own[start:] + own[:start]])
    turn = 0
    while True:
        for row in rows:
            yield row[turn % len(row)]
        turn += 1


def _examples(corpus: Corpus, chance: random.Random) -> Iterator[int]:
    """Positions of examples again and again: each run of five has one of every length."""
    by_length = sorted(range(len(corpus)), key=lambda i: (_words(corpus[i]), i))
    groups = min(_LENGTHS, len(by_length))
    ends = [len(by_length) * g // groups for g in range(groups + 1)]
    bins = [by_length[a:b] for a, b in pairwise(ends)]
    for group in bins:
        chance.shuffle(group)
    turn = 0
    while True:
        # In another order each time, or lengths and layers would march in step.
        chance.shuffle(bins)
        yield from (group[turn % len(group)] for group in bins)
        turn += 1


def _words(example: Example) -> int:
    return sum(len(text.split()) for text in example.texts)
