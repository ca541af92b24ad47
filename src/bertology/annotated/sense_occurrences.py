"""Occurrences of words whose senses are known, and their states after each layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.annotated.sense_planes import Shown, shortened
from bertology.annotated.sentence_vectors import word_fillers
from bertology.annotated.states import States
from bertology.arrays import Bools, Ints
from bertology.data.corpus import example_key
from bertology.data.words.piece_words import known_words

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder

Span = tuple[int, int, int]
"""An example, and the first and the last + 1 of some of its words, counted through its texts."""
_FEWEST_GROUPS = 10  # with fewer documents than that, texts are held out one by one


@dataclass(frozen=True)
class Occurrence:
    """A word, or several, in its example, with lemma and sense."""

    span: Span
    lemma: str
    sense: str


def sense_occurrences(corpus: Corpus) -> list[Occurrence]:
    """All words of a corpus whose sense is annotated, in their order."""
    return [
        Occurrence((number, int(first), int(last)), str(lemma), str(sense))
        for number, example in enumerate(corpus)
        for first, last, lemma, sense in example.get("senses")
    ]


def span_words(corpus: Corpus, spans: Sequence[Span]) -> list[list[int]]:
    """The words of each example that some span has: whose states are needed."""
    found: list[set[int]] = [set() for _ in corpus]
    for example, first, last in spans:
        found[example].update(range(first, last))
    return [sorted(own) for own in found]


def found_spans(corpus: Corpus, states: States, spans: Sequence[Span]) -> list[Ints]:
    """The rows among the states that each span has; none where all its words were cut off."""
    sizes = [sum(len(words) for words in known_words(example)) for example in corpus]
    starts = np.cumsum([0, *sizes])
    rows = np.cumsum(states.there) - 1
    found = []
    for example, first, last in spans:
        words = np.arange(starts[example] + first, starts[example] + last)
        found.append(rows[words[states.there[words]]])
    return found


def span_states(states: States, rows: Sequence[Ints]) -> NDArray[np.float16]:
    """(layers, spans, width): the mean of the states of each span, which has one at least."""
    ends = np.cumsum([0, *states.block_sizes])
    firsts = np.array([own[0] for own in rows], np.int64)
    whole: NDArray[np.float16] | None = None
    for number, (start, end) in enumerate(pairwise(ends)):
        inside = np.flatnonzero((firsts >= start) & (firsts < end))
        if not len(inside):
            continue
        read = states.block(number)
        if whole is None:
            whole = np.zeros((read.shape[0], len(rows), read.shape[2]), np.float16)
        whole[:, inside] = read[:, firsts[inside] - start]
        for at in (int(at) for at in inside if len(rows[int(at)]) > 1):  # of one block: one text
            whole[:, at] = read[:, rows[at] - start].astype(np.float32).mean(axis=1)
    assert whole is not None  # there is a span at least
    return whole


@dataclass(frozen=True)
class StaticViews:
    """What is known of occurrences without any layer, from the table of input embeddings alone."""

    forms: Ints
    """(N,): occurrences that are spelt alike have the same number."""
    vectors: NDArray[np.float32]
    """(forms, width): the mean of a form's rows in the table."""
    around: NDArray[np.float32]
    """(N, width): the mean over the other words of the text; 0 where there is none."""


def static_views(encoder: Encoder, corpus: Corpus, spans: Sequence[Span]) -> StaticViews:
    """The written forms of spans, and the words around them as a bag."""
    fillers = word_fillers(encoder, corpus)
    sums = [fillers.vectors[words].sum(axis=0) for words in fillers.words]
    numbers: dict[tuple[int, ...], int] = {}
    forms, vectors, around = [], [], []
    for example, first, last in spans:
        places, words = fillers.places[example], fillers.words[example]
        own = words[(places >= first) & (places < last)]
        key = tuple(int(word) for word in own)
        if key not in numbers:
            numbers[key] = len(numbers)
            vectors.append(fillers.vectors[own].mean(axis=0))
        forms.append(numbers[key])
        rest = sums[example] - fillers.vectors[own].sum(axis=0)
        around.append(rest / max(len(words) - len(own), 1))
    return StaticViews(
        np.array(forms, np.int64), np.array(vectors, np.float32), np.array(around, np.float32)
    )


def held_out_units(corpus: Corpus, occurrences: Sequence[Occurrence]) -> tuple[Ints, str]:
    """What is held out together, by number for each example, and what it is called.

    Documents, where groups are such: ten or more, and some lemma in several of them. Otherwise
    texts; those that read the same, whatever their case and punctuation, are one.
    """
    groups = [example.annotations.get("group") for example in corpus]
    of_lemma: dict[str, set[object]] = {}
    for one in occurrences:
        of_lemma.setdefault(one.lemma, set()).add(groups[one.span[0]])
    several = sum(len(found) > 1 for found in of_lemma.values())
    documents = None not in groups and len(set(groups)) >= _FEWEST_GROUPS and several > 0
    keys = [str(group) for group in groups] if documents else [example_key(e) for e in corpus]
    numbers: dict[str, int] = {}
    found = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)
    return found, "documents" if documents else "texts"


def read_before(corpus: Corpus, occurrences: Sequence[Occurrence], units: Ints) -> Bools:
    """Of each example whether its text reads as an earlier one that is held out apart from it.

    Such a text would be its own neighbour ("He shook his head." in two documents). Only texts with
    annotated words count.
    """
    found = np.zeros(len(corpus), bool)
    first: dict[str, int] = {}
    for number in sorted({one.span[0] for one in occurrences}):
        unit = int(units[number])
        found[number] = first.setdefault(example_key(corpus[number]), unit) != unit
    return found


def shown_text(corpus: Corpus, span: Span) -> Shown:
    """The text near some words of the first text, and the characters of these."""
    example, first, last = span
    words = known_words(corpus[example])[0]
    return shortened(corpus[example].text, words[first][0], words[last - 1][1])
