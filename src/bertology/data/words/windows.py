"""Documents cut into windows of whole sentences that a model can read at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from bertology.data.corpus import Example, Field
from bertology.data.words.piece_words import word_spans

_ENDS = frozenset({".", "?", "!", "...", "…"})
_BY_WORD = ("words", "lemmas", "pos", "relations")


def sentence_starts(example: Example) -> list[int]:
    """The first word of each sentence; where that is not annotated, after a full stop."""
    words = example.get(Field.WORDS)
    given = example.annotations.get(Field.SENTENCES)
    if not words:
        return []
    if given is not None:
        return sorted({0, *given})
    ends = (i + 1 for i, word in enumerate(words[:-1]) if word in _ENDS)
    return [0, *ends]


def sentence_texts(example: Example) -> list[str]:
    """The text of each sentence."""
    spans = word_spans(example)[0]
    starts = [*sentence_starts(example), len(spans)]
    return [example.text[spans[a][0] : spans[b - 1][1]] for a, b in pairwise(starts)]


def windows_of(example: Example, lengths: Sequence[int], longest: int) -> list[Example]:
    """Consecutive sentences, as many as have at most `longest` pieces together.

    `lengths` are the pieces of each sentence. A longer sentence is a window of its own, and cut
    where it is read.
    """
    starts, count = sentence_starts(example), len(example.get(Field.WORDS))
    cuts, used = [0], 0
    for start, length in zip(starts, lengths, strict=True):
        if used and used + length > longest:
            cuts.append(start)
            used = 0
        used += length
    cuts.append(count)
    if len(cuts) == 2:
        return [example]
    return [_window(example, a, b) for a, b in pairwise(cuts)]


def _window(example: Example, first: int, end: int) -> Example:
    spans = word_spans(example)[0]
    start, stop = spans[first][0], spans[end - 1][1]
    given = example.annotations
    about: dict[str, object] = {
        name: list(given[name][first:end]) for name in _BY_WORD if given.get(name) is not None
    }
    about["offsets"] = [(a - start, b - start) for a, b in spans[first:end]]
    if given.get("heads") is not None:
        heads = given["heads"][first:end]
        about["heads"] = [h - first if first <= h < end else -1 for h in heads]
    inside = (
        [(a - first, b - first) for a, b in cluster if first <= a and b <= end]
        for cluster in given[Field.COREFERENCE] or ()
    )
    about["coreference"] = [cluster for cluster in inside if cluster]
    text = example.text[start:stop]
    return Example(f"{example.id}/{first}", text, annotations=about)
