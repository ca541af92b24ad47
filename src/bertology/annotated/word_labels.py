"""What probes are asked of spans of words and of pairs of spans, read off a corpus's annotation."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

from bertology.data.corpus import Example

__all__ = ["COUNTED", "PROBED", "Labelled", "ProbedTask", "Span", "Unit", "sentence", "word"]

Labels = Sequence[str | None]
Span = tuple[int, int]
"""The first word and the one after the last."""
Unit = tuple[Span, ...]
"""One span, or two; the first is the one that a label is given to."""
COUNTED: Mapping[str, str] = {
    "labels": "answers that trained",
    "classes": "different answers among them",
    "unseen": "answers that never trained (they count as wrong)",
    "once": "answers that trained once only",
    "cut": "questions about words without a state",
    "partly": "questions about spans with some words without a state",
    "doubled": "questions with two answers (the first counts)",
    "constant": "properties with one answer",
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


def _words(labels: Labels) -> Labelled:
    found = [(i, label) for i, label in enumerate(labels) if label]
    return Labelled([(word(i),) for i, _ in found], [label for _, label in found])


def _field(name: str) -> Callable[[Example, int], Labelled]:
    return lambda example, seed: _words([_plain(label) for label in example.get(name)])


def _plain(label: object) -> str:
    """Subtypes of relations are left out, as the tags of one language have them."""
    return str(label).partition(":")[0]


def _ancestor(steps: int) -> Callable[[Example, int], Labelled]:
    """The relation of the word that lies so many steps up the tree; none above the root."""

    def ask(example: Example, seed: int) -> Labelled:
        heads, relations = example.get("heads"), example.get("relations")
        labels: list[str | None] = []
        for place in range(len(heads)):
            at = place
            for _ in range(steps):
                at = heads[at] if at >= 0 else -1
            labels.append(_plain(relations[at]) if at >= 0 else None)
        return _words(labels)

    return ask


def _arcs(example: Example, seed: int) -> Labelled:
    """Each word with its head, and with another word that is not."""
    heads = example.get("heads")
    rng = random.Random(crc32(f"{seed}/{example.id}/{example.text}".encode()))
    units: list[Unit] = []
    labels: list[str] = []
    for place, head in enumerate(heads):
        others = [w for w in range(len(heads)) if w not in (place, head) and heads[w] != place]
        if head >= 0 and others:
            units += [(word(place), word(head)), (word(place), word(rng.choice(others)))]
            labels += ["head", "other"]
    return Labelled(units, labels)


def _arc_relations(example: Example, seed: int) -> Labelled:
    heads, relations = example.get("heads"), example.get("relations")
    found = [(place, head) for place, head in enumerate(heads) if head >= 0]
    return Labelled(
        [(word(place), word(head)) for place, head in found],
        [_plain(relations[place]) for place, _ in found],
    )


_TREE = frozenset({"words", "heads", "relations"})
PROBED: Mapping[str, ProbedTask] = {
    task.name: task
    for task in (
        ProbedTask("pos", "part of speech", frozenset({"words", "pos"}), _field("pos")),
        ProbedTask("tags", "the corpus's own tags", frozenset({"words", "tags"}), _field("tags")),
        ProbedTask("relation", "relation to the head", _TREE, _ancestor(0)),
        ProbedTask("parent", "relation of the parent", _TREE, _ancestor(1)),
        ProbedTask("grandparent", "relation of the grandparent", _TREE, _ancestor(2)),
        ProbedTask("great-grandparent", "relation of the great-grandparent", _TREE, _ancestor(3)),
        ProbedTask("arc", "which of two words is the head", _TREE, _arcs, pairs=True),
        ProbedTask("arc-relation", "relation of a pair", _TREE, _arc_relations, pairs=True),
    )
}
"""All tasks by name; those that a corpus annotates are asked by default."""
