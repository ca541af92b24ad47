"""What a sentence is about: entities and the events they take part in.

One event may be put into words in several ways (active, passive, cleft …); that is what makes
paraphrases and entailments with gold labels possible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from bertology.data.grammar.lexicon import Noun, Verb
from bertology.data.grammar.tree import Node

T = TypeVar("T", "Entity", "Event")


def _copied(original: T, changes: dict[str, object]) -> T:
    # dataclasses.replace is several times slower, and pairs are copied by the ten thousand.
    copy = object.__new__(type(original))
    for name in original.__slots__:
        setattr(copy, name, getattr(original, name))
    for name, value in changes.items():
        setattr(copy, name, value)
    return copy


class Modifier(Protocol):
    """Something that follows its noun: a prepositional phrase or a relative clause."""

    def node(self) -> Node:
        """A fresh tree of the modifier."""
        ...


@dataclass(slots=True, eq=False)
class Entity:
    """Somebody or something, as it is first mentioned."""

    noun: Noun
    plural: bool = False
    determiner: str = "the"
    adjectives: tuple[str, ...] = ()
    gender: str = "n"
    person: int = 3
    pronoun: bool = False
    owner: Entity | None = None
    owner_pronoun: bool = False
    modifiers: tuple[Modifier, ...] = ()
    partners: tuple[Entity, ...] = ()
    conjunction: str = "and"
    refers_to: Entity | None = None  # a further mention of an entity under another description

    @property
    def agreement(self) -> str:
        """ "1", "sg" or "pl": the form a finite verb takes after it."""
        if self.plural or (self.partners and self.conjunction == "and") or self.person == 2:
            return "pl"
        return "1" if self.person == 1 else "sg"

    def but(self, **changes: object) -> Entity:
        """A copy with other features."""
        return _copied(self, changes)

    def again(self) -> Entity:
        """A later mention by pronoun: same referent, same agreement."""
        many = self.plural or bool(self.partners)
        return Entity(
            self.noun, many, gender=self.gender, person=self.person, pronoun=True, refers_to=self
        )

    def confusable(self, other: Entity | None) -> bool:
        """Whether a pronoun for this one could as well be taken for the other."""
        if other is None:
            return False
        if other.pronoun:
            return other.person == 3 and other.refers_to is not self
        if not other.noun.human or other.agreement != self.agreement:
            return False
        return not (self.noun.gender and other.noun.gender and other.gender != self.gender)


@dataclass(slots=True, eq=False)
class Adjunct:
    """A preposition and what stands under it, in its role for the event."""

    preposition: str
    entity: Entity
    role: str = "location"


@dataclass(slots=True, eq=False)
class Event:
    """A verb with its participants, and when, how and whether it happened."""

    verb: Verb
    subject: Entity
    object: Entity | None = None
    recipient: Entity | None = None
    tense: str = "past"
    aspect: str = "simple"
    modal: str = ""
    negation: str = ""  # "", "not", "n't", "never"
    manner: str = ""
    manner_first: bool = False
    frequency: str = ""
    place: Adjunct | None = None
    time: str = ""
    front: str = ""  # "", "time" or "place": what opens the sentence
    predicate: str | Entity | Adjunct | None = None
    degree: str = ""
    double_object: bool = False
    content: Event | None = None
    infinitive: bool = False  # the content is a to-infinitive, not a that-clause
    bare_that: bool = False

    def but(self, **changes: Any) -> Event:
        """A copy with other features."""
        return _copied(self, changes)

    def mentions(self, *nouns: Noun) -> bool:
        """Whether its object or recipient is described by one of these nouns."""
        others = (self.object, self.recipient)
        return any(e is not None and not e.pronoun and e.noun in nouns for e in others)
