"""Words and wordpieces: which pieces spell which word, by character, never by their text.

Everything is keyed by position, so a word that occurs twice is two words. A piece belongs to the
word it shares most characters with (the first, if two tie); special tokens and padding belong to
none. Words of a pair are numbered through: those of the first text, then those of the second.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bertology.errors import DataError

Span = tuple[int, int]
"""First character, last character + 1."""


class Encoding(Protocol):
    """What is needed of a fast tokenizer's encoding (`batch.encodings[i]`)."""

    @property
    def ids(self) -> Sequence[int]:
        """The vocabulary's number of each piece."""

    @property
    def tokens(self) -> Sequence[str]:
        """The text of each piece, as the vocabulary has it."""

    @property
    def offsets(self) -> Sequence[Span]:
        """Characters of each piece, in its own text."""

    @property
    def sequence_ids(self) -> Sequence[int | None]:
        """0 or 1 for pieces of the first or second text; None for special tokens."""


@dataclass(frozen=True)
class Alignment:
    """Which piece belongs to which word. Spans are characters of the word's own text."""

    word_spans: tuple[Span, ...]
    sequences: tuple[int, ...]  # per word: 0 for the first text, 1 for the second
    piece_spans: tuple[Span | None, ...]  # None for special tokens and padding
    words: tuple[int | None, ...]  # per piece

    def word_of(self, piece: int) -> int | None:
        """The word that `piece` belongs to; None for special tokens and padding."""
        return self.words[piece]

    def pieces_of(self, word: int) -> tuple[int, ...]:
        """The pieces of `word` in order; none where truncation cut the word off."""
        return self._pieces[word]

    def overlapping(self, word: int) -> tuple[int, ...]:
        """All pieces that share a character with `word`, also those that belong to another one.

        Where one piece spells two words (`can't` for `ca` + `n't`), the second has no piece of
        its own; this is where it is to be found.
        """
        return self._overlaps[word]

    def spelling(self, word: int) -> tuple[int, ...]:
        """The pieces of `word`, or else those it shares with another one."""
        return self._pieces[word] or self._overlaps[word]

    def sequence_of(self, word: int) -> int:
        """0 for a word of the first text, 1 for one of the second."""
        return self.sequences[word]

    def __len__(self) -> int:
        """How many words there are."""
        return len(self.word_spans)

    @cached_property
    def _pieces(self) -> tuple[tuple[int, ...], ...]:
        found: list[list[int]] = [[] for _ in self.word_spans]
        for piece, word in enumerate(self.words):
            if word is not None:
                found[word].append(piece)
        return tuple(map(tuple, found))

    @cached_property
    def _overlaps(self) -> tuple[tuple[int, ...], ...]:
        found = []
        owners = [None if w is None else self.sequences[w] for w in self.words]
        for word, span in enumerate(self.word_spans):
            sequence = self.sequences[word]
            found.append(
                tuple(
                    piece
                    for piece, other in enumerate(self.piece_spans)
                    if other is not None and owners[piece] == sequence and _shared(span, other) > 0
                )
            )
        return tuple(found)


def align(
    encoding: Encoding,
    *texts: str,
    words: Sequence[Sequence[Span]] | None = None,
) -> Alignment:
    """Align an encoding of raw text (or of a pair: give both texts).

    `words`: the spans of the words of each text (a corpus's OFFSETS; `locate` finds them);
    without it, words are what white space separates.
    """
    spans = [split_words(text) for text in texts] if words is None else list(words)
    if len(spans) != len(texts):
        raise DataError(f"{len(texts)} texts and words for {len(spans)} of them.")
    first = [0, len(spans[0])] if spans else []
    pieces: list[Span | None] = []
    owners: list[int | None] = []
    cursors = [0] * len(texts)
    for span, sequence in zip(encoding.offsets, encoding.sequence_ids, strict=True):
        if sequence is None:
            pieces.append(None)
            owners.append(None)
            continue
        if sequence >= len(texts):
            raise DataError("The encoding is of a pair; give both texts.")
        trimmed = _trim(span, texts[sequence])
        word, cursors[sequence] = _owner(trimmed, spans[sequence], cursors[sequence])
        pieces.append(trimmed)
        owners.append(None if word is None else first[sequence] + word)
    return Alignment(
        word_spans=tuple((a, b) for words_of in spans for a, b in words_of),
        sequences=tuple(i for i, words_of in enumerate(spans) for _ in words_of),
        piece_spans=tuple(pieces),
        words=tuple(owners),
    )


