"""Dependency trees in word order, and the annotated sentence that a tree spells out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

# These are written without a space before them.
_CLITICS = frozenset({".", ",", "?", "n't", "'s", "'"})


class Node:
    """One word with its dependents to the left and right, in word order."""

    __slots__ = ("end", "form", "index", "left", "lemma", "pos", "ref", "rel", "right", "start")

    def __init__(self, form: str, lemma: str, pos: str, rel: str, ref: object = None) -> None:
        self.form, self.lemma, self.pos, self.rel = form, lemma, pos, rel
        self.ref = ref  # what a referring word refers to; shared by corefering mentions
        self.left: list[Node] = []
        self.right: list[Node] = []
        self.index = self.start = self.end = -1


Role = Node | tuple[Node, Node]
"""A phrase: all that hangs on one node, or (where that is too much) from one word to another."""


@dataclass(slots=True)
class Clause:
    """A clause as a tree, with the words that matter to those who study it."""

    root: Node
    subject: Node
    verb: Node
    object: Node | None = None
    roles: dict[str, Role] = field(default_factory=dict)
    frame: str = ""
    tense: str = "past"
    aspect: str = "simple"
    plural: bool = False


def _place(node: Node, order: list[Node]) -> None:
    node.start = len(order)
    for child in node.left:
        _place(child, order)
    node.index = len(order)
    order.append(node)
    for child in node.right:
        _place(child, order)
    node.end = len(order)


def _capital(form: str) -> str:
    return form[0].upper() + form[1:]


def detokenise(words: list[str]) -> str:
    """The text of the words: spaces everywhere but before punctuation and clitics."""
    return "".join(w if w in _CLITICS or i == 0 else " " + w for i, w in enumerate(words))


def spell(root: Node) -> tuple[list[Node], list[str]]:
    """The nodes in word order and their written forms, the first with a capital letter."""
    order: list[Node] = []
    _place(root, order)
    words = [n.form for n in order]
    words[0] = _capital(words[0])
    return order, words


def _span(role: Role) -> tuple[int, int]:
    if isinstance(role, tuple):
        return role[0].index, role[1].index + 1
    return role.start, role.end


def _clusters(order: list[Node]) -> list[list[tuple[int, int]]]:
    """All mentions by what they refer to; many are alone, and might have been referred to."""
    mentions: dict[int, list[tuple[int, int]]] = {}
    for node in order:
        if node.ref is not None:
            first = next(i for i in range(node.start, node.end) if order[i].rel != "case")
            mentions.setdefault(id(node.ref), []).append((first, node.end))
    return list(mentions.values())


_NEGATIONS = frozenset({"not", "never", "no"})


def annotate(clause: Clause) -> tuple[str, dict[str, Any]]:
    """The text of a sentence and everything that is known about it, keyed by Field value."""
    order, words = spell(clause.root)
    heads = [-1] * len(order)
    for node in order:
        at = node.index
        for child in node.left:
            heads[child.index] = at
        for child in node.right:
            heads[child.index] = at
    pos, relations = [n.pos for n in order], [n.rel for n in order]
    return detokenise(words), {
        "words": words,
        "lemmas": [n.lemma for n in order],
        "pos": pos,
        "heads": heads,
        "relations": relations,
        "chunks": chunks_of(pos, heads, relations),
        "subject": clause.subject.index,
        "object": None if clause.object is None else clause.object.index,
        "verb": clause.verb.index,
        "roles": {name: _span(role) for name, role in clause.roles.items()},
        "frame": clause.frame,
        "coreference": _clusters(order),
        "negation": [n.index for n in order if n.lemma in _NEGATIONS],
        "tense": clause.tense,
        "number": "plural" if clause.plural else "singular",
        "aspect": clause.aspect,
    }


# Chunks of a tree, as CoNLL-2000 has them: phrases without phrases inside.
#
# A noun's chunk begins with its determiner, numeral, adjectives or possessive pronoun and ends with
# the noun; the `'s` of a possessor begins the chunk of what is owned. A verb's begins with its
# auxiliaries, `to` and the adverbs among them. Other words (prepositions, conjunctions, adverbs,
# adjectives) are chunks of their own; punctuation and conjunctions between equals are outside.

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
