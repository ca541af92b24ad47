"""Drawing events at random: what happens, when, how, and whether it does at all."""

from __future__ import annotations

from collections.abc import Sequence

from bertology.data.grammar.clauses import Relative
from bertology.data.grammar.entities import EntityDraw
from bertology.data.grammar.lexicon import LEXICON, Noun, Verb
from bertology.data.grammar.meaning import Adjunct, Entity, Event
from bertology.data.grammar.modifiers import ABSOLUTE

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
