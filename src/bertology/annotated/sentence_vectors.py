"""Sentences as one vector for each layer, and their words as vectors that know no context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.annotated.states import States
from bertology.annotated.words import words_of
from bertology.arrays import Floats, Ints

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder


@dataclass(frozen=True)
class WordFillers:
    """The words of each sentence by number, and the vector of each number.

    `places[i]` are the words of sentence i that have pieces, by their place among all its words;
    `words[i]` their numbers. `vectors` (V, width): the mean of the rows that a word's pieces have
    in the model's own table of embeddings, which knows neither place nor context.
    """

    words: Sequence[Ints]
    places: Sequence[Ints]
    vectors: Floats
    missing: int
    """Words without a piece of their own, or cut off."""


def word_fillers(encoder: Encoder, corpus: Corpus) -> WordFillers:
    """Words that are spelt by the same pieces are one."""
    numbers: dict[tuple[int, ...], int] = {}
    words, places, missing = [], [], 0
    for one in words_of(encoder, list(corpus)):
        pieces = [one.alignment.pieces_of(word) for word in range(len(one.alignment))]
        there = [word for word, own in enumerate(pieces) if own]
        spelt = [tuple(one.encoding.ids[piece] for piece in pieces[word]) for word in there]
        words.append(np.array([numbers.setdefault(ids, len(numbers)) for ids in spelt], np.int64))
        places.append(np.array(there, np.int64))
        missing += len(pieces) - len(there)
    table = encoder.model.get_input_embeddings().weight.detach()
    vectors = [table[list(ids)].double().mean(0).cpu().numpy() for ids in numbers]
    return WordFillers(words, places, np.array(vectors), missing)


def sentence_vectors(states: States, *, first: bool) -> NDArray[np.float32]:
    """(layers, sentences, width): the mean of each sentence's states, or the first of them.

    0 where a sentence has none.
    """
    ends = np.cumsum([0, *states.block_sizes])
    starts = np.cumsum([0, *states.counts[:-1]])
    found: list[NDArray[np.float32]] = []
    for number, (start, end) in enumerate(pairwise(ends)):
        read = states.block(number).astype(np.float32)
        own = (starts >= start) & (starts < end) & (states.counts > 0)
        found += [
            read[:, at : at + (1 if first else count)].mean(axis=1)
            for at, count in zip(starts[own] - start, states.counts[own], strict=True)
        ]
    vectors = np.zeros((len(found[0]), len(states.counts), found[0].shape[1]), np.float32)
    vectors[:, states.counts > 0] = np.stack(found, axis=1)
    return vectors
