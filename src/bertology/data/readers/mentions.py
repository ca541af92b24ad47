"""What readers of coreference share: brackets turned into clusters, characters into words.

Whatever the format, an example has COREFERENCE: clusters of mentions, each from its first word to
the one after its last. A mention that nothing else refers to is alone in its cluster: it is still
one that a pronoun might stand for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bertology.data.corpus import Example, Field
from bertology.data.words.alignment import Span
from bertology.data.words.treebank_words import treebank_words
from bertology.errors import DataError

MENTIONED = frozenset({Field.TEXT, Field.WORDS, Field.OFFSETS, Field.COREFERENCE})
"""The fields of an example that `of_characters` makes."""


class Brackets:
    """Mentions that open at one word and close at another, by the name of their cluster."""

    def __init__(self) -> None:
        self._open: dict[str, list[tuple[int, str]]] = {}
        self._clusters: dict[str, list[Span]] = {}

    def open(self, name: str, word: int, at: str) -> None:
        """A mention begins; `at` says where, if it is never closed."""
        self._open.setdefault(name, []).append((word, at))

    def close(self, name: str, word: int, at: str) -> None:
        """The mention of this name that was opened last ends with this word."""
        if not self._open.get(name):
            raise DataError(
                f"{at}: a mention of {name!r:.40} ends here and begins nowhere.",
                hint="A mention is (name at its first word and name) at its last.",
            )
        first, _ = self._open[name].pop()
        self._clusters.setdefault(name, []).append((first, word + 1))

    def clusters(self) -> list[list[Span]]:
        """All clusters, once the document was read; each mention once."""
        for name, begun in self._open.items():
            if begun:
                raise DataError(f"{begun[-1][1]}: a mention of {name!r:.40} begins and never ends.")
        return [sorted(set(mentions)) for mentions in self._clusters.values()]


def spaced(words: Iterable[str]) -> tuple[str, list[Span]]:
    """The words with a space between them, and where each of them stands."""
    spans, at = list[Span](), 0
    given = list(words)
    for word in given:
        spans.append((at, at + len(word)))
        at += len(word) + 1
    return " ".join(given), spans


def of_characters(
    name: str,
    text: str,
    clusters: Sequence[Sequence[Span]],
    at: str,
    *,
    more: Mapping[str, object] | None = None,
) -> Example:
    """An example from raw text, whose mentions are given by their characters.

    Words are those of English treebanks; a mention has every word that it shares a character with.
    """
    spans = treebank_words(text)
    return Example(
        id=name,
        text=text,
        annotations={
            "words": [text[a:b] for a, b in spans],
            "offsets": spans,
            "coreference": [
                [words_at(spans, mention, at) for mention in cluster] for cluster in clusters
            ],
            **(more or {}),
        },
    )


def words_at(spans: Sequence[Span], mention: Span, at: str) -> Span:
    """The words that share a character with a mention: the first, and the one after the last."""
    inside = [i for i, (a, b) in enumerate(spans) if a < mention[1] and mention[0] < b]
    if not inside:
        raise DataError(f"{at}: there is no word at the characters {list(mention)} of the text.")
    return inside[0], inside[-1] + 1
