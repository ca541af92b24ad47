"""An example as a model reads it: its pieces, and the words they spell.

Annotated pairs number their words through, as `alignment` does, and so do their OFFSETS: the second
text counts on after the first text and one more character.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Ints
from bertology.data.corpus import Example, Field
from bertology.data.words.alignment import Alignment, Encoding, Span, align, locate, split_words
from bertology.errors import DataError

# Words as a tokenizer cuts them, of many texts at once: no annotation is needed, and no loop.
#
# A fast tokenizer says which of its pieces make one word. Words that are spelt by the same pieces
# are one kind, told by a number of 64 bits that is made of these pieces; a sentence ends at a word
# whose last piece is a full stop, an exclamation mark or a question mark.

Keys = NDArray[np.uint64]
ENDS = (".", "!", "?")


class CutText(Protocol):
    """What is needed of a fast tokenizer's encoding."""

    @property
    def ids(self) -> Sequence[int]:
        """The vocabulary's number of each piece, special ones too."""

    @property
    def word_ids(self) -> Sequence[int | None]:
        """The word of each piece; None for special tokens."""


@dataclass(frozen=True)
class TokenWords:
    """The words of some texts, numbered through, and their pieces."""

    pieces: Ints
    """The places of pieces that belong to a word, counted over all texts, special ones too."""
    ids: Ints
    """The vocabulary's number of each of these pieces."""
    words: Ints
    """The word of each of these pieces."""
    texts: Ints
    """(words,) the text of each word."""
    kinds: Keys
    """(words,) equal where the pieces are."""
    sentences: Ints
    """(words,) the sentence of each word, numbered through."""
    lengths: Ints
    """(texts,) how many pieces each text has, special ones too."""

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def starts(self) -> Ints:
        """Where among `ids` each word begins."""
        return run_starts(self.words)

    def rows(self, width: int, *, left: bool = False) -> Ints:
        """The places of `pieces` in texts that are padded to `width`, on the left or the right."""
        before = np.cumsum(self.lengths) - self.lengths
        text = self.texts[self.words]
        shift = width - self.lengths if left else np.zeros_like(self.lengths)
        found: Ints = self.pieces - before[text] + shift[text] + width * text
        return found


def token_words(cut: Sequence[CutText], ends: Collection[int] = ()) -> TokenWords:
    """The words of texts that a tokenizer has cut; `ends` are pieces that end a sentence."""
    rows = [one.ids for one in cut]
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    total = int(lengths.sum())
    every = np.fromiter(chain.from_iterable(rows), np.int64, total)
    # As fractions, since these know "no number", and so no line of Python is run for each piece.
    numbers = np.fromiter(chain.from_iterable(one.word_ids for one in cut), np.float64, total)
    text_of = np.repeat(np.arange(len(cut)), lengths)
    pieces = np.flatnonzero(~np.isnan(numbers))
    ids, number, text = every[pieces], numbers[pieces], text_of[pieces]
    new = np.ones(len(pieces), bool)
    # A special token lies between the two texts of a pair, whose words are both counted from 0.
    new[1:] = (np.diff(number) != 0) | (np.diff(text) != 0) | (np.diff(pieces) > 1)
    words = np.cumsum(new) - 1
    starts = np.flatnonzero(new)
    place = np.arange(len(pieces)) - starts[words] if len(pieces) else pieces
    keys = mixed(ids, place)
    kinds = np.add.reduceat(keys, starts) if len(starts) else keys
    last = np.append(starts[1:], len(pieces)) - 1
    ending = np.isin(ids[last], list(ends))
    of_text = text[starts]
    first = np.ones(len(starts), bool)
    first[1:] = (np.diff(of_text) != 0) | ending[:-1]
    return TokenWords(pieces, ids, words, of_text, kinds, np.cumsum(first) - 1, lengths)


def run_starts(numbers: Ints) -> Ints:
    """Where each run of one number begins; numbers are in order, from 0 or more."""
    return np.flatnonzero(np.diff(numbers, prepend=-1))


def mixed(*numbers: NDArray[np.generic] | int) -> Keys:
    """A number of 64 bits for each row of whole numbers, as if drawn at random (splitmix64)."""
    found = np.zeros(np.broadcast_shapes(*(np.shape(n) for n in numbers)), np.uint64)
    with np.errstate(over="ignore"):
        for one in numbers:
            found = found + np.asarray(one).astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
            found = (found ^ (found >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            found = (found ^ (found >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            found = found ^ (found >> np.uint64(31))
    return found


FindWords = Callable[[Example], list[list[Span]]]
"""Where the words of an example stand in each of its texts."""


def word_spans(example: Example) -> list[list[Span]]:
    """The characters of each annotated word in its own text, text by text."""
    texts = example.texts
    offsets = example.annotations.get(Field.OFFSETS)
    if offsets is None:
        if len(texts) > 1:
            raise DataError(
                f"Example {example.id!r} is a pair whose words have no offsets.",
                hint="Annotate it with bertology.annotated.tagger.annotate.",
            )
        try:
            return [locate(example.text, example.get(Field.WORDS))]
        except DataError as error:
            raise DataError(f"Example {example.id!r}: {error.problem}", hint=error.hint) from error
    found: list[list[Span]] = [[] for _ in texts]
    beyond = len(example.text) + 1
    for start, end in offsets:
        second = len(texts) > 1 and start >= beyond
        shift = beyond if second else 0
        found[int(second)].append((start - shift, end - shift))
    return found


def known_words(example: Example) -> list[list[Span]]:
    """The annotated words; what white space separates, where no words are annotated."""
    if Field.OFFSETS in example.annotations or Field.WORDS in example.annotations:
        return word_spans(example)
    return [split_words(text) for text in example.texts]


def words_of_first_text(example: Example) -> list[list[Span]]:
    """All annotated words in the first text, and what white space separates in the second."""
    offsets = example.annotations.get(Field.OFFSETS)
    words = offsets or locate(example.text, example.get(Field.WORDS))
    return [[(a, b) for a, b in words], *map(split_words, example.texts[1:])]


@dataclass(frozen=True)
class PieceWords:
    """The pieces of an example, special tokens counted and padding not, and their words."""

    example: Example
    encoding: Encoding
    alignment: Alignment

    @classmethod
    def of(cls, example: Example, encoding: Encoding, words: FindWords = known_words) -> PieceWords:
        """The example, its words aligned with an encoding of its texts."""
        return cls(example, encoding, align(encoding, *example.texts, words=words(example)))

    @cached_property
    def places(self) -> list[tuple[Span | None, int | None]]:
        """The characters of each piece, and in which text; None for special tokens."""
        return list(zip(self.alignment.piece_spans, self.encoding.sequence_ids, strict=True))

    @cached_property
    def special(self) -> NDArray[np.bool_]:
        """(pieces,) True for the tokens that the tokenizer added."""
        return np.array([text is None for _, text in self.places], dtype=bool)
