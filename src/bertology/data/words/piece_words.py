"""An example as a model reads it: its pieces, and the words they spell.

Annotated pairs number their words through, as `alignment` does, and so do their OFFSETS: the second
text counts on after the first text and one more character.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bertology.data.corpus import Example, Field
from bertology.data.words.alignment import Alignment, Encoding, Span, align, locate, split_words
from bertology.errors import DataError

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
