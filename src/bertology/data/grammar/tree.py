"""Dependency trees in word order, and the annotated sentence that a tree spells out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bertology.data.grammar.chunks import chunks_of

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
