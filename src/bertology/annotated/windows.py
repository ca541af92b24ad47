"""What the words around a word say of it, without any layer: a baseline of probes.

A layer may tell what a word is in its sentence by nothing but its neighbours: an auxiliary right
after "who" is that of a relative clause, wherever that stands. So probes are given the words of a
window too, side by side, each in its place; a word is the same vector wherever it stands, since
places would let a probe learn "the first one" where it could learn of neighbours.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from bertology.annotated.states import Halves, States
from bertology.arrays import Ints
from bertology.data.corpus import Corpus

Floats = NDArray[np.float32]
REACHES = (1, 2, 3, 4)
"""Words on either side; a narrow window may be better in constructions that did not train."""
_DIMENSIONS, _EXPLAINED = 32, 0.999  # of a word: as few as explain so much, at most so many
_ROUNDS = 5


class Windows(States):
    """States whose "layers" are windows of REACHES, all as wide as the last; nothing is zeros."""

    def __init__(self, states: States, corpus: Corpus) -> None:
        self._like = states
        self.counts, self.there, self.folder = states.counts, states.there, Path()
        words = [str(word).lower() for example in corpus for word in example.get("words")]
        kinds = np.unique(words, return_inverse=True)[1][states.there]
        firsts = np.repeat(np.cumsum(states.counts) - states.counts, states.counts)
        entering = [states.block(block)[0] for block in range(len(states.block_sizes))]
        self._words = _narrow(
            _by_kind(
                np.concatenate(entering).astype(np.float32), kinds, np.arange(len(states)) - firsts
            )
        )

    @property
    def block_sizes(self) -> list[int]:
        """How many states each block has."""
        return self._like.block_sizes

    def block(self, number: int) -> Halves:
        """(reaches, units, dimension) of one block of examples."""
        first, end = np.cumsum([0, *self.block_sizes])[number : number + 2]
        words, examples = self._words[first:end], self.examples[first:end]
        far = max(REACHES)
        found = np.zeros((len(REACHES), len(words), 2 * far + 1, words.shape[1]), np.float16)
        for step in range(-far, far + 1):
            to = np.arange(len(words)) + step
            inside = (to >= 0) & (to < len(words))
            inside[inside] = examples[to[inside]] == examples[inside]
            for at, reach in enumerate(REACHES):
                if abs(step) <= reach:
                    found[at, inside, step + far] = words[to[inside]]
        return found.reshape(len(REACHES), len(words), -1)


def _by_kind(states: Floats, kinds: Ints, places: Ints) -> Floats:
    """What is common to the states (units, dimension) of one word, apart from their places."""
    of_place = np.zeros_like(states)
    of_kind = states
    for _ in range(_ROUNDS):
        of_kind = _means(states - of_place, kinds)
        of_place = _means(states - of_kind, places)
    return of_kind


def _means(states: Floats, groups: Ints) -> Floats:
    """For each unit the mean of its group."""
    units = len(states)
    member = csr_array((np.ones(units, np.float32), (groups, np.arange(units))))
    sums = member @ states
    found: Floats = (sums / np.maximum(np.bincount(groups), 1)[:, None])[groups].astype(np.float32)
    return found


def _narrow(states: Floats) -> Floats:
    """The first principal components, each with the spread 1."""
    centred = (states - states.mean(axis=0)).astype(np.float64)
    values, vectors = np.linalg.eigh(centred.T @ centred / len(states))
    values, vectors = values[::-1].clip(0), vectors[:, ::-1]
    explained = np.cumsum(values) / max(values.sum(), 1e-12)
    kept = min(_DIMENSIONS, int(np.searchsorted(explained, _EXPLAINED)) + 1, len(values))
    spread = np.sqrt(np.maximum(values[:kept], 1e-12))
    found: Floats = (centred @ vectors[:, :kept] / spread).astype(np.float32)
    return found
