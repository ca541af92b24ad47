"""Pairs that do or do not say the same, made so that counting shared words does not tell.

Both members of a pair put an event into words, each in its own way (passive, dative alternation,
cleft, fronting, extraposition, order of clauses, synonyms). In a non-paraphrase the second event is
another one: mostly the same words with their roles, adjectives or order exchanged; in a minority
one word is changed (tense, negation, a participant, a time).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bertology.data.grammar.clauses import clause, close, comma, mark
from bertology.data.grammar.lexicon import LEXICON, Noun, Verb
from bertology.data.grammar.meaning import Entity, Event
from bertology.data.grammar.sentences import SentenceDraw, cleft, extraposed
from bertology.data.grammar.tree import Clause, detokenise, spell

_CHANGED_SHARE = 0.2  # of the hard non-paraphrases, how many differ by a word rather than by order
_VERBS = {v.lemma: v for v in reversed(LEXICON.transitive)}


class ParaphrasePair(NamedTuple):
    """Two sentences, what they are to each other, and how the pair was made."""

    first: str
    second: str
    label: int
    kind: str


def write(whole: Clause) -> str:
    """The text of a closed sentence."""
    return detokenise(spell(whole.root)[1])


def _synonym_noun(noun: Noun) -> Noun:
    other = LEXICON.noun_synonyms.get(noun.lemma)
    return LEXICON.nouns[other] if other is not None else noun


def _reworded(entity: Entity) -> Entity:
    adjectives = tuple(LEXICON.modifier_synonyms.get(a, a) for a in entity.adjectives)
    return entity.but(noun=_synonym_noun(entity.noun), adjectives=adjectives)


def _synonym_verb(event: Event) -> Verb:
    other = _VERBS.get(LEXICON.verb_synonyms.get(event.verb.lemma, ""))
    fits = other is not None and event.object is not None and event.object.noun in other.objects
    return other if other is not None and fits and event.verb.preposition == "" else event.verb


def _synonymous(event: Event) -> Event:
    """The event in synonyms, wherever the lexicon has one."""
    return event.but(
        verb=_synonym_verb(event),
        subject=_reworded(event.subject),
        object=event.object and _reworded(event.object),
        recipient=event.recipient and _reworded(event.recipient),
        manner=LEXICON.modifier_synonyms.get(event.manner, event.manner),
    )


class ParaphraseDraw(SentenceDraw):
    """Random pairs. `hard` keeps the words and exchanges their roles in most non-paraphrases."""

    hard: bool = True

    def pair(self, label: int) -> ParaphrasePair:
        """A pair with this label: 1 for a paraphrase, 0 for none."""
        makers: tuple[Callable[[int], ParaphrasePair], ...] = (
            self._acting,
            self._acting,
            self._giving,
            self._giving,
            self._ordered,
            self._surprised,
        )
        made = self.pick(makers)(label)
        if self.chance(0.5):
            made = made._replace(first=made.second, second=made.first)
        return made

    def _person(self, *others: Entity) -> Entity:
        taken = {e.noun.lemma for e in others}
        taken |= {LEXICON.noun_synonyms.get(lemma, lemma) for lemma in taken}
        noun = self.pick(LEXICON.sorts["person"])
        while noun.lemma in taken:
            noun = self.pick(LEXICON.sorts["person"])
        if self.chance(0.2):
            entity = self.name()
            return entity if entity.noun.lemma not in taken else self._person(*others)
        return self.plain(noun, plural=self.chance(0.25), adjective=0.5)

    def _changed(self, label: int) -> bool:
        return not label and (not self.hard or self.chance(_CHANGED_SHARE))

    def _acting(self, label: int) -> ParaphrasePair:
        """One person acts on another: active, passive, clefts, fronted time."""
        verb = self.pick(LEXICON.reversible)
        agent = self._person()
        event = Event(verb, agent, self._person(agent))
        if "s" not in verb.flags:
            self._when(event)
        forms: tuple[tuple[str, Callable[[Event], Clause]], ...] = (
            ("active", clause),
            ("passive", lambda e: clause(e, "passive")),
            ("cleft", lambda e: cleft(e.but(front=""), "subject")),
            ("cleft", lambda e: cleft(e.but(front=""), "object")),
        )
        if event.negation or event.tense != "past":
            forms = forms[:2]  # "It was" goes with the past
        return self._forms(event, forms, label)

    def _when(self, event: Event) -> None:
        event.tense = self.pick(("past", "past", "future"))
        if self.chance(0.5):
            event.time = self.pick(LEXICON.times[event.tense])
        if self.chance(0.25) and event.verb.manner:
            event.manner, event.manner_first = self.pick(event.verb.manner), True
        elif self.chance(0.15):
            event.negation = "not"

    def _giving(self, label: int) -> ParaphrasePair:
        """Somebody gives somebody something: both orders, both passives."""
        verb = self.pick(LEXICON.ditransitive)
        agent = self._person()
        theme = self.noun(self.pick(verb.objects), modified=0)
        theme.determiner = (
            "the" if theme.determiner in ("this", "these", "every") else theme.determiner
        )
        event = Event(verb, agent, theme, self._person(agent))
        self._when(event)
        if event.negation and theme.determiner not in ("the", "a"):
            theme.determiner = "the"
        forms: tuple[tuple[str, Callable[[Event], Clause]], ...] = (
            ("dative", clause),
            ("dative", lambda e: clause(e.but(double_object=True))),
            ("passive", lambda e: clause(e, "passive")),
        )
        if verb.preposition == "to":
            forms += (("passive", lambda e: clause(e, "recipient")),)
        return self._forms(event, forms, label)

    def _forms(
        self, event: Event, forms: tuple[tuple[str, Callable[[Event], Clause]], ...], label: int
    ) -> ParaphrasePair:
        """Two forms of the event, the second of another event where the label says so."""
        i, j = self.rng.sample(range(len(forms)), 2)
        if event.time and not event.time.startswith("adv") and self.chance(0.4):
            j = i if self.chance(0.5) and forms[i][0] != "cleft" else j
            front = event.but(front="time")
        else:
            front = event
        kind = forms[j][0] if i != j else "fronting"
        other = _synonymous(front) if self.chance(0.4) else front
        if self._changed(label):
            other, kind = self._altered(other), f"{kind}, changed word"
        elif not label:
            other, kind = self._swapped(other), f"{kind}, exchanged"
        return ParaphrasePair(
            write(close(forms[i][1](event))), write(close(forms[j][1](other))), label, kind
        )

    def _swapped(self, event: Event) -> Event:
        """The same words in other roles."""
        one, two = event.subject, event.recipient or event.object
        if two is None:
            raise ValueError("exchanging roles takes two participants")
        if (
            one.adjectives
            and two.adjectives
            and one.adjectives != two.adjectives
            and self.chance(0.5)
        ):
            a, b = one.but(adjectives=two.adjectives), two.but(adjectives=one.adjectives)
        else:
            a, b = two, one
        if event.recipient is not None:
            return event.but(subject=a, recipient=b)
        return event.but(subject=a, object=b)

    def _altered(self, event: Event) -> Event:
        """The same event but for one word: tense, negation, a participant, or the verb."""
        r = self.random()
        if r < 0.3 and not event.time and "s" not in event.verb.flags:
            return event.but(tense="future" if event.tense == "past" else "past")
        if r < 0.55 and event.tense == "past":
            return event.but(negation="" if event.negation else "not")
        if r < 0.75 and event.time:
            times = [t for t in LEXICON.times[event.tense] if t != event.time and ":" in t]
            kept = [t for t in times if not t.startswith("adv")]
            return event.but(time=self.pick(kept))
        if event.recipient is None or r < 0.9:
            target = event.object if event.recipient is None else event.recipient
            other = self._person(event.subject, target or event.subject)
            if event.recipient is None:
                return event.but(object=other)
            return event.but(recipient=other)
        return event.but(subject=self._person(event.subject, event.recipient))

    def _ordered(self, label: int) -> ParaphrasePair:
        """Two events in time: "A before B", "before B, A", "B after A"."""
        first, second = self._brief(), self._brief()
        while second.verb.lemma == first.verb.lemma or second.subject.noun is first.subject.noun:
            second = self._brief()
        word = self.pick(("before", "after"))
        opposite = "after" if word == "before" else "before"
        base = self._joined(first, word, second, fronted=self.chance(0.5))
        style, kind = self.random(), "order of clauses"
        if self._changed(label):
            kind += ", changed word"
            second = second.but(subject=self._person(first.subject, second.subject))
        elif not label:
            kind += ", exchanged"
            if self.chance(0.5):
                first, second = (
                    first.but(subject=second.subject),
                    second.but(subject=first.subject),
                )
            else:
                word, opposite = opposite, word
        if style < 0.5:
            text = self._joined(second, opposite, first, fronted=self.chance(0.5))
        else:
            text = self._joined(first, word, second, fronted=self.chance(0.5))
            if text == base:
                text = self._joined(second, opposite, first, fronted=self.chance(0.5))
        return ParaphrasePair(base, text, label, kind)

    def _brief(self) -> Event:
        event = self.action(self._person())
        while event.recipient is not None or not event.verb.progressive:
            event = self.action(self._person())
        event.manner, event.place = "", event.place if event.verb.frame == "Motion" else None
        if event.object is not None:
            event.object.owner, event.object.modifiers = None, ()
            event.object.determiner = event.object.determiner or "the"
        return event

    def _joined(self, main: Event, word: str, other: Event, *, fronted: bool) -> str:
        whole = clause(main)
        dependent = clause(other, rel="advcl").root
        dependent.left.insert(0, mark(word))
        if fronted:
            whole.root.left[:0] = [dependent, comma()]
        else:
            whole.root.right.append(dependent)
        return write(close(whole))

    def _surprised(self, label: int) -> ParaphrasePair:
        """It surprised X that Y …; that Y … surprised X."""
        verb: Verb = self.pick(LEXICON.surprise)
        event = self._brief()
        event.recipient = victim = self._person(event.subject)
        initial = self.chance(0.5)
        base = write(close(extraposed(event, verb, initial=initial)))
        kind = "extraposition"
        if self.chance(0.5):
            event = _synonymous(event)
        if self._changed(label):
            if self.chance(0.5):
                event = event.but(negation="not")
            else:
                event = event.but(recipient=self._person(event.subject, victim))
            kind = "extraposition, changed word"
        elif not label:
            event, kind = self._swapped(event), "extraposition, exchanged"
        return ParaphrasePair(
            base, write(close(extraposed(event, verb, initial=not initial))), label, kind
        )
