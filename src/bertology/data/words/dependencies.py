"""A word that depends on one noun and might be taken to depend on another.

A verb agrees with its subject, not with the nouns in between; a reflexive pronoun refers to the
subject of its own clause, not to another person. What corpora know of it has several forms, which
are read here as one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bertology.data.corpus import Example, Field
from bertology.data.words.classes import SUBJECT
from bertology.errors import DataError

REFLEXIVES = frozenset(
    "myself yourself himself herself itself oneself ourselves yourselves themselves".split()
)
_NOUNS = frozenset({"NOUN", "PROPN"})
Span = tuple[int, int]


@dataclass(frozen=True)
class Dependency:
    """Positions are those of words, from 0."""

    word: int
    """The verb, or the reflexive pronoun."""
    target: int
    """The head word of its subject, or of its antecedent."""
    distractors: tuple[int, ...]
    """Head words of other noun phrases."""
    reflexive: bool
    kind: str
    """What tells sentences of a corpus apart: attractors in between, the construction."""

    @property
    def nearest(self) -> int:
        """The candidate that is nearest to the word; the one before it of two as near."""
        return min((self.target, *self.distractors), key=lambda p: (abs(p - self.word), p))


def dependency_of(example: Example) -> Dependency | None:
    """What is known of the example's critical word; None where target or word are not known.

    The word is `critical` (where the two sentences of a minimal pair part) or `verb`. The target is
    the antecedent in COREFERENCE for a reflexive, else SUBJECT, else the nearest word before that a
    tagger calls a subject. Distractors are `distractors` where a reader knows them, else the heads
    of other mentions, else other nouns.
    """
    known = example.annotations
    words = known.get(Field.WORDS)
    word = known.get("critical", known.get(Field.VERB))
    if words is None or word is None:
        return None
    reflexive = str(_at(example, words, word)).lower() in REFLEXIVES
    target = _antecedent(known, word) if reflexive else None
    target = known.get(Field.SUBJECT) if target is None else target
    target = _tagged_subject(known, word) if target is None else target
    if target is None or target == word:
        return None
    others = {p for p in _others(known) if p not in (word, target)}
    for position in (target, *others):
        _at(example, words, position)
    return Dependency(int(word), int(target), tuple(sorted(others)), reflexive, _kind(known))


def _at(example: Example, words: Sequence[str], position: object) -> str:
    if not isinstance(position, int) or not 0 <= position < len(words):
        raise DataError(
            f"Example {example.id!r} has {len(words)} words; {position!r} is no position of one."
        )
    return words[position]


def _antecedent(known: Mapping[str, Any], word: int) -> int | None:
    """The head of another mention in the cluster of the pronoun, the nearest one before it."""
    for cluster in known.get(Field.COREFERENCE, ()):
        spans = [tuple(span) for span in cluster]
        if (word, word + 1) in spans:
            before = [s for s in spans if s[1] <= word]
            if before:
                return _head(known, max(before, key=lambda s: s[1]))
    return None


def _head(known: Mapping[str, Any], span: Span) -> int | None:
    """The word of a mention whose head lies outside; the last word where heads are not known."""
    heads = known.get(Field.HEADS)
    if heads is None:
        return span[1] - 1
    found = [i for i in range(*span) if not span[0] <= heads[i] < span[1]]
    return found[0] if found else None


def _tagged_subject(known: Mapping[str, Any], word: int) -> int | None:
    tags = known.get(Field.TAGS, ())
    return next((i for i in range(min(word, len(tags)) - 1, -1, -1) if tags[i] == SUBJECT), None)


def _others(known: Mapping[str, Any]) -> list[int]:
    if "distractors" in known:
        return list(known["distractors"])
    if Field.COREFERENCE in known and Field.POS in known:
        tags = known[Field.POS]
        heads = [_head(known, (s[0], s[1])) for c in known[Field.COREFERENCE] for s in c]
        return [h for h in heads if h is not None and tags[h] in _NOUNS]
    return [i for i, tag in enumerate(known.get(Field.POS, ())) if tag in _NOUNS]


def _kind(known: Mapping[str, Any]) -> str:
    if "attractors" in known:
        return f"{known['attractors']} attractors"
    return str(known.get("kind", known.get(Field.GROUP, "all")))


def wrong_span(good: str, bad: str, span: Span) -> Span | None:
    """Where the wrong form stands in the bad sentence of a pair; None if more than it differs."""
    start, end = span
    stop = len(bad) - (len(good) - end)
    same = bad[:start].lower() == good[:start].lower() and bad[stop:] == good[end:]
    return (start, stop) if same and start < stop and bad != good else None