def split_words(text: str) -> list[Span]:
    """The spans of what white space separates."""
    spans, start = [], None
    for i, character in enumerate(text + " "):
        if character.isspace():
            if start is not None:
                spans.append((start, i))
                start = None
        elif start is None:
            start = i
    return spans


def locate(text: str, words: Iterable[str]) -> list[Span]:
    """Where each word stands in `text`, from left to right; each occurrence is its own."""
    spans, cursor = [], 0
    for i, word in enumerate(words):
        start = text.find(word, cursor)
        if start < 0 or not word:
            raise DataError(
                f"Word {i} {word!r} is not in the text after character {cursor}: {text[:80]!r}.",
                hint="Words must stand in their text as they are written there, from left to "
                "right; they are counted from 0.",
            )
        cursor = start + len(word)
        spans.append((start, cursor))
    return spans


def pool(
    attention: NDArray[np.floating], alignment: Alignment, *, special: bool = False
) -> NDArray[np.floating]:
    """Attention between pieces (…, T, T) as attention between words (…, W, W).

    After Clark et al. (2019): attention *to* a word is the sum over its pieces, attention *from*
    a word the mean over them; a row then still sums to the attention that words get in all.
    Special tokens are left out. Rows and columns of words without a piece (cut by truncation)
    are NaN. With `special` the columns are those of `units`: special tokens stay, and words
    without a piece go.
    """
    length = len(alignment.words)
    if attention.ndim < 2 or attention.shape[-2:] != (length, length):
        raise DataError(
            f"The attention has the shape {attention.shape}; the text has {length} pieces."
        )
    words = [alignment.pieces_of(word) for word in range(len(alignment))]
    groups = units(alignment) if special else words
    kind = attention.dtype if attention.dtype.kind == "f" else np.dtype(np.float64)
    there = [i for i, pieces in enumerate(groups) if pieces]
    pooled = np.full((*attention.shape[:-2], len(groups), len(groups)), np.nan, dtype=kind)
    if there:
        # Sums of neighbours: a product with a matrix of memberships takes T times as long.
        order = [piece for i in there for piece in groups[i]]
        counts = np.array([len(groups[i]) for i in there])
        starts = np.cumsum(counts) - counts
        summed = np.add.reduceat(attention[..., order].astype(kind, copy=False), starts, axis=-1)
        rows = np.add.reduceat(summed[..., order, :], starts, axis=-2)
        down, across = np.ix_(there, there)
        pooled[..., down, across] = rows / counts[:, None].astype(kind)
    return pooled


def units(alignment: Alignment) -> list[tuple[int, ...]]:
    """The pieces of each word, and each piece of no word (a special token) by itself, in order."""
    alone = [(piece,) for piece, word in enumerate(alignment.words) if word is None]
    words = [alignment.pieces_of(word) for word in range(len(alignment))]
    return sorted([*alone, *filter(None, words)])


def _shared(a: Span, b: Span) -> int:
    return min(a[1], b[1]) - max(a[0], b[0])


def _trim(span: Span, text: str) -> Span:
    """A piece without the white space some tokenizers count to it."""
    start, end = span
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def _owner(piece: Span, words: Sequence[Span], cursor: int) -> tuple[int | None, int]:
    """The word of `piece`, and from which word on the next piece is to be looked for."""
    while cursor < len(words) and words[cursor][1] <= piece[0]:
        cursor += 1
    best, most = None, 0
    for i in range(cursor, len(words)):
        if words[i][0] >= piece[1]:
            break
        if (shared := _shared(words[i], piece)) > most:
            best, most = i, shared
    if best is None and piece[0] == piece[1] and words:
        # Nothing but space (a lone "▁"): it introduces the word that follows it.
        best = min(cursor, len(words) - 1)
    return best, cursor
