"""Chunks of a tree, as CoNLL-2000 has them: phrases without phrases inside.

A noun's chunk begins with its determiner, numeral, adjectives or possessive pronoun and ends with
the noun; the `'s` of a possessor begins the chunk of what is owned. A verb's begins with its
auxiliaries, `to` and the adverbs among them. Other words (prepositions, conjunctions, adverbs,
adjectives) are chunks of their own; punctuation and conjunctions between equals are outside.
"""

from __future__ import annotations

from collections.abc import Sequence

_KINDS = {
    **dict.fromkeys(("NOUN", "PROPN", "PRON", "NUM", "DET"), "NP"), "VERB": "VP", "AUX": "VP",
    "ADP": "PP", "SCONJ": "SBAR", "ADV": "ADVP", "ADJ": "ADJP",
}  # fmt: skip
_BEFORE = {
    "NP": frozenset({"det", "amod", "nummod", "compound"}),
    "VP": frozenset({"aux", "aux:pass", "advmod", "mark"}),
}


def chunks_of(
    pos: Sequence[str], heads: Sequence[int], relations: Sequence[str]
) -> list[list[int | str]]:
    """[first word, last + 1, kind] of the words of a sentence, from left to right."""
    into = [_joined(at, pos, heads, relations) for at in range(len(pos))]
    last = []  # of the chunk that a word is in, if all words between are in it too
    for at in range(len(pos)):
        end = at
        while into[end] != end:
            end = into[end]
        last.append(end)
    found: list[list[int | str]] = []
    at = 0
    while at < len(pos):
        end = last[at] if all(last[i] == last[at] for i in range(at, last[at])) else at
        if (kind := _KINDS.get(pos[end])) is not None:
            found.append([at, end + 1, kind])
        at = end + 1
    return found


def _joined(at: int, pos: Sequence[str], heads: Sequence[int], relations: Sequence[str]) -> int:
    """The later word that a word shares its chunk with, or itself."""
    head, relation = heads[at], relations[at]
    if pos[at] == "PART" and relation == "case" and head >= 0:
        return max(heads[head], at)  # 's goes with what is owned
    if head <= at or pos[at] == "SCONJ":
        return at
    kind = _KINDS.get(pos[head])
    if kind == "NP" and relation == "nmod:poss" and pos[at] == "PRON":
        return head
    if relation in _BEFORE.get(kind or "", ()):
        return head
    # "will not be friendly": auxiliaries of what is no verb go with the last of them.
    group = [i for i in range(at + 1, head) if heads[i] == head and pos[i] == "AUX"]
    return group[-1] if group and relation in _BEFORE["VP"] else at
