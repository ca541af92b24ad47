"""Constructions: ways to make a whole sentence, drawn at random by their share."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from bertology.data.grammar.clauses import clause, close, comma, infinitive, mark
from bertology.data.grammar.events import EventDraw
from bertology.data.grammar.lexicon import LEXICON, Verb
from bertology.data.grammar.meaning import Entity, Event
from bertology.data.grammar.phrases import adjunct_phrase, noun_phrase
from bertology.data.grammar.tree import Clause, Node

_SEQUENCE = ("before", "after", "when")
_EXTRAPOSED = ("surprising", "strange", "obvious", "clear", "possible", "likely", "important")
_TOUGH = ("easy", "difficult", "hard", "fun", "impossible", "dangerous", "useful")


class SentenceDraw(EventDraw):
    """Random sentences."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        shares: tuple[tuple[float, Callable[[], Clause]], ...] = (
            (0.23, self.transitive_clause),
            (0.10, self.intransitive_clause),
            (0.10, self.giving_clause),
            (0.09, self.description_clause),
            (0.09, self.passive_clause),
            (0.07, self.that_clause),
            (0.06, self.control_clause),
            (0.10, self.subordination),
            (0.05, self.coordination),
            (0.02, self.existential),
            (0.02, self.cleft),
            (0.04, self.question),
            (0.01, self.reflexive),
            (0.02, self.extraposition),
        )
        self._constructions: list[tuple[float, Callable[[], Clause]]] = []
        total = 0.0
        for share, construction in shares:
            total += share
            self._constructions.append((total, construction))

    def sentence(self) -> Clause:
        """One sentence of any construction."""
        r = self.random()
        for share, construction in self._constructions:
            if r < share:
                return construction()
        return self.transitive_clause()

    def transitive_clause(self) -> Clause:
        """The old farmer quietly repaired the wooden gate."""
        event = self.when(self.transitive())
        self._relativise(event)
        return close(clause(event))

    def _relativise(self, event: Event) -> None:
        if not self.chance(0.14):
            return
        entity = event.subject if self.chance(0.4) else event.object
        if entity is None or entity.pronoun or entity.owner is not None or entity.partners:
            return
        common = not entity.noun.proper and entity.noun.sort != "kin"
        if common and entity.determiner in ("the", "a", "some"):
            entity.modifiers = (self.relative(entity),)

    def intransitive_clause(self) -> Clause:
        """The children laughed loudly in the garden."""
        return close(clause(self.when(self.intransitive())))

    def giving_clause(self) -> Clause:
        """The teacher gave the student a book."""
        event = self.when(self.ditransitive())
        voice = "active"
        plain = not event.subject.pronoun and event.subject.determiner not in ("no", "every")
        if plain and self.chance(0.2):
            simple = event.aspect in ("simple", "perfect") and event.verb.preposition == "to"
            if simple:
                voice = self.pick(("passive", "recipient"))
        return close(clause(event, voice))

    def description_clause(self) -> Clause:
        """The soup was delicious. Maria is a nurse."""
        event = self.description()
        r = self.random()
        lasting = r < 0.92 or not event.subject.noun.human
        event.tense = "past" if r < 0.5 else "present" if lasting else "future"
        if event.tense == "past" and self.chance(0.15):
            event.time = self.pick(("bare:yesterday", "bare:last_night", "bare:this_morning"))
        if self.chance(0.12):
            self.negate(event)
            event.time = "" if event.negation == "never" else event.time
        return close(clause(event))

    def passive_clause(self) -> Clause:
        """The gate was repaired by the farmer."""
        event = self.passive()
        self.when(event)
        if event.aspect == "progressive" or event.modal:
            event.aspect, event.time = "simple", ""
        if event.tense == "present" and event.aspect == "simple":
            event.tense, event.time, event.frequency = "past", "", ""
        event.manner_first = True
        return close(clause(event, "short" if self.chance(0.3) else "passive"))

    def _thinker(self) -> Entity:
        entity = self.someone()
        entity.modifiers = ()
        if entity.determiner in ("every", "a"):
            entity.determiner = "the"
        return entity

    def that_clause(self) -> Clause:
        """The teacher said that the students had lost the keys."""
        verb = self.pick(LEXICON.complement)
        thinker = self._thinker()
        inner = self._embedded(thinker)
        event = Event(verb, thinker, content=inner)
        event.tense = "past" if self.chance(0.7) or verb.lemma in ("admit", "report") else "present"
        event.bare_that = verb.lemma in ("say", "think", "hope", "know") and self.chance(0.3)
        if event.tense == "past":
            inner.tense = "past"
            inner.aspect = self.pick(("simple", "perfect"))
        if verb.lemma == "hope":
            inner.tense, inner.aspect = (
                ("past", "perfect") if event.tense == "past" else ("future", "simple")
            )
        if self.chance(0.1) and verb.lemma in (
            "know",
            "notice",
            "say",
            "believe",
            "think",
            "realize",
        ):
            event.negation = self.pick(("not", "n't"))
        return close(clause(event))

    def _embedded(self, thinker: Entity) -> Event:
        subject = thinker.again() if self.chance(0.35) else self.someone()
        if subject.noun is thinker.noun and not subject.pronoun:
            subject = thinker.again()
        subject.modifiers = ()
        event = self.action(subject) if self.chance(0.75) else self.description(subject)
        while event.mentions(thinker.noun):
            event = self.action(subject)
        event.manner = ""
        if self.chance(0.08):
            self.negate(event)
        return event

    def control_clause(self) -> Clause:
        """The boy tried to open the window. Maria asked her brother to wait."""
        subject = self.someone()
        if self.chance(0.6):
            event = Event(self.pick(LEXICON.control), subject, infinitive=True)
            event.content = self._doing(subject)
        else:
            verb = self.pick(LEXICON.object_control)
            event = Event(verb, subject, self.target(verb, subject), infinitive=True)
            event.content = self._doing(event.object or subject)
        return close(clause(self.when(event, adverbials=False)))

    def _doing(self, subject: Entity) -> Event:
        event = self.action(subject)
        while event.verb.lemma in _UNWILLED:
            event = self.action(subject)
        event.manner = ""
        return event

    def subordination(self) -> Clause:
        """Maria lost her keys because she was tired. When the train stopped, …"""
        main = self._settled()
        hero = main.subject
        word = self.pick(("because", "although", "while", *_SEQUENCE))
        if word in ("because", "although"):
            other = self._reason(main, word)
        else:
            again = hero.again() if self.chance(0.75) else self._another(main)
            other = self._second(main, again)
            if word == "while":
                while not other.verb.progressive:
                    other = self._second(main, again)
                other.aspect = "progressive"
            elif word == "after" and self.chance(0.4):
                other.aspect = "perfect"
        return self._join(main, word, other)

    def _settled(self) -> Event:
        """A main clause in the simple past whose subject a pronoun can take up without doubt."""
        main = self.action(self._thinker())
        while any(main.subject.confusable(e) for e in (main.object, main.recipient)):
            main = self.action(self._thinker())
        return main

    def _reason(self, main: Event, word: str) -> Event:
        thing = main.object
        about_thing = thing is not None and not thing.noun.human and not thing.noun.mass
        willed = main.verb.lemma not in _UNWILLED
        if thing is not None and about_thing and willed and self.chance(0.3):
            again = thing.again()
            return Event(LEXICON.be, again, predicate=self.pick(thing.noun.predicates))
        again = main.subject.again()
        if main.verb.lemma in _UNWILLED:
            # Nobody loses a key because of being kind.
            word = "mishap" if word == "because" else word
        event = Event(LEXICON.be, again, predicate=self.pick(LEXICON.causes[word]))
        event.degree = self.pick(("", "", "very", "quite"))
        return event

    def _join(self, main: Event, word: str, other: Event) -> Clause:
        whole = clause(main)
        dependent = clause(other, rel="advcl").root
        dependent.left.insert(0, mark(word))
        # A pronoun may come before its antecedent only from inside the dependent clause.
        if self.chance(0.25) and (main.object is None or other.subject.refers_to is main.subject):
            whole.root.left[:0] = [dependent, comma()]
        else:
            whole.root.right.append(dependent)
        return close(whole)

    def coordination(self) -> Clause:
        """The boy opened the gate and the dog ran away; she sat down and read."""
        first = self._settled()
        word = self.pick(("and", "and", "but"))
        if word == "but" and self.chance(0.3):
            self.negate(first)
        whole = clause(first)
        conjunction = Node(word, word, "CCONJ", "cc")
        if self.chance(0.5):
            second = clause(self._second(first, first.subject), rel="conj")
            second.root.left.remove(second.subject)
            second.root.left.insert(0, conjunction)
        else:
            other = first.subject.again() if self.chance(0.4) else self._another(first)
            second = clause(self._second(first, other), rel="conj")
            second.root.left[:0] = [comma(), conjunction]
        whole.root.right.append(second.root)
        return close(whole)

    def _another(self, event: Event) -> Entity:
        """Somebody who is not yet in the sentence."""
        here = [e.noun for e in (event.subject, event.object, event.recipient) if e is not None]
        entity = self._thinker()
        while entity.noun in here:
            entity = self._thinker()
        return entity

    def _second(self, first: Event, subject: Entity) -> Event:
        """What else happened: another action, plainly told."""
        event = self.action(subject)
        here = [e.noun for e in (first.subject, first.object, first.recipient) if e is not None]
        while event.verb.lemma == first.verb.lemma or event.mentions(*here):
            event = self.action(subject)
        event.manner = ""
        if event.place is not None and event.place.role != "goal":
            event.place = None
        return event

    def existential(self) -> Clause:
        """There was a dog in the garden."""
        noun = self.pick(LEXICON.movable)
        thing = self.noun(noun, modified=0)
        if not thing.noun.mass:
            thing.determiner = self.pick(("two", "three", "some", "many")) if thing.plural else "a"
        place = self.place(LEXICON.anywhere)
        tense = self.pick(("past", "present"))
        node = noun_phrase(thing, "nsubj")
        form = {"past": ("was", "were"), "present": ("is", "are")}[tense][thing.plural]
        verb = Node(form, "be", "VERB", "root")
        where = adjunct_phrase(place)
        verb.left = [Node("there", "there", "PRON", "expl")]
        verb.right = [node, where]
        roles = {"theme": node, "location": where}
        whole = Clause(verb, node, verb, None, dict(roles), "Existence", tense, plural=thing.plural)
        return close(whole)

    def cleft(self) -> Clause:
        """It was the farmer who repaired the gate."""
        verb = self.pick(LEXICON.human_transitive)
        event = Event(verb, self._thinker())
        event.object = self.target(verb, event.subject)
        return close(cleft(event, self.pick(("subject", "object"))))

    def question(self) -> Clause:
        """Did the farmer repair the gate? Who repaired it? What did she find?"""
        event = self.action()
        if event.subject.determiner in ("a", "every", "some", "many", "several"):
            event.subject.determiner = "the"
        event.manner = ""
        event.tense = self.pick(("past", "past", "present", "future"))
        if event.tense == "present":
            event.tense, event.aspect = (
                ("present", "progressive") if event.verb.progressive else ("past", "simple")
            )
        r = self.random()
        if r < 0.5:
            return close(clause(event, invert=True), "?")
        if r < 0.7:
            who = Node("who", "who", "PRON", "nsubj")
            event.subject = Entity(LEXICON.sorts["person"][0])
            event.object = event.object and self.noun(self.other(event.verb.objects, event.subject))
            return close(clause(event, subject=who), "?")
        event.place, event.time = None, ""
        word = self.pick(("where", "when", "why"))
        whole = clause(event, invert=True)
        whole.root.left.insert(0, Node(word, word, "ADV", "advmod"))
        return close(whole, "?")

    def reflexive(self) -> Clause:
        """The boy hurt himself."""
        verb = self.pick(LEXICON.reflexive)
        subject = self._thinker()
        event = Event(verb, subject, subject.again())
        return close(clause(self.when(event)))

    def extraposition(self) -> Clause:
        """It surprised the teacher that …; it was easy to open the box."""
        r = self.random()
        it = Entity(LEXICON.nouns["box"], gender="n", pronoun=True)
        if r < 0.45:
            return close(extraposed(self.surprising(), self.pick(LEXICON.surprise)))
        tense = self.pick(("past", "present"))
        event = Event(
            LEXICON.be, it, predicate=self.pick(_TOUGH if r < 0.75 else _EXTRAPOSED), tense=tense
        )
        whole = clause(event)
        whole.subject.rel, whole.subject.ref = "expl", None
        del whole.roles["theme"]
        if r < 0.75:
            inner = infinitive(self._doing(_ANYBODY), "csubj")
        else:
            inner = clause(self.action(self._thinker()), rel="csubj").root
            inner.left.insert(0, mark("that"))
        whole.root.right.append(inner)
        whole.roles["content"] = inner
        return close(whole)

    def surprising(self) -> Event:
        """An event somebody is surprised by: the surprised one is kept as its recipient."""
        event = self.action(self._thinker())
        event.manner = ""
        if event.recipient is None:
            event.recipient = self._thinker()
            while event.recipient.noun is event.subject.noun:
                event.recipient = self._thinker()
        return event


# Owns nothing that could be mentioned as "its".
_ANYBODY = Entity(LEXICON.sorts["person"][0], determiner="no")
_UNWILLED = frozenset(
    {
        "lose",
        "drop",
        "break",
        "forget",
        "notice",
        "see",
        "hear",
        "find",
        "fall",
        "disappear",
        "hurt",
        "annoy",
        "frighten",
        "insult",
        "steal",
        "need",
        "escape",
        "recognize",
        "ignore",
    }
)


def draw_sentences(seed: int) -> Iterator[Clause]:
    """An endless stream of sentences; the same for the same seed, in any process."""
    draw = SentenceDraw(random.Random(seed))
    while True:
        yield draw.sentence()


# Sentences that are more than one clause of one event: clefts and extraposition.


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
