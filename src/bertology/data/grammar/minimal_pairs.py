"""Minimal pairs: a sentence and the same one with an error of one word (NPI scope: two exchanged).

Agreement: the verb agrees with its subject, not with the nouns in between ("attractors", all of the
other number). Reflexives: the pronoun has its antecedent in its own clause. Negative polarity
items: "any" and "ever" need a negation, a question or the like above them.
"""

from __future__ import annotations

from typing import NamedTuple

from bertology.data.grammar.clauses import Relative, clause, close, finite
from bertology.data.grammar.lexicon import LEXICON, Noun
from bertology.data.grammar.meaning import Adjunct, Entity, Event, Modifier
from bertology.data.grammar.phrases import Prepositional
from bertology.data.grammar.sentences import SentenceDraw
from bertology.data.grammar.tree import Clause, Node, annotate, detokenise, spell

MAX_ATTRACTORS = 4
REFLEXIVE_KINDS = ("gender", "number", "possessor", "clause")
NPI_KINDS = ("determiner", "adverb", "negation", "scope", "verb")
_SPATIAL = ("near", "behind", "beside")
_THINGS = LEXICON.pool("container tool valuable toy picture print furniture")
_SPOTS = LEXICON.pool(
    "=table =desk =bench =sofa =bed =door =gate =window =fence =bridge =wall building plant vehicle"
)
_VIEWS = LEXICON.pool("building vessel plant animal =king =queen =lake =island =mountain")
_OPPOSITE = {"himself": "herself", "herself": "himself"}
_LICENSORS = {"no": ("the", "some", "most"), "few": ("some", "many")}


class MinimalPair(NamedTuple):
    """The good sentence with what is known of it, the bad one, and where they part."""

    clause: Clause
    critical: Node
    bad_form: str
    extra: dict[str, object]
    swap: tuple[Node, str] | None = None  # a second word that changes (scope of NPIs)

    def annotated(self) -> tuple[str, dict[str, object]]:
        """The good text and all that is known of it, with the bad text as its contrast."""
        good, known = annotate(self.clause)
        contrast = {"contrast": self._bad(known["words"]), "critical": self.critical.index}
        return good, known | contrast | self.extra

    def texts(self) -> tuple[str, str]:
        """The good and the bad text alone."""
        _, words = spell(self.clause.root)
        return detokenise(words), self._bad(words)

    def _bad(self, good: list[str]) -> str:
        words = list(good)
        words[self.critical.index] = self.bad_form
        if self.swap is not None:
            words[self.swap[0].index] = self.swap[1]
        words[0] = words[0][0].upper() + words[0][1:]
        return detokenise(words)


