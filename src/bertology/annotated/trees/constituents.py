"""Constituents of sentences, annotated ones and those read off a matrix between words.

A tree is the set of its spans (first, last + 1) over the words that are looked at, of two words or
more and without the whole sentence, which every tree has.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.data.corpus import Example
from bertology.data.words.piece_words import PieceWords

Span = tuple[int, int]
Spans = frozenset[Span]


def gold_spans(one: PieceWords) -> tuple[list[int], Spans]:
    """The words that are looked at, and the annotated phrases over them.

    Left out are words without a letter or digit (punctuation) and words that have no piece of their
    own. Where only dependencies are annotated, a phrase is all that hangs on one word.
    """
    written: Sequence[str] = one.example.get("words")
    words = [
        w
        for w, word in enumerate(written)
        if any(c.isalnum() for c in word) and one.alignment.pieces_of(w)
    ]
    before = np.concatenate([[0], np.cumsum(np.isin(np.arange(len(written)), words))])
    found = {(int(before[a]), int(before[b])) for a, b in _phrases(one.example)}
    return words, spans_of(found, len(words))


def spans_of(phrases: Collection[Span], size: int) -> Spans:
    """Those of two words or more, without the whole sentence."""
    return frozenset((a, b) for a, b in phrases if 1 < b - a < size)


def _phrases(example: Example) -> Iterator[Span]:
    if "constituents" in example.annotations:
        for first, end, *_ in example.get("constituents"):
            yield int(first), int(end)
        return
    heads: Sequence[int] = example.get("heads")
    under: list[set[int]] = [{w} for w in range(len(heads))]
    for word in range(len(heads)):
        at, seen = word, {word}
        while (at := heads[at]) >= 0 and at not in seen:  # a ring has no root: it ends all the same
            under[at].add(word)
            seen.add(at)
    for words in under:
        if max(words) - min(words) + 1 == len(words):  # what is torn apart is no phrase
            yield min(words), max(words) + 1


def split_spans(scores: NDArray[Any]) -> Spans:
    """Words (n, n) are split in two again and again, where parts have least to do with each other.

    The split is where the mean score inside the two parts most exceeds that between them, both
    directions taken together; the first of equal ones. The diagonal is not looked at.
    """
    n = len(scores)
    pairs = np.asarray(scores, np.float64) + np.asarray(scores, np.float64).T
    np.fill_diagonal(pairs, 0.0)
    sums = np.zeros((n + 1, n + 1))
    sums[1:, 1:] = pairs.cumsum(0).cumsum(1)

    def inside(first: Any, end: Any) -> Any:
        """The sum over the pairs of words of a span, each pair once."""
        square = sums[end, end] - sums[first, end] - sums[end, first] + sums[first, first]
        return square / 2

    def best(first: int, end: int) -> int:
        at = np.arange(first + 1, end)
        left, right = at - first, end - at
        within = inside(first, at) + inside(at, end)
        between = inside(first, end) - within
        many = left * (left - 1) / 2 + right * (right - 1) / 2
        # Rounding must not decide between equal splits.
        gap = np.round(within / np.maximum(many, 1) - between / (left * right), 9)
        return int(at[gap.argmax()])

    return _split(n, best)


def _split(size: int, choose: Callable[[int, int], int]) -> Spans:
    """The spans of a binary tree whose splits are chosen from the top."""
    found, open_ = set[Span](), [(0, size)]
    while open_:
        first, end = open_.pop()
        if end - first < 2:
            continue
        found.add((first, end))
        at = choose(first, end) if end - first > 2 else first + 1
        open_ += [(first, at), (at, end)]
    return spans_of(found, size)


def random_spans(size: int, rng: random.Random) -> Spans:
    """A binary tree whose splits are drawn, each place being as likely."""
    return _split(size, lambda first, end: rng.randrange(first + 1, end))


BASELINES: Mapping[str, Callable[[int], Spans]] = {
    "right-branching": lambda size: _split(size, lambda first, end: first + 1),
    "left-branching": lambda size: _split(size, lambda first, end: end - 1),
    "balanced": lambda size: _split(size, lambda first, end: (first + end + 1) // 2),
}
"""Trees that know nothing but how many words there are."""


def span_f1(found: Collection[Span], gold: Collection[Span]) -> float:
    """Unlabelled F1 of one sentence."""
    hits = len(set(found) & set(gold))
    return 2 * hits / (len(found) + len(gold)) if found or gold else float("nan")
