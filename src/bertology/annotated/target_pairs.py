"""Pairs of texts with a word in each: the texts one by one, so that no text sees the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bertology.data.corpus import Example, Field
from bertology.data.words.piece_words import known_words

if TYPE_CHECKING:
    from bertology.annotated.sense_occurrences import Span
    from bertology.data.corpus import Corpus


def target_texts(corpus: Corpus) -> tuple[Corpus, Sequence[Span]]:
    """Twice as many examples, first and second texts in turn, and the target's words in each."""
    examples, spans = list[Example](), list[tuple[int, int, int]]()
    for example in corpus:
        words = known_words(example)
        for text, own, (first, last) in zip(
            example.texts, words, example.get("targets"), strict=True
        ):
            spans.append((len(examples), int(first), int(last)))
            about = {"offsets": [list(span) for span in own]}
            examples.append(Example(f"{example.id}-{len(spans) % 2}", text, annotations=about))
    fields = frozenset({Field.TEXT, Field.OFFSETS})
    return replace(corpus, examples=examples, fields=fields, task=None, origin={}), spans
