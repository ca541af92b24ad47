"""Sentences of two clauses, in which the first word of a kind is, or is not, that of the main one.

Both clauses have an auxiliary and a person as their subject, drawn alike, so that neither the word
itself nor its kind says which clause it belongs to. In some constructions the main clause comes
first, so that "the first auxiliary" and "the auxiliary of the main clause" are the same word; in
others something stands before it (Lin, Tan and Frank 2019).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bertology.data.grammar.clauses import Relative, clause, close, comma, mark
from bertology.data.grammar.lexicon import LEXICON, Noun
from bertology.data.grammar.meaning import Adjunct, Entity, Event
from bertology.data.grammar.phrases import adjunct_phrase
from bertology.data.grammar.sentences import SentenceDraw
from bertology.data.grammar.tree import Clause

ORDERS = (
    "relative-after",
    "complement",
    "adverbial-after",
    "subject-relative",
    "object-relative",
    "adverbial-first",
    "possessor",
    "place-first",
)
"""Constructions; the main clause comes first in the first three."""

_SPATIAL = ("near", "behind", "beside")
_WHY = ("because", "although", "while", "when")
_AUXILIARIES = (
    {"modal": "can", "tense": "present"},
    {"modal": "must", "tense": "present"},
    {"modal": "should", "tense": "present"},
    {"modal": "might", "tense": "present"},
    {"tense": "future"},
    {"tense": "past", "aspect": "progressive"},
    {"tense": "present", "aspect": "progressive"},
    {"tense": "present", "aspect": "perfect"},
    {"tense": "past", "aspect": "perfect"},
)


class OrderDraw(SentenceDraw):
    """Random sentences of two clauses, each with an auxiliary."""

    def ordered(self, construction: str) -> Clause:
        """A sentence of one of ORDERS."""
        makers: Mapping[str, Callable[[list[Noun]], Clause]] = {
            "relative-after": self._relative_after,
            "complement": self._complement,
            "adverbial-after": lambda used: self._adverbial(used, first=False),
            "subject-relative": lambda used: self._on_subject(used, "subject"),
            "object-relative": lambda used: self._on_subject(used, "object"),
            "adverbial-first": lambda used: self._adverbial(used, first=True),
            "possessor": self._possessed,
            "place-first": self._place_first,
        }
        return close(makers[construction]([]))

    def _person(self, used: list[Noun]) -> Entity:
        """Somebody who is not in the sentence yet."""
        noun = self.pick(LEXICON.people_in_plural)
        while noun in used:
            noun = self.pick(LEXICON.people_in_plural)
        used.append(noun)
        return self.plain(noun, plural=self.chance(0.3), adjective=0.4)

    def _event(self, used: list[Noun], subject: Entity | None = None) -> Event:
        """One person does something to another, told with an auxiliary."""
        subject = subject or self._person(used)
        verbs = [v for v in LEXICON.reversible if v.progressive and "s" not in v.flags]
        event = Event(self.pick(verbs), subject, self._person(used))
        return self._with_auxiliary(event)

    def _with_auxiliary(self, event: Event) -> Event:
        found = event.but(**self.pick(_AUXILIARIES))
        if self.chance(0.2):
            found.negation = "not"
        elif self.chance(0.2):
            found.frequency = self.pick(("often", "always", "sometimes", "usually"))
        return found

    def _relative(self, entity: Entity, used: list[Noun], gap: str) -> None:
        """Say of somebody who does something, or to whom something is done."""
        who = Entity(entity.noun, entity.plural, gender=entity.gender, refers_to=entity)
        if gap == "subject":
            event, word = self._event(used, who), self.pick(("who", "that"))
        else:
            event, word = self._event(used).but(object=who), "that"
            used.pop()  # the object that was drawn is not said
        entity.modifiers = (Relative(event, gap, word),)

    def _relative_after(self, used: list[Noun]) -> Clause:
        event = self._event(used)
        if event.object is not None:
            self._relative(event.object, used, self.pick(("subject", "object")))
        return clause(event)

    def _on_subject(self, used: list[Noun], gap: str) -> Clause:
        event = self._event(used)
        self._relative(event.subject, used, gap)
        return clause(event)

    def _complement(self, used: list[Noun]) -> Clause:
        verbs = [v for v in LEXICON.complement if v.lemma != "hope"]
        # Nobody is knowing; and an auxiliary that is not in one clause is not in the other.
        inner = self._lasting(self._event(used))
        outer = Event(self.pick(verbs), self._person(used), content=inner)
        return clause(self._lasting(outer))

    def _lasting(self, event: Event) -> Event:
        plain = event.but(modal="", aspect="simple", negation="", frequency="")
        found = self._with_auxiliary(plain)
        while found.aspect == "progressive":
            found = self._with_auxiliary(plain)
        return found

    def _adverbial(self, used: list[Noun], *, first: bool) -> Clause:
        whole, dependent = clause(self._event(used)), clause(self._event(used), rel="advcl").root
        dependent.left.insert(0, mark(self.pick(_WHY)))
        if first:
            whole.root.left[:0] = [dependent, comma()]
        else:
            whole.root.right.append(dependent)
        return whole

    def _possessed(self, used: list[Noun]) -> Clause:
        """The farmer's friend has thanked the nurse who …"""
        event = self._event(used)
        event.subject.owner = self._person(used)
        if event.object is not None:
            self._relative(event.object, used, self.pick(("subject", "object")))
        return clause(event)

    def _place_first(self, used: list[Noun]) -> Clause:
        """Beside the farmer, the nurse has thanked the pilot who …"""
        event = self._event(used)
        if event.object is not None:
            self._relative(event.object, used, self.pick(("subject", "object")))
        whole = clause(event)
        place = adjunct_phrase(Adjunct(self.pick(_SPATIAL), self._person(used)))
        whole.root.left[:0] = [place, comma()]
        return whole
