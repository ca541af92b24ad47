"""Noun phrases, pronouns, prepositional phrases and times as trees."""

from __future__ import annotations

from dataclasses import dataclass

from bertology.data.grammar.lexicon import article
from bertology.data.grammar.meaning import Adjunct, Entity
from bertology.data.grammar.tree import Node

# nominative, accusative, possessive, reflexive
_PRONOUNS = {
    "1sg": ("I", "me", "my", "myself"),
    "1pl": ("we", "us", "our", "ourselves"),
    "2": ("you", "you", "your", "yourself"),
    "m": ("he", "him", "his", "himself"),
    "f": ("she", "her", "her", "herself"),
    "n": ("it", "it", "its", "itself"),
    "pl": ("they", "them", "their", "themselves"),
}
_CASES = {"nominative": 0, "accusative": 1, "possessive": 2, "reflexive": 3}
_NUMERALS = frozenset({"two", "three", "four", "five"})
_QUANTIFIER_ADJECTIVES = frozenset({"many", "several", "few"})


def _referent(entity: Entity) -> Entity:
    while entity.refers_to is not None:
        entity = entity.refers_to
    return entity


def pronoun(entity: Entity, case: str, rel: str) -> Node:
    """The personal, possessive or reflexive pronoun for an entity."""
    many = entity.plural or bool(entity.partners)
    if entity.person == 1:
        key = "1pl" if many else "1sg"
    elif entity.person == 2:
        key = "2"
    else:
        key = "pl" if many else entity.gender
    forms = _PRONOUNS[key]
    lemma = forms[2] if case == "possessive" else forms[0]
    return Node(forms[_CASES[case]], lemma, "PRON", rel, _referent(entity))


def adverb(word: str, rel: str = "advmod") -> Node:
    """An adverb as a dependent."""
    return Node(word, word, "ADV", rel)


def _determiner(word: str, following: str) -> Node:
    if word == "a":
        return Node(article(following), "a", "DET", "det")
    if word in _NUMERALS:
        return Node(word, word, "NUM", "nummod")
    if word in _QUANTIFIER_ADJECTIVES:
        return Node(word, word, "ADJ", "amod")
    lemma = {"these": "this", "those": "that"}.get(word, word)
    return Node(word, lemma, "DET", "det")


def _possessor(entity: Entity, owner: Entity) -> Node:
    if entity.owner_pronoun:
        return pronoun(owner, "possessive", "nmod:poss")
    node = noun_phrase(owner, "nmod:poss")
    plural_s = owner.plural and node.form.endswith("s")
    node.right.append(Node("'" if plural_s else "'s", "'s", "PART", "case"))
    return node


def noun_phrase(entity: Entity, rel: str, case: str = "nominative") -> Node:
    """The tree of an entity's mention: pronoun, name, or noun with all that belongs to it."""
    if entity.pronoun:
        return pronoun(entity, case, rel)
    noun = entity.noun
    form = noun.plural if entity.plural else noun.lemma
    node = Node(form, noun.lemma, "PROPN" if noun.proper else "NOUN", rel, _referent(entity))
    left = node.left
    if entity.owner is not None:
        left.append(_possessor(entity, entity.owner))
    elif entity.determiner and not noun.proper:
        following = entity.adjectives[0] if entity.adjectives else form
        left.append(_determiner(entity.determiner, following))
    for adjective in entity.adjectives:
        left.append(Node(adjective, adjective, "ADJ", "amod"))
    for modifier in entity.modifiers:
        node.right.append(modifier.node())
    for partner in entity.partners:
        other = noun_phrase(partner, "conj")
        other.left.insert(0, Node(entity.conjunction, entity.conjunction, "CCONJ", "cc"))
        node.right.append(other)
    return node


def adjunct_phrase(place: Adjunct, rel: str = "obl") -> Node:
    """A preposition with its noun phrase."""
    node = noun_phrase(place.entity, rel, "accusative")
    node.left.insert(0, Node(place.preposition, place.preposition, "ADP", "case"))
    return node


@dataclass(frozen=True, slots=True)
class Prepositional:
    """A prepositional phrase that modifies a noun."""

    place: Adjunct

    def node(self) -> Node:
        """The tree, hung on a noun."""
        return adjunct_phrase(self.place, "nmod")


_TIME_LEMMAS = {"Sundays": "Sunday", "days": "day", "weeks": "week"}
_ADJECTIVAL = frozenset({"last", "next"})


def _time_word(word: str) -> Node:
    if word in ("the", "this", "every"):
        return Node(word, word, "DET", "det")
    if word in _NUMERALS:
        return Node(word, word, "NUM", "nummod")
    return Node(word, word, "ADJ" if word in _ADJECTIVAL else "ADV", "amod")


def time_phrase(entry: str) -> Node:
    """The tree of a time from the table: `on:Monday`, `bare:last_week`, `ago:two_days` …"""
    kind, _, rest = entry.partition(":")
    *before, head = rest.split("_")
    if kind == "adv":
        node = adverb(head)
        node.left = [adverb(word) for word in before]
        return node
    pos = "PROPN" if head[0].isupper() else "NOUN"
    node = Node(head, _TIME_LEMMAS.get(head, head), pos, "obl")
    node.left = [_time_word(word) for word in before]
    if kind == "ago":
        node.rel = "obl:npmod"
        ago = adverb("ago")
        ago.left = [node]
        return ago
    if kind == "bare":
        node.rel = "obl:tmod"
    else:
        node.left.insert(0, Node(kind, kind, "ADP", "case"))
    return node
