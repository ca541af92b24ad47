"""Drawing participants at random: who and what a sentence is about, and how they are mentioned."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

from bertology.data.grammar.lexicon import LEXICON, Noun
from bertology.data.grammar.meaning import Adjunct, Entity, Modifier
from bertology.data.grammar.nouns import UNIQUE
from bertology.data.grammar.phrases import Prepositional

T = TypeVar("T")

_SINGULAR = ("the",) * 28 + ("a",) * 10 + ("this", "every")
_PLURAL = ("the",) * 18 + ("some", "some", "some", "two", "three", "several", "many", "these")
_MASS = ("the", "the", "some", "")
_NEAR = LEXICON.pool("=river =lake =church =station =school =park =forest =harbor =market =field")
_BEHIND = LEXICON.pool("=house =barn =church =school =hotel =wall =fence")
_SURFACES = LEXICON.pool("=table =desk =shelf =chair =bench")
_HOLDERS = LEXICON.pool("=box =drawer =basket =bag =cupboard =suitcase")
_SCENES = LEXICON.pool("land building animal =king =queen =mayor")
_TOPICS = LEXICON.pool("animal land =king =queen =sailor =prince =castle =wedding =trial =soldier")
_ORIGINS = LEXICON.pool("=village =city =town =island =valley =farm")
_WORN = LEXICON.pool("=hat =coat =scarf =umbrella =suitcase =camera =jacket")
_ABOUT = frozenset(
    {"book", "report", "novel", "poem", "article", "story", "essay", "speech", "lecture"}
)
_OF_FRUIT = frozenset({"basket", "box", "bag", "bucket", "bowl"})
_OF_DRINK = frozenset({"cup", "bottle"})
_FIXED = frozenset({"structure", "opening", "plant", "building"})
_LOOSE = frozenset({"valuable", "print", "toy", "tool", "writing", "fruit", "container"})


class EntityDraw:
    """Random entities. Everything is drawn from one generator, so a seed settles all of it."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.random = rng.random

    def pick(self, options: Sequence[T]) -> T:
        """One of the options, each as likely as the others."""
        return options[int(self.random() * len(options))]

    def chance(self, probability: float) -> bool:
        """Whether something that happens this often happens now."""
        return self.random() < probability

    def gender(self, noun: Noun) -> str:
        """The pronoun a noun goes with; drawn where the word leaves it open."""
        return noun.gender or ("m" if self.random() < 0.5 else "f")

    def name(self) -> Entity:
        """Somebody with a name."""
        noun = self.pick(LEXICON.names)
        return Entity(noun, gender=noun.gender)

    def plain(self, noun: Noun, *, plural: bool = False, adjective: float = 0.0) -> Entity:
        """A definite noun phrase, with an adjective now and then."""
        adjectives = (self.pick(noun.adjectives),) if self.chance(adjective) else ()
        many = plural and not noun.mass and noun.lemma not in UNIQUE
        return Entity(noun, many, "the", adjectives, self.gender(noun))

    def noun(
        self, noun: Noun, *, modified: float = 0.12, adjective: float = 0.3, single: bool = False
    ) -> Entity:
        """A noun phrase with a determiner that suits it, perhaps adjective and modifier."""
        if noun.lemma in UNIQUE:
            return self.plain(noun, adjective=adjective)
        plural = not noun.mass and not single and self.random() < 0.3
        determiners = _MASS if noun.mass else _PLURAL if plural else _SINGULAR
        entity = Entity(noun, plural, self.pick(determiners), (), self.gender(noun))
        if self.random() < adjective:
            entity.adjectives = (self.pick(noun.adjectives),)
        if self.random() < modified:
            modifier = self.modifier(noun, plural=plural)
            if modifier is not None:
                entity.modifiers = (modifier,)
        return entity

    def modifier(self, noun: Noun, *, plural: bool = False) -> Modifier | None:
        """A prepositional phrase that says which one, or of what."""
        lemma, sort = noun.lemma, noun.sort
        if sort == "person":
            if plural or self.chance(0.6):
                return self._under("from", _ORIGINS)
            worn = self.pick(_WORN)
            return Prepositional(Adjunct("with", self.plain(worn, adjective=0.7)))
        if lemma in _ABOUT:
            return self._under("about", _TOPICS, article=True)
        if sort == "picture" or lemma == "photograph":
            return self._under("of", _SCENES, article=True)
        if lemma in _OF_FRUIT:
            return self._contents("fruit")
        if lemma in _OF_DRINK:
            return self._contents("drink")
        if sort in _FIXED and lemma != "drawer":
            return (
                self._under("near", _NEAR) if self.chance(0.6) else self._under("behind", _BEHIND)
            )
        if sort in _LOOSE:
            return self._under("on", _SURFACES) if self.chance(0.6) else self._under("in", _HOLDERS)
        return None

    def _under(self, word: str, pool: Sequence[Noun], *, article: bool = False) -> Prepositional:
        entity = self.plain(self.pick(pool), adjective=0.2)
        if article and self.chance(0.4):
            entity.determiner = "a"
        return Prepositional(Adjunct(word, entity, "attribute"))

    def _contents(self, sort: str) -> Prepositional:
        noun = self.pick(LEXICON.sorts[sort])
        return Prepositional(Adjunct("of", Entity(noun, not noun.mass, ""), "attribute"))

    def kin(self, owner: Entity | None = None) -> Entity:
        """A relative or friend: of the given owner by pronoun, of somebody by name, or mine."""
        noun = self.pick(LEXICON.sorts["kin"])
        entity = Entity(noun, False, "", (), self.gender(noun))
        if owner is not None:
            entity.owner, entity.owner_pronoun = owner, True
        elif self.chance(0.5):
            entity.owner = self.name()
        else:
            entity.owner = Entity(noun, self.chance(0.3), "", person=1, pronoun=True)
            entity.owner_pronoun = True
        return entity

    def someone(self, noun: Noun | None = None, *, single: bool = False) -> Entity:
        """A person: by name, by kinship, or by what they do."""
        r = self.random()
        if r < 0.24:
            return self.name()
        if r < 0.31:
            return self.kin()
        return self.noun(noun or self.pick(LEXICON.sorts["person"]), single=single)

    def subject(self, pool: Sequence[Noun]) -> Entity:
        """A participant that a verb can have as its subject; also pronouns and coordinations."""
        noun = self.pick(pool)
        if noun.sort != "person":
            return self.noun(noun)
        r = self.random()
        if r < 0.05:
            return self.speaker()
        entity = self.someone(noun)
        if r < 0.1:
            return self.joined(entity)
        if r < 0.12 and entity.noun.sort == "person" and entity.noun.lemma not in UNIQUE:
            entity.determiner, entity.modifiers = "no", ()
        return entity

    def speaker(self) -> Entity:
        """I, we, you, or somebody already spoken of."""
        noun = LEXICON.sorts["person"][0]
        person = self.pick((1, 1, 2, 3, 3))
        plural = person != 2 and self.chance(0.35)
        return Entity(noun, plural, "", (), self.pick(("m", "f")), person, pronoun=True)

    def joined(self, entity: Entity) -> Entity:
        """Two people together."""
        if entity.noun.proper:
            other = self.name()
            while other.noun is entity.noun:
                other = self.name()
        else:
            entity.modifiers = ()
            other = self.plain(self.pick(LEXICON.sorts["person"]))
            while other.noun is entity.noun:
                other = self.plain(self.pick(LEXICON.sorts["person"]))
            entity.determiner = entity.determiner if entity.owner else "the"
        entity.partners = (other,)
        return entity

    def place(self, pool: Sequence[Noun]) -> Adjunct:
        """Where something happens."""
        noun = self.pick(pool)
        return Adjunct(LEXICON.locative[noun.lemma], self.plain(noun, adjective=0.2))
