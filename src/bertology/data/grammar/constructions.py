"""Sentences that are more than one clause of one event: clefts and extraposition."""

from __future__ import annotations

from bertology.data.grammar.clauses import clause, mark
from bertology.data.grammar.lexicon import Verb
from bertology.data.grammar.meaning import Event
from bertology.data.grammar.phrases import noun_phrase
from bertology.data.grammar.tree import Clause, Node


def cleft(event: Event, focus: str) -> Clause:
    """ "It was X who …" with the subject or the object of the event in focus."""
    entity = event.subject if focus == "subject" else event.object
    if entity is None:
        raise ValueError("an event without an object cannot have it in focus")
    root = noun_phrase(entity, "root", "accusative")
    first = root.left[0] if root.left else root
    word = "who" if focus == "subject" and entity.noun.human else "that"
    relative = Node(word, word, "PRON", "nsubj")
    if focus == "subject":
        inner = clause(event, rel="acl:relcl", subject=relative)
    else:
        inner = clause(event.but(object=None), rel="acl:relcl")
        relative.rel = "obj"
        inner.root.left.insert(0, relative)
    last = root.right[-1] if root.right else root
    it = Node("it", "it", "PRON", "nsubj")
    copula = Node("was", "be", "AUX", "cop")
    root.left[:0] = [it, copula]
    root.right.append(inner.root)
    roles = {"attribute": (first, root if last is root else _end(last))}
    return Clause(root, it, copula, None, dict(roles), "Identity", "past")


def _end(node: Node) -> Node:
    while node.right:
        node = node.right[-1]
    return node


def extraposed(event: Event, verb: Verb, *, initial: bool = False) -> Clause:
    """ "It surprised the teacher that …", or with `initial` "That … surprised the teacher"."""
    if event.recipient is None:
        raise ValueError("somebody must be surprised")
    inner = clause(event.but(recipient=None), rel="csubj").root
    inner.left.insert(0, mark("that"))
    head = Node(verb.past, verb.lemma, "VERB", "root")
    who = noun_phrase(event.recipient, "obj", "accusative")
    head.right = [who]
    it = Node("it", "it", "PRON", "expl")
    head.left = [inner if initial else it]
    if not initial:
        head.right.append(inner)
    roles = {"stimulus": inner, "experiencer": who}
    return Clause(head, inner if initial else it, head, who, dict(roles), verb.frame, "past")
