"""Drawing events at random: what happens, when, how, and whether it does at all."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

from bertology.data.grammar.clauses import Relative
from bertology.data.grammar.lexicon import ABSOLUTE, LEXICON, UNIQUE, Noun, Verb
from bertology.data.grammar.meaning import Adjunct, Entity, Event, Modifier
from bertology.data.grammar.phrases import Prepositional

# Drawing participants at random: who and what a sentence is about, and how they are mentioned.

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


# (up to this share, tense, aspect); statives and sudden changes are taken without the progressive.
_TENSES = (
    (0.52, "past", "simple"),
    (0.64, "present", "simple"),
    (0.73, "future", "simple"),
    (0.81, "past", "progressive"),
    (0.88, "present", "progressive"),
    (0.96, "present", "perfect"),
    (1.01, "past", "perfect"),
)
_MODALS = ("can", "must", "should", "might")
_UNBOUNDED = frozenset({"some", "many", "several"})
_EARLY = frozenset(
    {
        "finally",
        "gradually",
        "suddenly",
        "accidentally",
        "secretly",
        "truly",
        "clearly",
        "carelessly",
    }
)
_GOALS = LEXICON.pool("town =village =beach =lake =river =harbor =farm =house =castle")


def _unwilled(event: Event) -> bool:
    roles = event.verb.roles
    return bool(roles) and roles[0] != "agent"


class EventDraw(EntityDraw):
    """Random events whose participants suit their verbs."""

    def when(self, event: Event, *, adverbials: bool = True) -> Event:
        """Give an event its tense, aspect and negation, and perhaps a time or a frequency."""
        r = self.random()
        tense, aspect = next((t, a) for share, t, a in _TENSES if r < share)
        if aspect == "progressive" and not event.verb.progressive:
            tense, aspect = "past", "simple"
        stative = "s" in event.verb.flags
        if stative and (tense == "future" or aspect != "simple"):
            tense, aspect = "past", "simple"
        if tense == "present" and aspect == "simple" and not stative and _unwilled(event):
            tense = "past"  # what merely happens to things is told, not done out of habit
        event.tense, event.aspect = tense, aspect
        if self.chance(0.04) and not stative and event.content is None:
            event.modal, event.tense, event.aspect = self.pick(_MODALS), "present", "simple"
        if self.chance(0.12):
            self.negate(event)
        if adverbials and not stative and not event.modal:
            self._time(event)
        return event

    def negate(self, event: Event) -> None:
        """Deny the event, with the determiners that a negated clause asks for."""
        if event.subject.determiner in ("every", "no", "many", "several", "some", "a"):
            if event.subject.determiner == "no":
                return
            event.subject.determiner = "the"
        options: tuple[str, ...] = ("not", "n't", "n't")
        if event.aspect != "progressive" and not event.modal:
            options += ("never",)
        event.negation = self.pick(options)
        event.manner = ""
        for entity in (event.object, event.recipient):
            if entity is not None and entity.determiner in _UNBOUNDED:
                entity.determiner = "any"
            elif entity is not None and entity.determiner == "every":
                entity.determiner = "the"

    def _time(self, event: Event) -> None:
        tense, aspect = event.tense, event.aspect
        if tense == "present" and aspect == "simple":
            if event.negation or event.subject.determiner == "no":
                return
            if self.chance(0.5):
                event.frequency = self.pick(LEXICON.frequency)
                event.manner = ""
            elif self.chance(0.7):
                event.time = self.pick(LEXICON.times["present"])
            return
        if event.negation == "never" or (tense == "past" and aspect == "perfect"):
            return
        if self.chance(0.3):
            key = "now" if (tense, aspect) == ("present", "progressive") else tense
            key = "perfect" if aspect == "perfect" else key
            event.time = self.pick(LEXICON.times[key])
            if self.chance(0.25) and not event.time.startswith("adv"):
                event.front = "time"

    def circumstances(self, event: Event) -> Event:
        """Perhaps a manner and a place."""
        verb = event.verb
        if verb.manner and self.chance(0.25):
            event.manner = self.pick(verb.manner)
            early = event.manner in _EARLY or "s" in verb.flags or event.recipient is not None
            event.manner_first = early or self.chance(0.5)
        if verb.places and event.place is None and self.chance(0.22):
            event.place = self.place(verb.places)
            entity = event.object
            if entity is not None and entity.modifiers:
                entity.modifiers = ()  # two places in one clause are hard to tell apart
        return event

    def other(self, pool: Sequence[Noun], entity: Entity) -> Noun:
        """A noun that does not name the entity again."""
        noun = self.pick(pool)
        while noun is entity.noun:
            noun = self.pick(pool)
        return noun

    def target(self, verb: Verb, subject: Entity) -> Entity:
        """The object of a verb."""
        noun = self.other(verb.objects, subject)
        r = self.random()
        human = subject.noun.human and subject.determiner != "no"
        if noun.sort == "person":
            if r < 0.08 and human:
                return self.kin(subject)
            if r < 0.12:
                return self.speaker_object(subject)
            entity = self.someone(noun, single="1" in verb.flags)
            return self.name() if entity.noun is subject.noun else entity
        entity = self.noun(noun, single="1" in verb.flags)
        if entity.determiner == "every":
            entity.determiner = "the"
        owned = noun.sort in ("clothing", "valuable", "vehicle", "tool", "music", "toy")
        if owned and human and r < 0.3:
            entity.owner, entity.owner_pronoun = subject, True
            entity.modifiers = ()
        return entity

    def speaker_object(self, subject: Entity) -> Entity:
        """A pronoun that cannot be the subject over again."""
        entity = self.speaker()
        while entity.person == subject.person:
            entity = self.speaker()
        return entity

    def transitive(self, verb: Verb | None = None, subject: Entity | None = None) -> Event:
        """Somebody does something to something."""
        verb = verb or self.pick(LEXICON.transitive)
        subject = subject or self.subject(verb.subjects)
        return self.circumstances(Event(verb, subject, self.target(verb, subject)))

    def passive(self) -> Event:
        """A transitive event that reads well in the passive."""
        verb = self.pick(LEXICON.transitive)
        while not verb.passive or "s" in verb.flags:
            verb = self.pick(LEXICON.transitive)
        subject = self.someone() if verb.subjects[0].human else self.noun(self.pick(verb.subjects))
        thing = self.noun(self.other(verb.objects, subject), single="1" in verb.flags)
        for entity in (subject, thing):
            if entity.determiner in ("every", "a", "this"):
                entity.determiner = "the"
        return self.circumstances(Event(verb, subject, thing))

    def intransitive(self, subject: Entity | None = None) -> Event:
        """Somebody or something does something alone; or goes somewhere."""
        if self.chance(0.12):
            return self.going(subject)
        verb = self.pick(LEXICON.intransitive)
        if subject is not None:
            while not any(n.human for n in verb.subjects):
                verb = self.pick(LEXICON.intransitive)
        event = Event(verb, subject or self.subject(verb.subjects))
        return self.circumstances(event)

    def going(self, subject: Entity | None = None) -> Event:
        """Somebody goes to a place."""
        verb = self.pick(LEXICON.motion)
        goal = self.plain(self.pick(_GOALS), adjective=0.2)
        event = Event(
            verb, subject or self.subject(verb.subjects), place=Adjunct("to", goal, "goal")
        )
        return self.circumstances(event)

    def ditransitive(self, subject: Entity | None = None) -> Event:
        """Somebody gives something to somebody."""
        verb = self.pick(LEXICON.ditransitive)
        giver = subject or self.subject(verb.subjects)
        theme = self.noun(self.pick(verb.objects), modified=0.03)
        if theme.determiner in ("this", "these", "every"):
            theme.determiner = "the"
        taker = self.someone(self.other(LEXICON.sorts["person"], giver))
        if taker.noun is giver.noun:
            taker = self.kin()
        if taker.determiner == "every":
            taker.determiner = "the"
        taker.modifiers = ()
        event = Event(verb, giver, theme, taker, double_object=self.chance(0.5))
        return self.circumstances(event)

    def description(self, subject: Entity | None = None) -> Event:
        """Somebody or something is like this, is somebody, or is somewhere."""
        entity = subject or self.subject(self.pick(LEXICON.describable))
        r = self.random()
        human = entity.noun.human and (entity.noun.predicates or entity.noun.proper)
        event = Event(LEXICON.be, entity)
        if entity.determiner == "a":
            entity.determiner = "the"
        trade = entity.noun.proper or entity.noun.sort == "kin" or entity.pronoun
        if human and r < 0.35 and trade and not entity.partners:
            noun = self.other(LEXICON.professions, entity)
            if noun.gender and noun.gender != entity.gender:
                noun = LEXICON.nouns["teacher"]
            many = entity.plural
            adjectives = (self.pick(noun.adjectives),) if self.chance(0.4) else ()
            event.predicate = Entity(noun, many, "" if many else "a", adjectives)
        elif human and r < 0.4:
            event.predicate = self.place(LEXICON.anywhere)
        else:
            pool = entity.noun.predicates or LEXICON.sorts["person"][0].predicates
            event.predicate = self.pick(pool)
            entity.adjectives = ()
            if event.predicate not in ABSOLUTE and self.chance(0.25):
                event.degree = self.pick(("very", "really", "quite", "too"))
        return event

    def action(self, subject: Entity | None = None) -> Event:
        """Any event that a person can bring about."""
        if subject is None:
            subject = self.someone()
        r = self.random()
        if r < 0.6:
            return self.transitive(self.pick(LEXICON.doings), subject)
        return self.intransitive(subject) if r < 0.85 else self.ditransitive(subject)

    def relative(self, entity: Entity) -> Relative:
        """A relative clause that suits the entity."""
        noun = entity.noun
        who = Entity(noun, entity.plural, gender=entity.gender, refers_to=entity)
        if noun.sort == "person":
            if self.chance(0.4):
                verb = self.pick(LEXICON.reversible)
                agent = self.plain(self.other(LEXICON.sorts["person"], who))
                return Relative(Event(verb, agent, who), "object", self.pick(("that", "")))
            event = self.action(who)
            event.time = event.manner = ""
            event.place = event.place if self.chance(0.3) else None
            return Relative(event, "subject", "who")
        verb = self.pick(LEXICON.transitive)
        while noun not in verb.objects or not verb.subjects[0].human:
            verb = self.pick(LEXICON.transitive)
        agent = self.someone()
        agent.modifiers = ()
        return Relative(Event(verb, agent, who), "object", self.pick(("that", "")))
