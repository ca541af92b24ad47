"""What is asked of whole sentences, in three groups: surface, syntax, semantics.

The ten tasks of SentEval (Conneau et al. 2018), grouped as Jawahar et al. (2019) group them.
"""

from __future__ import annotations

from collections.abc import Mapping

from bertology.annotated.word_labels import Labelled, ProbedTask, sentence
from bertology.data.corpus import Example

SURFACE = "surface"
GROUPS: Mapping[str, Mapping[str, str]] = {
    SURFACE: {
        "length": "number of words, in classes",
        "word-content": "which of some words is in it",
    },
    "syntax": {
        "depth": "depth of the tree",
        "top-constituents": "phrases at the top of the tree",
        "bigram-shift": "two neighbouring words exchanged",
    },
    "semantics": {
        "tense": "tense of the main verb",
        "subject-number": "number of the subject",
        "object-number": "number of the object",
        "odd-word": "a word that does not fit",
        "coordination": "two clauses exchanged",
    },
}
"""Titles of tasks by name and group; groups in the order of layers that is claimed."""

_FIELDS = frozenset({"words", "sentence_labels"})


def _task(name: str, title: str) -> ProbedTask:
    def ask(example: Example, seed: int) -> Labelled:
        label = example.get("sentence_labels").get(name)
        if label is None:
            return Labelled([], [])
        return Labelled([(sentence(example),)], [str(label)])

    return ProbedTask(name, title, _FIELDS, ask)


SENTENCE_TASKS: Mapping[str, ProbedTask] = {
    name: _task(name, title) for of in GROUPS.values() for name, title in of.items()
}
"""All tasks by name; each is asked of the sentences that have a label for it."""
