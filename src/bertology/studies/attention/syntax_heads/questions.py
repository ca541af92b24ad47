"""Which relations a study of links looks at: those that were named, or all dependencies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bertology.data.words.links import PLAIN, UNIVERSAL
from bertology.studies.attention.syntax_heads.link_counts import LinkCounts

ALL, PREP, PUNCTUATION = "all", "prep", "punct"
FEWEST = 10
"""Sentences with a relation, for it to be looked at when all are."""


@dataclass(frozen=True)
class Question:
    """A relation, the names of the links that it is made of, and the names of its directions."""

    relation: str
    names: tuple[str, ...]

    @property
    def of_trees(self) -> bool:
        """Whether links lead from the head of a word to the word."""
        base = self.relation.removeprefix("dependency:").partition(":")[0]
        universal = base in UNIVERSAL or base in (ALL, PREP)
        return universal or self.relation.startswith("dependency:")

    @property
    def directions(self) -> tuple[str, str]:
        """From the source to the target, and back."""
        return ("to-dependent", "to-head") if self.of_trees else ("forward", "backward")


def questions_of(counts: LinkCounts, asked: Sequence[str]) -> list[Question]:
    """The relations that were asked for; or every dependency that is in ten sentences or more.

    Of these: a relation with its subtypes, each subtype, and those without a subtype (`:plain`).
    """
    if asked:
        return [Question(name, (name,)) for name in asked]
    labels = [name for name in counts.names if name != PREP]
    by_base: dict[str, list[str]] = {}
    for label in labels:
        by_base.setdefault(label.partition(":")[0], []).append(label)
    found = []
    for base, of_base in sorted(by_base.items()):
        known = base if base in UNIVERSAL else f"dependency:{base}"
        found.append(Question(known, tuple(of_base)))
        if len(of_base) > 1:
            found += [
                Question(f"{known}:{label.partition(':')[2] or PLAIN}", (label,))
                for label in of_base
            ]
    if PREP in counts.names:
        found.append(Question(PREP, (PREP,)))
    every = tuple(x for x in labels if x.partition(":")[0] != PUNCTUATION)
    return [
        Question(ALL, every),
        *(q for q in found if counts.sentences(q.names) >= FEWEST),
    ]


def quantity_of(relation: str) -> str:
    """A relation as part of a quantity's name."""
    return "".join(c if c.isalnum() else "_" for c in relation)
