"""Annotated dependency trees of a batch, as far as a model sees their words, and what finds them.

Punctuation is left out of the sentences altogether, as is usual in scoring, and so are words that
have no piece of their own (cut off, or spelled by the piece of a neighbour). Arcs are counted whose
both ends are left; the root has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.annotated.words import WordBatch
from bertology.arrays import Ints
from bertology.data.corpus import Example
from bertology.data.words.links import UNIVERSAL
from bertology.data.words.piece_words import PieceWords

PUNCTUATION = "punct"
RELATIONS = (*(name for name in UNIVERSAL if name != PUNCTUATION), "other")
"""Universal relations, without their subtypes; labels of other schemes are "other"."""
OFFSETS = tuple(k for k in range(-10, 11) if k)
"""How far away a fixed offset looks for the head, in words."""
_LEAST = 3  # words: two have one tree


def words_without_punctuation(one: PieceWords) -> list[int]:
    """The words of an example that have pieces and are no punctuation, by their numbers."""
    relations: Sequence[str] = one.example.get("relations")
    return [
        word
        for word, relation in enumerate(relations)
        if relation.partition(":")[0] != PUNCTUATION and one.alignment.pieces_of(word)
    ]


@dataclass(frozen=True)
class GoldTrees:
    """B sentences of n words at most; words are numbered among those that are kept."""

    words: Sequence[Sequence[int]]
    """The numbers of the kept words in their examples."""
    sizes: Ints  # (B,)
    heads: Ints  # (B, n): -1 for the root, padding, and words whose head is not kept
    relations: Ints  # (B, n): index into RELATIONS; -1 where no arc counts
    roots: Ints  # (B,)

    @classmethod
    def of(cls, read: WordBatch) -> tuple[list[int], GoldTrees | None]:
        """Which examples of the batch have a tree of three words and its root; and their trees."""
        kept = [words_without_punctuation(one) for one in read.examples]
        rows = [
            row
            for row, words in enumerate(kept)
            if len(words) >= _LEAST and _root(read.examples[row].example, words) is not None
        ]
        if not rows:
            return [], None
        sizes = np.array([len(kept[row]) for row in rows])
        heads, relations = (np.full((len(rows), sizes.max()), -1) for _ in range(2))
        roots = np.zeros(len(rows), np.int64)
        for at, row in enumerate(rows):
            example, words = read.examples[row].example, kept[row]
            number = {word: i for i, word in enumerate(words)}
            roots[at] = number[_root(example, words) or 0]
            for i, word in enumerate(words):
                head = number.get(example.get("heads")[word])
                if head is not None and i != roots[at]:
                    heads[at, i] = head
                    relations[at, i] = _relation(example.get("relations")[word])
        return rows, cls([kept[row] for row in rows], sizes, heads, relations, roots)

    def by_relation(self, found: NDArray[np.bool_]) -> NDArray[np.uint16]:
        """How many of the arcs into marked words there are, by relation: (B, …, n) to (B, …, R)."""
        return self.sums(found).astype(np.uint16)

    def sums(self, values: NDArray[Any]) -> NDArray[np.float32]:
        """Sums over the arcs of each relation, of values of the words that they lead to."""
        numbers = np.arange(len(RELATIONS))
        each = (self.relations[:, :, None] == numbers).astype(np.float32)  # (B, n, R)
        flat = values.reshape(len(values), -1, values.shape[-1]).astype(np.float32)
        added: NDArray[np.float32] = np.matmul(flat, each)
        return added.reshape(*values.shape[:-1], len(RELATIONS))

    @property
    def arcs(self) -> NDArray[np.uint16]:
        """(B, R): how many there are of each relation."""
        return self.by_relation(self.heads >= 0)

    @property
    def from_root(self) -> NDArray[np.uint16]:
        """(B, R): how many of them have the root as their head."""
        return self.by_relation(self.heads == self.roots[:, None])

    def found(self, parents: Ints, *, undirected: bool = False) -> NDArray[np.bool_]:
        """(B, C, n): whether trees (B, C, n) have the arc into each word; or it turned round."""
        heads = self.heads[:, None]
        hits = parents == heads
        if undirected:
            at = np.broadcast_to(np.maximum(heads, 0), parents.shape)
            hits = hits | (np.take_along_axis(parents, at, axis=2) == np.arange(heads.shape[2]))
        return np.asarray(hits & (heads >= 0))

    def elsewhere(self, parents: Ints, *, undirected: bool = False) -> NDArray[np.float32]:
        """(B, C, n): from how many of the other words the same end of the arc is found, as a share.

        A tree in which all words hang from one has many arcs of that word, whatever the relation.
        Undirected, the end counts from which more are found.
        """
        places, heads = np.arange(self.heads.shape[1]), np.maximum(self.heads, 0)[:, None]
        degrees = (parents[..., None] == places).sum(axis=2)
        if undirected:
            degrees = degrees + (parents >= 0)
        hits = self.found(parents, undirected=undirected)
        more = np.take_along_axis(degrees, np.broadcast_to(heads, parents.shape), axis=2)
        more = np.maximum(more, degrees) if undirected else more
        return np.asarray((more - hits) / (self.sizes - 2)[:, None, None], np.float32)

    def by_offset(self) -> NDArray[np.uint16]:
        """(B, offset, R): arcs whose head is so many words to the right."""
        away = self.heads - np.arange(self.heads.shape[1])
        same = (away[:, None] == np.array(OFFSETS)[:, None]) & (self.heads >= 0)[:, None]
        return self.by_relation(same)

    def by_rooted_chain(self) -> NDArray[np.uint16]:
        """(B, R): arcs found where each word hangs from its neighbour on the root's side."""
        places = np.arange(self.heads.shape[1])
        chain = places + np.sign(self.roots[:, None] - places)
        return self.by_relation((self.heads == chain) & (self.heads >= 0))


def _root(example: Example, words: Sequence[int]) -> int | None:
    """The first word without a head, if it is kept."""
    heads: Sequence[int] = example.get("heads")
    root = next((word for word, head in enumerate(heads) if head < 0), None)
    return root if root in words else None


def _relation(label: str) -> int:
    name = label.partition(":")[0]
    return RELATIONS.index(name) if name in RELATIONS else len(RELATIONS) - 1
