"""Pairs of texts that are asked about one word in each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bertology.data.corpus import Example, Field
from bertology.data.words.alignment import Span

TARGETED = frozenset({Field.TEXT, Field.TEXT_B, Field.WORDS, Field.OFFSETS, Field.TARGETS})
"""The fields of an example that `targeted_pair` makes."""


def targeted_pair(
    name: str,
    texts: tuple[str, str],
    words: Sequence[Sequence[Span]],
    targets: Sequence[Span],
    *,
    label: int | float | None = None,
    more: Mapping[str, object] | None = None,
) -> Example:
    """A pair from the characters of the words of each text, and the target among the words.

    As in all annotated pairs, WORDS are those of both texts, and OFFSETS count on in the second
    after the first and one more character. TARGETS are counted in their own texts.
    """
    spelled = [text[a:b] for text, spans in zip(texts, words, strict=True) for a, b in spans]
    beyond = len(texts[0]) + 1
    first, second = words
    about: dict[str, object] = {
        "words": spelled,
        "offsets": [*first, *((a + beyond, b + beyond) for a, b in second)],
        "targets": [list(target) for target in targets],
    }
    return Example(name, *texts, label=label, annotations={**about, **(more or {})})
