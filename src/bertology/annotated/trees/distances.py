"""Distances in annotated trees: how many arcs lie between two words, and between a word and root.

Words without a state (cut off, or without a piece of their own) are left out of a sentence; those
that are left keep the distances that they have in the whole tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertology.annotated.probe_questions import parts_of_texts, states_before
from bertology.annotated.states import States
from bertology.annotated.trees.gold import PUNCTUATION
from bertology.arrays import Ints
from bertology.data.corpus import Corpus

_LEAST = 3  # words that are no punctuation: two have one tree


@dataclass(frozen=True)
class TreeSentence:
    """The n words of a sentence that have states, numbered among themselves."""

    example: int
    part: int  # 0 trains, 1 is held out, 2 is scored
    words: Ints  # (n,): their numbers in the example
    units: Ints  # (n,): the numbers of their states
    distances: NDArray[np.int16]  # (n, n): arcs between two words
    depths: NDArray[np.int16]  # (n,): arcs up to the root
    heads: Ints  # (n,): -1 for the root and where the head has no state
    counted: NDArray[np.bool_]  # (n,): no punctuation

    def __len__(self) -> int:
        return len(self.words)

    @property
    def arcs(self) -> NDArray[np.bool_]:
        """(n,): the words whose arc to their head counts, both being no punctuation."""
        found: NDArray[np.bool_] = (
            self.counted & (self.heads >= 0) & self.counted[np.maximum(self.heads, 0)]
        )
        return found

    @property
    def root(self) -> int:
        """The word that hangs from none, -1 if it has no state or is punctuation."""
        found = np.flatnonzero((self.depths == 0) & self.counted)
        return int(found[0]) if len(found) else -1


@dataclass(frozen=True)
class TreeSentences:
    """Those that can be used, and how many texts were left out."""

    sentences: Sequence[TreeSentence]
    short: int  # fewer than three words that have states and are no punctuation
    broken: int  # no tree: several roots, none, or a circle

    def of_part(self, part: int) -> list[int]:
        """The numbers of sentences that train (0), are held out (1), are scored (2)."""
        return [i for i, one in enumerate(self.sentences) if one.part == part]


def tree_sentences(corpus: Corpus, states: States) -> TreeSentences:
    """The trees of all texts, of which seven in ten train, one is held out, two are scored."""
    found, short, broken = [], 0, 0
    starts, parts = states_before(corpus, states), parts_of_texts(corpus)
    for at, example in enumerate(corpus):
        every = np.array(example.get("heads"), np.int64)
        relations = [str(label).partition(":")[0] for label in example.get("relations")]
        words = np.flatnonzero(np.diff(starts[at]))  # those that have a state
        counted = np.array([relations[word] != PUNCTUATION for word in words], bool)
        if counted.sum() < _LEAST:
            short += 1
            continue
        distances = tree_distances(every)
        if distances is None:
            broken += 1
            continue
        place = np.full(len(every) + 1, -1)  # the last one: of no word
        place[words] = np.arange(len(words))
        root = int(np.flatnonzero(every < 0)[0])
        found.append(
            TreeSentence(
                example=at,
                part=int(parts[at]),
                words=words,
                units=starts[at][words],
                distances=distances[np.ix_(words, words)],
                depths=distances[root, words],
                heads=place[every[words]],
                counted=counted,
            )
        )
    return TreeSentences(found, short, broken)


def tree_distances(heads: Ints) -> NDArray[np.int16] | None:
    """(n, n): how many arcs lie between two words of a tree; None if it is none."""
    n = len(heads)
    if (heads < 0).sum() != 1 or (heads >= n).any():
        return None
    above = np.eye(n, dtype=np.int16)  # above[i, j]: j is i, or lies on the way from i to the root
    at = heads.copy()
    for _ in range(n):
        climbing = np.flatnonzero(at >= 0)
        if not len(climbing):
            break
        above[climbing, at[climbing]] = 1
        at[climbing] = heads[at[climbing]]
    if (at >= 0).any():
        return None  # a circle
    shared = above @ above.T
    depths = np.diagonal(shared)
    found: NDArray[np.int16] = depths[:, None] + depths - 2 * shared
    return found
