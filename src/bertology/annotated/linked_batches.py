"""The links of an example in the words that a model sees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bertology.data.words.links import dependencies_of, links_of

if TYPE_CHECKING:
    from bertology.data.corpus import Example
    from bertology.data.words.piece_words import PieceWords


@dataclass(frozen=True)
class LinkedExample:
    """Words that have a piece, phrases of them that are linked as a whole, and their links.

    Words that truncation cut off, or that a neighbour's piece spells, do not count, and a link
    without any other word neither. An end of a link is a row: words first, in their order, then
    phrases.
    """

    words: Sequence[int]
    """The numbers of the words in their example."""
    pieces: Sequence[Sequence[int]]
    phrases: Sequence[tuple[int, ...]]
    """The rows of their words."""
    links: Sequence[tuple[str, int, int]]
    """Name, source and target."""

    @classmethod
    def of(cls, one: PieceWords, relations: Sequence[str]) -> LinkedExample:
        """The links of some relations, or all dependencies as they are annotated."""
        every = [one.alignment.pieces_of(word) for word in range(len(one.alignment))]
        words = [word for word, pieces in enumerate(every) if pieces]
        row = {word: at for at, word in enumerate(words)}
        phrases: dict[tuple[int, ...], int] = {}

        def end_of(end: Sequence[int]) -> int | None:
            rows = tuple(row[word] for word in end if word in row)
            if len(rows) < 2:
                return rows[0] if rows else None
            return len(words) + phrases.setdefault(rows, len(phrases))

        links = []
        for name, source, target in _named(one.example, relations):
            ends = end_of(source), end_of(target)
            if ends[0] is not None and ends[1] is not None:
                links.append((name, ends[0], ends[1]))
        return cls(words, [every[word] for word in words], list(phrases), links)


def _named(
    example: Example, relations: Sequence[str]
) -> Iterator[tuple[str, tuple[int, ...], tuple[int, ...]]]:
    if not relations:
        yield from ((k.name, k.source, k.target) for k in dependencies_of(example))
    for relation in relations:
        yield from ((relation, k.source, k.target) for k in links_of(example, relation))
