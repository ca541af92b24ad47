"""The texts of scored pairs, each once, and one vector for each of them after every layer.

What a pair compares is a whole text (a sentence, or a word alone), or the target words in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.annotated.words import word_batches
from bertology.arrays import Ints
from bertology.data.corpus import Example, Field
from bertology.data.words.piece_words import PieceWords, known_words
from bertology.stats.rank_agreement import PairLinks

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Compared:
    """A text, and which of its characters are compared; None: all of it."""

    text: str
    span: tuple[int, int] | None = None

    @property
    def spelt(self) -> str:
        """What is compared, as it is written."""
        return self.text if self.span is None else self.text[slice(*self.span)]


@dataclass(frozen=True)
class ScoredPairs:
    """What is compared, each once; the two of every pair by number; how alike people find them."""

    compared: Sequence[Compared]
    pairs: Ints  # (N, 2)
    judged: NDArray[np.float64]

    @cached_property
    def units(self) -> Ints:
        """Which of the compared are one text or target word, whatever their case and spaces."""
        numbers: dict[str, int] = {}
        named = [normal_text(one.spelt) for one in self.compared]
        return np.array([numbers.setdefault(name, len(numbers)) for name in named], np.int64)

    @property
    def links(self) -> PairLinks:
        """Which pairs share a text, or a target word."""
        return PairLinks(*self.units[self.pairs].T)


def normal_text(text: str) -> str:
    """A text by which copies are told: without its case, and with single spaces."""
    return " ".join(text.lower().split())


def scored_pairs(corpus: Corpus) -> ScoredPairs:
    """The pairs of a corpus with text, text_b and label, in their order."""
    numbers: dict[Compared, int] = {}
    pairs = []
    for example in corpus:
        spans: list[tuple[int, int] | None] = [None, None]
        if Field.TARGETS in corpus.fields:
            words = known_words(example)
            spans = [
                (words[text][first][0], words[text][end - 1][1])
                for text, (first, end) in enumerate(example.get(Field.TARGETS))
            ]
        both = [Compared(text, span) for text, span in zip(example.texts, spans, strict=True)]
        pairs.append([numbers.setdefault(one, len(numbers)) for one in both])
    return ScoredPairs(list(numbers), np.array(pairs, np.int64), np.array(corpus.labels, float))


def compared_vectors(
    encoder: Encoder,
    compared: Sequence[Compared],
    *,
    first: bool = False,
    batch_tokens: int = 4096,
    advance: Callable[[int], None] = lambda texts: None,
) -> tuple[Floats, NDArray[np.bool_]]:
    """(layers + 1, things, width), and which have a vector: targets may be cut off, or unknown.

    It is the mean over the pieces, special tokens left out; with `first` a whole text has the state
    of its first token. Layer 0 is what enters the first one.
    """
    from bertology.model.batch import unknown_id
    from bertology.model.reducers.unit_states import UnitStates

    examples = [Example(str(i), one.text) for i, one in enumerate(compared)]
    spans = {str(i): one.span or (0, len(one.text)) for i, one in enumerate(compared)}
    shape = (encoder.shape.layers + 1, len(compared), encoder.shape.hidden)
    found, there = np.zeros(shape, np.float32), np.zeros(len(compared), bool)
    batches = word_batches(
        encoder, examples, tokens_per_batch=batch_tokens, words=lambda one: [[spans[one.id]]]
    )
    unknown = unknown_id(encoder.tokenizer)
    for read in batches:
        ids = read.batch.inputs["input_ids"].flatten(0, -2).tolist()
        groups = [
            ()  # all such would be the same
            if _unknown(one, tokens, unknown)
            else _pieces(one, first=first and compared[i].span is None)
            for i, one, tokens in zip(read.batch.indices, read.examples, ids, strict=True)
        ]
        own = [i for i, pieces in zip(read.batch.indices, groups, strict=True) if pieces]
        there[own] = True

        def take(number: int, states: Tensor, own: Sequence[int] = own) -> None:
            found[number, own] = states.float().cpu().numpy()

        if own:
            reducer = UnitStates(read.batch, [[p] if p else [] for p in groups], take)
            encoder.run(read.batch, reduce={"embeddings": reducer, "layer.*.residual": reducer})
        advance(len(read.batch))
    return found, there


def _pieces(one: PieceWords, *, first: bool) -> tuple[int, ...]:
    return (0,) if first and len(one.places) else one.alignment.spelling(0)


def _unknown(one: PieceWords, ids: Sequence[int], unknown: int | None) -> bool:
    """Whether what is compared is spelt by unknown tokens alone."""
    return all(ids[piece] == unknown for piece in one.alignment.spelling(0))
