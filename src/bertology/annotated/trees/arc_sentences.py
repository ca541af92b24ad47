"""Attention between the words of many sentences, kept on disk: pairs of words that may be arcs.

Pairs of all sentences take much room: they lie in a temporary file and are gone through block by
block, as often as training asks for them; only few are held in memory.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from bertology.annotated.trees.gold import RELATIONS, GoldTrees
from bertology.annotated.words import word_batches
from bertology.arrays import Ints
from bertology.data.corpus import Corpus
from bertology.model.encoder import Encoder
from bertology.model.reducers.word_maps import WordMaps

Floats = NDArray[np.float32]
_PAIRS = 16384  # in one block
_HELD = 2**25  # numbers: 128 MiB


@dataclass(frozen=True)
class PairBlock:
    """Some sentences: P pairs (word j, its possible head i), those of one j side by side."""

    attention: Floats  # (P, heads): from j to i
    turned: Ints  # (P,): the pair (i, j)
    words: Ints  # (P, 2): i and j, numbered through all sentences
    away: Ints  # (P,): i - j
    starts: Ints  # (J,): the first pair of each j
    gold: Ints  # (J,): the pair that is annotated; -1 where none counts
    relations: Ints  # (J,)
    sizes: Ints  # (J,): pairs of each j


class Sentences:
    """Attention between the words of sentences, their heads and relations, kept on disk."""

    def __init__(self, maps: int) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  closed when this is forgotten
        weakref.finalize(self, self._file.close)
        self._maps = maps
        self.heads: list[Ints] = []
        self.relations: list[Ints] = []
        self._examples: list[int] = []
        self._vectors: list[NDArray[np.float16]] = []
        self._at: list[int] = []
        self._first = [0]

    def append(
        self, example: int, maps: NDArray[Any], heads: Ints, relations: Ints, vectors: NDArray[Any]
    ) -> None:
        """A sentence: `maps` (heads, n, n), whose rows attend to columns; heads -1 where none.

        `example` is its number in the corpus, `vectors` (n, hidden) are static ones of its words.
        """
        self._examples.append(example)
        self._vectors.append(vectors.astype(np.float16))
        self._at.append(self._file.seek(0, 2))
        self._file.write(np.ascontiguousarray(np.moveaxis(maps, 0, 2), np.float16).data)
        self.heads.append(heads)
        self.relations.append(relations)
        self._first.append(self._first[-1] + len(heads))

    def __len__(self) -> int:
        return len(self.heads)

    def halves(self) -> tuple[Ints, Ints]:
        """Every other sentence in the order of the corpus, and those between them."""
        order = np.argsort(self._examples)
        return order[::2], order[1::2]

    @property
    def vectors(self) -> NDArray[np.float16]:
        """(words of all sentences, hidden)."""
        return np.concatenate(self._vectors)

    def attended(self, sentence: int) -> Ints:
        """(n, 2 × heads): the word that each word attends to most, then that attends to it most.

        A word itself does not count.
        """
        maps = self.maps(sentence).astype(np.float32)
        own = np.arange(len(maps))
        maps[own, own] = -1.0
        return np.concatenate([maps.argmax(axis=1), maps.argmax(axis=0)], axis=1)

    def at_offsets(self, sentence: int, offsets: Sequence[int]) -> Ints:
        """(n, offsets): the word so many words to the right; -2 where there is none."""
        n = len(self.heads[sentence])
        found = np.arange(n)[:, None] + np.asarray(offsets)
        return np.where((found >= 0) & (found < n), found, -2)

    def hits(self, sentences: Sequence[int] | Ints, guess: Callable[[int], Ints]) -> Ints:
        """(relations, candidates): words whose head is among the guesses (n, C), by candidate."""
        total = 0
        for s in sentences:
            right = (guess(s) == self.heads[s][:, None]) & (self.heads[s] >= 0)[:, None]
            total = total + (
                self.relations[s] == np.arange(len(RELATIONS))[:, None]
            ) @ right.astype(int)
        return np.asarray(total)

    def maps(self, sentence: int) -> NDArray[np.float16]:
        """(n, n, heads) of one sentence."""
        n = len(self.heads[sentence])
        self._file.seek(self._at[sentence])
        read = self._file.read(2 * n * n * self._maps)
        return np.frombuffer(read, np.float16).reshape(n, n, self._maps)

    def words_of(self, sentences: Sequence[int] | Ints) -> Ints:
        """The numbers of their words through all sentences."""
        return np.concatenate([np.arange(*self._first[s : s + 2]) for s in sentences])

    def blocks(self, sentences: Sequence[int] | Ints) -> Iterable[PairBlock]:
        """All pairs of these sentences, some sentences at a time; to be gone through repeatedly."""
        pairs = sum(len(self.heads[s]) ** 2 for s in sentences)
        if pairs * self._maps <= _HELD:
            return list(self._blocks(sentences))
        return _Again(partial(self._blocks, sentences))

    def _blocks(self, sentences: Sequence[int] | Ints) -> Iterator[PairBlock]:
        waiting: list[int] = []
        pairs = 0
        for sentence in sentences:
            n = len(self.heads[sentence])
            if waiting and pairs + n * n > _PAIRS:
                yield self._block(waiting)
                waiting, pairs = [], 0
            waiting.append(sentence)
            pairs += n * n
        if waiting:
            yield self._block(waiting)

    def _block(self, sentences: Sequence[int]) -> PairBlock:
        found: list[tuple[Ints, ...]] = []
        at = 0
        for s in sentences:
            n, heads = len(self.heads[s]), self.heads[s]
            j, i = (of.ravel() for of in np.indices((n, n)))
            starts = at + n * np.arange(n)
            gold = np.where(heads >= 0, starts + heads, -1)
            words = self._first[s] + np.stack([i, j], axis=1)
            found.append(
                (at + i * n + j, words, i - j, starts, gold, self.relations[s], np.full(n, n))
            )
            at += n * n
        attention = np.concatenate([self.maps(s).reshape(-1, self._maps) for s in sentences])
        return PairBlock(
            attention.astype(np.float32), *(np.concatenate(of) for of in zip(*found, strict=True))
        )


@dataclass(frozen=True)
class _Again:
    """Starts from the beginning each time it is gone through."""

    start: Callable[[], Iterator[PairBlock]]

    def __iter__(self) -> Iterator[PairBlock]:
        return self.start()


def read_sentences(
    encoder: Encoder, corpus: Corpus, *, batch_tokens: int, advance: Callable[[int], None]
) -> Sentences:
    """The sentences that have an annotated tree; their vectors are the model's input embeddings."""
    layers, heads = encoder.shape.layers, encoder.shape.heads
    table = encoder.model.get_input_embeddings().weight.detach()
    found = Sentences(layers * heads)

    def take(layer: int, maps: Tensor, *, into: NDArray[np.float16]) -> None:
        into[:, layer * heads : (layer + 1) * heads] = maps.cpu().numpy()

    for read in word_batches(encoder, corpus, tokens_per_batch=batch_tokens):
        rows, gold = GoldTrees.of(read)
        if gold is not None:
            batch = read.batch.only(rows)
            spelled = [
                [read.examples[row].alignment.pieces_of(word) for word in words]
                for row, words in zip(rows, gold.words, strict=True)
            ]
            most = int(gold.sizes.max())
            maps = np.zeros((len(rows), layers * heads, most, most), np.float16)
            reducer = WordMaps(batch, spelled, partial(take, into=maps))
            encoder.run(batch, reduce={"layer.*.head.*.pattern": reducer})
            for row, n in enumerate(gold.sizes):
                ids = batch.inputs["input_ids"][row][batch.real[row]]
                own = [table[ids[list(pieces)]].mean(0).float().cpu() for pieces in spelled[row]]
                found.append(
                    batch.indices[row],
                    maps[row, :, :n, :n],
                    gold.heads[row, :n],
                    gold.relations[row, :n],
                    np.stack([vector.numpy() for vector in own]),
                )
        advance(len(read.batch))
    return found
