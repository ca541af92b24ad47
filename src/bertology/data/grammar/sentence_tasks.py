"""Sentences with labels of the whole: length, a word, depth, first phrase, tense, numbers, oddness.

After the ten tasks of SentEval (Conneau et al. 2018). Labels are drawn first, each on its own, and
the sentence is built to fit: what one label says tells nothing of another, and words alone tell
little but of length, of the word, and in part of tense and number. Every plain sentence has two
phrases such as "near the pilot" that say who is meant. One hangs on the other, or both on other
nouns: this makes trees deep or flat out of the same words. Sentences begin with a small letter,
for a capital would tell which of their words came first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from bertology.data.grammar.clauses import Relative, clause, close, comma, mark
from bertology.data.grammar.lexicon import LEXICON, Noun
from bertology.data.grammar.meaning import Adjunct, Entity, Event
from bertology.data.grammar.phrases import Prepositional, adjunct_phrase, adverb
from bertology.data.grammar.sentences import SentenceDraw
from bertology.data.grammar.tree import Clause, Node, annotate, detokenise, spell

CONTENT: tuple[Noun, ...] = LEXICON.people_in_plural[:60:2]
"""The thirty words of which every plain sentence has exactly one."""

_OTHERS = tuple(n for n in LEXICON.people_in_plural if n not in CONTENT)
_SPATIAL = ("near", "behind", "beside")
_WHY = ("because", "although", "while", "when")
_OFTEN = ("often", "sometimes", "usually")
_TENSES = ("past", "present")
_OPENERS = ("suddenly", "finally", "perhaps", "today")
_MOST_ADJECTIVES = 9
_OF_TREES = frozenset({"depth", "top-constituents"})
_SHORTEST, _LONGEST = 21, 29  # of classes of two numbers of words; the last ones have all beyond
_SORTS = {
    "person": "living", "kin": "living", "animal": "living", "fruit": "food", "baked": "food",
    "dish": "food", "foodmass": "food", "drink": "food", "idea": "thought", "puzzler": "thought",
    "event": "thought", "home": "place", "town": "place", "land": "place", "building": "place",
}  # fmt: skip
# What takes nearly any object is never odd.
_TAKES_ALL = frozenset(
    "see notice hear watch like love hate need ignore describe enjoy remember forget photograph "
    "draw find lose own admire examine study protect save".split()
)
_VERBS = tuple(v for v in LEXICON.reversible if v.progressive and "s" not in v.flags)
_ALONE = tuple(
    v for v in LEXICON.intransitive if v.progressive and any(n.human for n in v.subjects)
)
_WITH_OBJECT = tuple(v for v in LEXICON.doings if v.lemma not in _TAKES_ALL)


def _kind(noun: Noun) -> str:
    return _SORTS.get(noun.sort, "thing")


def _depth(heads: Sequence[int]) -> int:
    """How many steps the word that is farthest from the root is from it."""

    def steps(word: int) -> int:
        return 0 if heads[word] < 0 else 1 + steps(heads[word])

    return max(map(steps, range(len(heads))))


def _row(words: list[str], labels: dict[str, str]) -> tuple[str, dict[str, Any]]:
    words = [words[0][0].lower() + words[0][1:], *words[1:]]
    return detokenise(words), {"words": words, "sentence_labels": labels}


KINDS = (
    "in-order", "shifted", "sensible", "plain", "odd", "shifted", "clauses", "in-order", "inverted",
)  # fmt: skip
"""The kinds of a turn. Nine: of every ten sentences some train, so that kinds take turns there."""


class TaskDraw(SentenceDraw):
    """Random sentences, each with its text, its words and its labels."""

    def labelled(self, kind: str) -> tuple[str, dict[str, Any]]:
        """A sentence of one of KINDS."""
        makers: Mapping[str, Callable[[], tuple[str, dict[str, Any]]]] = {
            "plain": lambda: _row(*self._plain()),
            "in-order": self._in_order,
            "shifted": self._shifted,
            "sensible": lambda: self._sense(odd=False),
            "odd": lambda: self._sense(odd=True),
            "clauses": lambda: self._clauses(inverted=False),
            "inverted": lambda: self._clauses(inverted=True),
        }
        return makers[kind]()

    def _people(self, n: int) -> list[Entity]:
        """So many, all different: exactly one of CONTENT, at any place."""
        nouns = [self.pick(CONTENT), *self.rng.sample(_OTHERS, n - 1)]
        self.rng.shuffle(nouns)
        return [self._any_number(noun) for noun in nouns]

    def _any_number(self, noun: Noun) -> Entity:
        return self.plain(noun, plural=self.chance(0.5))

    def _told(self, event: Event) -> Event:
        """In the past or the present, each as often, and going on or not."""
        aspect = "progressive" if self.chance(0.5) else "simple"
        return event.but(tense=self.pick(_TENSES), aspect=aspect)

    def _plain(self) -> tuple[list[str], dict[str, str]]:
        """The nurse near the pilots beside the tailor often praises the boys, because …"""
        subject, thing, near, first, second, *others = people = self._people(7)
        main = self._told(Event(self.pick(_VERBS), subject, thing))
        alone = self.chance(0.5)
        verb = self.pick(_ALONE if alone else _VERBS)
        other = self._told(Event(verb, others[0], None if alone else others[1]))
        said = people[:6] if alone else people
        beside = self.chance(0.5)  # a place, or else an adverb
        if not beside:
            said = [one for one in said if one is not near]
        if sum(one.noun in CONTENT for one in said) != 1:
            return self._plain()
        self._describe(said)
        self._attach(first, second, (subject, thing, *([near] if beside else [])), others[0])
        more = adjunct_phrase(self._at(near)) if beside else adverb(self.pick(_OFTEN))
        whole, top = self._assembled(main, other, more, beside=beside)
        about = annotate(whole)[1]
        words: list[str] = about["words"]
        return words, {
            "length": str(min(max((len(words) - 1) // 2 * 2 + 1, _SHORTEST), _LONGEST)),
            "word-content": next(one.noun.lemma for one in said if one.noun in CONTENT),
            "depth": str(_depth(about["heads"])),
            "top-constituents": top,
            "tense": main.tense,
            "subject-number": _number(subject),
            "object-number": _number(thing),
        }

    def _describe(self, people: Sequence[Entity]) -> None:
        """Adjectives here and there: what makes sentences long or short."""
        for _ in range(self.rng.randrange(_MOST_ADJECTIVES + 1)):
            one = self.pick(people)
            if len(one.adjectives) < 2:
                fresh = [a for a in one.noun.adjectives if a not in one.adjectives]
                one.adjectives = (*one.adjectives, self.pick(fresh))

    def _attach(self, first: Entity, second: Entity, flat: Sequence[Entity], inner: Entity) -> None:
        """Two phrases that say who is meant: each on a noun of its own, or one on the other."""
        shape = self.pick(("flat", "chain", "inner"))
        if shape == "flat":
            for host, one in zip(self.rng.sample(flat, 2), (first, second), strict=True):
                host.modifiers = (Prepositional(self._at(one)),)
            return
        host = self.pick(flat) if shape == "chain" else inner
        first.modifiers = (Prepositional(self._at(second)),)
        host.modifiers = (Prepositional(self._at(first)),)

    def _at(self, entity: Entity) -> Adjunct:
        return Adjunct(self.pick(_SPATIAL), entity)

    def _assembled(
        self, main: Event, other: Event, more: Node, *, beside: bool
    ) -> tuple[Clause, str]:
        """The whole sentence, with one of its parts before the subject, or none; what is first."""
        whole, dependent = clause(main), clause(other, rel="advcl").root
        dependent.left.insert(0, mark(self.pick(_WHY)))
        front = self.pick(("", "SBAR", "other"))
        root = whole.root
        if front != "other":
            if beside:
                root.right.append(more)
            else:
                root.left.append(more)
        if front == "SBAR":
            root.left[:0] = [dependent, comma()]
        else:
            root.right += [comma(), dependent]
        if front == "other":
            root.left.insert(0, more)
            front = "PP" if beside else "ADVP"
        return close(whole), f"{front} NP VP".strip()

    def _in_order(self) -> tuple[str, dict[str, Any]]:
        words, labels = self._plain()
        return _row(words, {**labels, "bigram-shift": "original"})

    def _shifted(self) -> tuple[str, dict[str, Any]]:
        """Two words that stand side by side change places."""
        words, labels = self._plain()
        words[0] = words[0].lower()
        places = [
            at for at, (one, other) in enumerate(pairwise(words))
            if one != other and one.isalpha() and other.isalpha()
        ]  # fmt: skip
        at = self.pick(places)
        words[at : at + 2] = [words[at + 1], words[at]]
        kept = {name: label for name, label in labels.items() if name not in _OF_TREES}
        return _row(words, {**kept, "bigram-shift": "shifted"})

    def _sense(self, *, odd: bool) -> tuple[str, dict[str, Any]]:
        """A verb with an object that it takes, or with one that another verb takes.

        Both verbs and both objects are drawn alike, so that no word says which it is.
        """
        while True:
            verbs = self.pick(_WITH_OBJECT), self.pick(_WITH_OBJECT)
            things = [self.pick(verb.objects) for verb in verbs]
            kinds = [{_kind(noun) for noun in verb.objects} for verb in verbs]
            if _kind(things[1]) not in kinds[0] and _kind(things[0]) not in kinds[1]:
                break
        subject = self._any_number(self.pick(LEXICON.people_in_plural))
        thing = self._any_number(things[odd])
        if thing.noun is subject.noun:
            return self._sense(odd=odd)
        event = self._told(Event(verbs[0], subject, thing))
        if not verbs[0].progressive:
            event = event.but(aspect="simple")
        self._describe((subject, thing))
        if self.chance(0.5):
            event.place = self.place(LEXICON.anywhere)
        words = annotate(close(clause(event)))[1]["words"]
        return _row(words, {"odd-word": "odd" if odd else "original"})

    def _clauses(self, *, inverted: bool) -> tuple[str, dict[str, Any]]:
        """The nurse praised the pilot, and (then the baker / she) smiled; or the other way round.

        A word before both clauses takes the first place, whichever of them comes first.
        """
        hero, thing, other, last = self._people(4)
        again = self.chance(0.5)
        subject = hero.again() if again else other
        alone = self.chance(0.5)
        verb = self.pick(_ALONE if alone else _VERBS)
        tense = self.pick(_TENSES)
        events = (
            Event(self.pick(_VERBS), hero, thing, tense=tense),
            Event(verb, subject, None if alone else last, tense=tense),
        )
        self._describe((hero, thing, other, last))
        first, second = (_words(clause(event)) for event in events)
        if not again:
            second.insert(0, "then")
        if inverted:
            first, second = second, first
        words = [self.pick(_OPENERS), *first, ",", self.pick(("and", "but")), *second, "."]
        return _row(words, {"coordination": "inverted" if inverted else "original"})


def _number(entity: Entity) -> str:
    return "plural" if entity.plural else "singular"


def _words(found: Clause) -> list[str]:
    return [node.form for node in spell(found.root)[0]]


# Sentences of two clauses, in which the first word of a kind is, or is not, that of the main one.
#
# Both clauses have an auxiliary and a person as their subject, drawn alike, so that neither the
# word itself nor its kind says which clause it belongs to. In some constructions the main clause
# comes first, so that "the first auxiliary" and "the auxiliary of the main clause" are the same
# word; in others something stands before it (Lin, Tan and Frank 2019).

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

_ORDER_SPATIAL = ("near", "behind", "beside")
_ORDER_WHY = ("because", "although", "while", "when")
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
        dependent.left.insert(0, mark(self.pick(_ORDER_WHY)))
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
        place = adjunct_phrase(Adjunct(self.pick(_ORDER_SPATIAL), self._person(used)))
        whole.root.left[:0] = [place, comma()]
        return whole