class MinimalPairDraw(SentenceDraw):
    """Random minimal pairs."""

    # Agreement.

    def agreement(self, attractors: int) -> MinimalPair:
        """A present-tense (or was/were) verb after so many nouns of the other number."""
        plural = self.chance(0.5)
        human = self.chance(0.5)
        pool = LEXICON.people_in_plural if human else _THINGS
        subject = self.plain(self.pick(pool), plural=plural, adjective=0.3)
        subject.modifiers = self._between(subject, attractors, not plural)
        event = self._predicate(subject)
        whole = close(clause(event))
        whole.verb = critical = _finite_word(whole)
        bad = _other_number(critical, event, plural)
        return MinimalPair(whole, critical, bad, {"attractors": attractors})

    def _predicate(self, subject: Entity) -> Event:
        r = self.random()
        if subject.noun.human and r < 0.55:
            verb = self.pick(LEXICON.habits)
            while (
                verb.past == verb.lemma and not subject.plural
            ):  # "the man read it" is good English
                verb = self.pick(LEXICON.habits)
            event = Event(verb, subject, tense="present")
            if verb.objects:
                event.object = self.plain(self.pick(verb.objects), plural=self.chance(0.3))
                if event.object.noun is subject.noun:
                    event.object = self.name()
            if self.chance(0.4) and "s" not in verb.flags:
                event.time = self.pick(LEXICON.times["present"])
            return event
        if r < 0.7 and subject.noun.human:
            event = self._perfect(subject)
        else:
            event = Event(LEXICON.be, subject, predicate=self.pick(subject.noun.predicates))
            if event.predicate in subject.adjectives:
                subject.adjectives = ()
            event.tense = self.pick(("present", "past"))
        return event

    def _perfect(self, subject: Entity) -> Event:
        verb = self.pick(LEXICON.habits)
        event = Event(verb, subject, tense="present", aspect="perfect")
        if verb.objects:
            event.object = self.plain(self.pick(verb.objects))
            if event.object.noun is subject.noun:
                event.object = self.name()
        return event

    def _between(self, subject: Entity, count: int, plural: bool) -> tuple[Modifier, ...]:
        """Modifiers of the subject that hold so many nouns, one inside the other."""
        if count == 0:
            return ()
        used = [subject.noun]
        if subject.noun.human and self.chance(0.6):
            who = self._fresh(LEXICON.people_in_plural, used, plural)
            who.modifiers = self._chain(count - 1, plural, used)
            verb = self.pick(LEXICON.reversible)
            if self.chance(0.5) or count > 2:
                doer = Entity(subject.noun, subject.plural, gender=subject.gender)
                return (Relative(Event(verb, doer, who), "subject", self.pick(("who", "that"))),)
            return (Relative(Event(verb, who, subject.but(modifiers=())), "object", "that"),)
        if subject.noun.sort == "picture":
            seen = self._fresh(_VIEWS, used, plural)
            seen.modifiers = self._chain(count - 1, plural, used)
            return (Prepositional(Adjunct("of", seen)),)
        return self._chain(count, plural, used, human=subject.noun.human)

    def _chain(
        self, count: int, plural: bool, used: list[Noun], *, human: bool = False, after: str = ""
    ) -> tuple[Modifier, ...]:
        if count == 0:
            return ()
        pool = LEXICON.people_in_plural if human and self.chance(0.4) else _SPOTS
        entity = self._fresh(pool, used, plural)
        words = [w for w in _SPATIAL if w != after]
        word = self.pick(words)
        entity.modifiers = self._chain(count - 1, plural, used, after=word)
        return (Prepositional(Adjunct(word, entity)),)

    def _fresh(self, pool: tuple[Noun, ...], used: list[Noun], plural: bool) -> Entity:
        noun = self.pick(pool)
        while noun in used or noun.lemma in ("king", "queen"):
            noun = self.pick(pool)
        used.append(noun)
        return self.plain(noun, plural=plural, adjective=0.1)

    # Reflexives.

    def reflexives(self, kind: str) -> MinimalPair:
        """The boy hurt himself / *herself; the boy's mother praised herself / *himself.

        `kind`: what tells the two apart, one of REFLEXIVE_KINDS; of "possessor" and "clause" there
        is a second person in the sentence, whom the bad pronoun would fit.
        """
        verb = self.pick(LEXICON.reflexive)
        if kind == "number":
            subject = self.plain(self.pick(LEXICON.people_in_plural), plural=self.chance(0.5))
            subject.adjectives = (self.pick(subject.noun.adjectives),) if self.chance(0.4) else ()
            bad = self.pick(("himself", "herself")) if subject.plural else "themselves"
        else:
            subject = self._gendered(owner=kind == "possessor")
            bad = _OPPOSITE["himself" if subject.gender == "m" else "herself"]
        event = Event(verb, subject, subject.again())
        if "s" not in verb.flags and self.chance(0.35):
            event.time = self.pick(LEXICON.times["past"])
        if kind == "clause":
            other = self._gendered(not_gender=subject.gender)
            event = Event(self.pick(LEXICON.complement), other, content=event)
        whole = close(clause(event))
        critical = _reflexive(whole.root)
        return MinimalPair(whole, critical, bad, {"kind": kind})

    def _gendered(self, *, owner: bool = False, not_gender: str = "") -> Entity:
        gender = {"m": "f", "f": "m"}.get(not_gender) or self.pick(("m", "f"))
        nouns = [n for n in LEXICON.gendered if n.gender == gender]
        if owner:
            noun = self.pick([n for n in LEXICON.sorts["kin"] if n.gender == gender])
            entity = self.plain(noun)
            entity.owner = self._gendered(not_gender=gender)
            return entity
        if self.chance(0.5):
            noun = self.pick([n for n in LEXICON.names if n.gender == gender])
            return Entity(noun, gender=gender)
        return self.plain(self.pick(nouns), adjective=0.3)

    # Negative polarity.

    def npi(self, kind: str) -> MinimalPair:
        """No student has ever …/ *the student has ever …; never … any / *often … any.

        `kind`: what licenses the item, one of NPI_KINDS.
        """
        return {
            "determiner": self._npi_determiner,
            "adverb": self._npi_adverb,
            "negation": self._npi_negation,
            "scope": self._npi_scope,
            "verb": self._npi_verb,
        }[kind]()

    def _ever(self, subject: Entity) -> Event:
        verb = self.pick(LEXICON.doings)
        target = self.plain(self.other(verb.objects, subject), adjective=0.2)
        return Event(verb, subject, target, aspect="perfect", tense="present", frequency="ever")

    def _npi_determiner(self) -> MinimalPair:
        licensor = self.pick(("no", "no", "few"))
        plural = licensor == "few" or self.chance(0.5)
        noun = self.pick(LEXICON.people_in_plural)
        subject = self.plain(noun, plural=plural, adjective=0.3).but(determiner=licensor)
        whole = close(clause(self._ever(subject)))
        options = _LICENSORS[licensor] if plural else ("the", "this")
        word = whole.subject.left[0]
        return MinimalPair(whole, word, self.pick(options), {"kind": "determiner"})

    def _npi_adverb(self) -> MinimalPair:
        event = self._any(self.someone())
        event.negation = "never"
        whole = close(clause(event))
        critical = next(n for n in whole.root.left if n.form == "never")
        bad = self.pick(("often", "sometimes", "recently", "once"))
        return MinimalPair(whole, critical, bad, {"kind": "adverb"})

    def _npi_negation(self) -> MinimalPair:
        event = self._any(self.someone())
        event.negation = "not"
        event.tense, event.aspect = self.pick(
            (("future", "simple"), ("present", "perfect"), ("past", "perfect"))
        )
        whole = close(clause(event))
        critical = next(n for n in whole.root.left if n.form == "not")
        bad = "soon" if event.tense == "future" else self.pick(("already", "just", "recently"))
        return MinimalPair(whole, critical, bad, {"kind": "negation"})

    def _npi_scope(self) -> MinimalPair:
        a, b = self.rng.sample(LEXICON.people_in_plural, 2)
        one, two = self.plain(a, adjective=0.2), self.plain(b)
        one.determiner = "no"
        inner = Event(self.pick(LEXICON.reversible), two, one)
        one.modifiers = (Relative(inner, "object", "that"),)
        whole = close(clause(self._ever(one)))
        first = whole.subject.left[0]
        relative = whole.subject.right[0]
        other = next(n for n in relative.left if n.rel == "nsubj").left[0]
        return MinimalPair(whole, first, "the", {"kind": "scope"}, (other, "no"))

    def _npi_verb(self) -> MinimalPair:
        subject = self.someone()
        subject.modifiers = ()
        inner = self._ever(self.plain(self.other(LEXICON.people_in_plural, subject), adjective=0.2))
        inner.tense = "past"
        event = Event(LEXICON.believing["doubt"], subject, content=inner)
        whole = close(clause(event))
        bad = self.pick(("believed", "said", "knew", "claimed", "announced"))
        return MinimalPair(whole, whole.verb, bad, {"kind": "verb"})

    def _any(self, subject: Entity) -> Event:
        if subject.determiner in ("every", "some", "many", "several", "a"):
            subject.determiner = "the"
        subject.modifiers = ()
        verb = self.pick(LEXICON.with_things)
        noun = self.pick(verb.objects)
        while noun.human or noun.lemma in ("king", "queen"):
            noun = self.pick(verb.objects)
        thing = Entity(noun, not noun.mass, "any")
        if self.chance(0.3):
            thing.adjectives = (self.pick(noun.adjectives),)
        return Event(verb, subject, thing)


def _finite_word(whole: Clause) -> Node:
    """The word that agrees: the first auxiliary, the copula, or the verb itself."""
    for node in whole.root.left:
        if node.rel in ("aux", "cop"):
            return node
    return whole.verb


def _other_number(word: Node, event: Event, plural: bool) -> str:
    wrong = "sg" if plural else "pl"
    if word.lemma == "have" and word.pos == "AUX":
        return "has" if plural else "have"
    if word.lemma == "be":
        return finite(LEXICON.be, event.tense, wrong)
    return finite(event.verb, "present", wrong)


def _reflexive(root: Node) -> Node:
    stack = [root]
    while stack:
        node = stack.pop()
        if node.form.endswith(("self", "selves")):
            return node
        stack += node.left + node.right
    raise ValueError("no reflexive in the sentence")
