"""Mentions: spans of words that refer to something, with the word that heads them.

They are read from COREFERENCE, POS and, where there is one, the tree. Without a tree, the head is
the last noun, pronoun or number before what follows the noun: a preposition, a comma, a
conjunction, a verb or a relative word ("the *house* on the hill", "the *bishop* of Mainz, who");
where there is none of these kinds, the last word. A name's head is thus its last word ("Jane
*Austen*"); trees of Universal Dependencies have its first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from bertology.data.corpus import Example, Field

_HEADS = ("NOUN", "PROPN", "PRON", "NUM", "SYM")
_AFTER = ("ADP", "PUNCT", "CCONJ", "SCONJ", "VERB", "AUX")
_RELATIVE = frozenset({"who", "whom", "whose", "which", "that"})


class MentionKind(StrEnum):
    """What a mention is headed by."""

    PRONOUN = "pronoun"
    PROPER = "proper"
    NOMINAL = "nominal"


@dataclass(frozen=True, slots=True)
class Mention:
    """From the word `first` to the one before `end`; `cluster` is the same of all that corefer."""

    first: int
    end: int
    head: int
    cluster: int
    kind: MentionKind

    def overlaps(self, other: Mention) -> bool:
        """Whether they share a word: nothing refers to a part of itself."""
        return self.first < other.end and other.first < self.end


def mentions_of(example: Example) -> list[Mention]:
    """All mentions of an example, in the order of their heads."""
    tags, heads = example.get(Field.POS), example.annotations.get(Field.HEADS)
    words = example.get(Field.WORDS)
    found = []
    for number, cluster in enumerate(example.get(Field.COREFERENCE) or ()):
        for first, end in cluster:
            head = head_word(first, end, words=words, tags=tags, heads=heads)
            found.append(Mention(first, end, head, number, _kind(tags[head])))
    return sorted(found, key=lambda m: (m.head, m.first, m.end))


def head_word(
    first: int,
    end: int,
    *,
    words: Sequence[str],
    tags: Sequence[str],
    heads: Sequence[int] | None = None,
) -> int:
    """The word that heads a span: the one that hangs on a word outside, or the rule's."""
    if heads is not None:
        outside = [i for i in range(first, end) if not first <= heads[i] < end]
        named = [i for i in outside if tags[i] in _HEADS]
        if outside:
            return (named or outside)[0]
    named = []
    for i in range(first, end):
        follows = tags[i] in _AFTER or words[i].lower() in _RELATIVE
        if named and follows:
            break
        if tags[i] in _HEADS:
            named.append(i)
    return named[-1] if named else end - 1


def _kind(tag: str) -> MentionKind:
    if tag in ("PRON", "DET"):  # "this" alone is a determiner to some taggers
        return MentionKind.PRONOUN
    return MentionKind.PROPER if tag == "PROPN" else MentionKind.NOMINAL
