"""What a question to a probe is: a task, one or two spans of words, and the right answers."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

from bertology.data.corpus import Example

Labels = Sequence[str | None]
Span = tuple[int, int]
"""The first word and the one after the last."""
Unit = tuple[Span, ...]
"""One span, or two; the first is the one that a label is given to."""
COUNTED: Mapping[str, str] = {
    "labels": "answers that trained",
    "classes": "different answers among them",
    "unseen": "answers that never trained, counted as wrong",
    "once": "answers that trained once only",
    "cut": "questions about words without a state",
    "partly": "questions about spans with some words without a state",
    "doubled": "questions with two answers, of which the first counts",
    "constant": "properties with one answer, left out",
}
"""What is counted of the questions of a task; all but the first two should be few."""


@dataclass(frozen=True)
class Labelled:
    """Questions of one task about one example: one or two spans each, and the right answer.

    A task may ask several things of the same spans (has the argument this property, that one?):
    `about` then says which one each question is.
    """

    units: Sequence[Unit]
    labels: Sequence[str]
    about: Sequence[str] | None = None


@dataclass(frozen=True)
class ProbedTask:
    """A task: what it is called, what the corpus must have, and the questions of an example."""

    name: str
    title: str
    fields: frozenset[str]
    ask: Callable[[Example, int], Labelled]
    """With a seed, where wrong candidates are drawn."""
    pairs: bool = False


def word(place: int) -> Span:
    """A span of one word."""
    return place, place + 1


def sentence(example: Example) -> Span:
    """All words of an example."""
    return 0, len(example.get("words"))


def words_labelled(labels: Labels) -> Labelled:
    """A question for each word that has a label."""
    found = [(i, label) for i, label in enumerate(labels) if label]
    return Labelled([(word(i),) for i, _ in found], [label for _, label in found])


def drawn_by(seed: int, example: Example) -> random.Random:
    """What draws wrong candidates: the same for the same seed and example."""
    return random.Random(crc32(f"{seed}/{example.id}/{example.text}".encode()))
