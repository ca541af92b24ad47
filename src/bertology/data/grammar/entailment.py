"""Entailment pairs that the three shallow heuristics get wrong, each kind to be switched on or off.

The heuristics, after McCoy, Pavlick and Linzen (2019): a premise entails every sentence made of its
words (lexical overlap), every contiguous part of it (subsequence), every complete clause in it
(constituent). Each has cases where it is right and cases where it is wrong. With a kind switched
off, its wrong cases are replaced by hypotheses with a word that the premise lacks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bertology.data.grammar.clauses import Relative, clause, close, comma, mark
from bertology.data.grammar.lexicon import LEXICON
from bertology.data.grammar.meaning import Adjunct, Entity, Event
from bertology.data.grammar.paraphrase import write
from bertology.data.grammar.phrases import Prepositional, adverb
from bertology.data.grammar.sentences import SentenceDraw
from bertology.data.grammar.tree import Node

HEURISTICS = ("lexical_overlap", "subsequence", "constituent")
ENTAILED, NOT_ENTAILED = 0, 1
_NEAR = ("near", "behind", "beside")
# Verbs read as having a noun phrase for their object until the next verb comes.
_GARDEN_PATH = ("hear", "believe", "remember", "notice", "know", "suspect")
_FACTIVE = tuple(v.lemma for v in LEXICON.complement if "f" in v.flags)
_NONFACTIVE = tuple(v.lemma for v in LEXICON.complement if "f" not in v.flags)


class Inference(NamedTuple):
    """A premise, a hypothesis, whether it follows (0) or not (1), and the case."""

    premise: str
    hypothesis: str
    label: int
    heuristic: str
    case: str


DrawnPair = tuple[str, str, str]


class EntailmentDraw(SentenceDraw):
    """Random premises with hypotheses."""

    def inference(self, heuristic: str, label: int, *, misled: bool = True) -> Inference:
        """A pair of this heuristic. `misled`: non-entailments may be ones it gets wrong."""
        if label == ENTAILED:
            premise, hypothesis, case = self.pick(self._right(heuristic))()
        elif misled:
            premise, hypothesis, case = self.pick(self._wrong(heuristic))()
        else:
            premise, hypothesis, case = self._unrelated(heuristic)
        return Inference(premise, hypothesis, label, heuristic, case)

    def _right(self, heuristic: str) -> tuple[Callable[[], DrawnPair], ...]:
        return {
            "lexical_overlap": (self._passive_right, self._around_relative, self._around_place),
            "subsequence": (
                self._conjunct_right,
                self._adjective,
                self._object_place,
                self._adverbial,
            ),
            "constituent": (self._factive, self._because, self._and, self._surely),
        }[heuristic]

    def _wrong(self, heuristic: str) -> tuple[Callable[[], DrawnPair], ...]:
        return {
            "lexical_overlap": (
                self._swap,
                self._passive_wrong,
                self._relative_swap,
                self._and_swap,
            ),
            "subsequence": (
                self._near_subject,
                self._inside_relative,
                self._garden_path,
                self._object_zero,
            ),
            "constituent": (self._nonfactive, self._if, self._or, self._probably),
        }[heuristic]

    # Participants and small events.

    def _people(self, count: int) -> list[Entity]:
        nouns = self.rng.sample(LEXICON.sorts["person"], count)
        return [self.plain(n, plural=self.chance(0.3), adjective=0.15) for n in nouns]

    def _deed(self, one: Entity, two: Entity) -> Event:
        return Event(self.pick(LEXICON.reversible), one, two)

    def _passive_deed(self, one: Entity, two: Entity) -> Event:
        """One whose active and passive share the form of the verb, so that their words overlap."""
        event = self._deed(one, two)
        while event.verb.past != event.verb.participle:
            event = self._deed(one, two)
        return event

    def _alone(self, who: Entity) -> Event:
        verb = self.pick(LEXICON.intransitive)
        while not any(n.sort == "person" for n in verb.subjects):
            verb = self.pick(LEXICON.intransitive)
        return Event(verb, who)

    def _either(self, who: Entity, whom: Entity) -> Event:
        return self._deed(who, whom) if self.chance(0.6) else self._alone(who)

    def _say(self, event: Event, voice: str = "active") -> str:
        return write(close(clause(event, voice)))

    def _with(self, entity: Entity, relative: Relative) -> Entity:
        return entity.but(modifiers=(relative,))

    # Lexical overlap.

    def _swap(self) -> DrawnPair:
        a, b = self._people(2)
        event = self._deed(a, b)
        return self._say(event), self._say(event.but(subject=b, object=a)), "subject and object"

    def _passive_wrong(self) -> DrawnPair:
        a, b = self._people(2)
        event = self._passive_deed(a, b)
        return self._say(event, "passive"), self._say(event.but(subject=b, object=a)), "passive"

    def _passive_right(self) -> DrawnPair:
        a, b = self._people(2)
        event = self._passive_deed(a, b)
        if self.chance(0.5):
            return self._say(event, "passive"), self._say(event), "passive"
        return self._say(event, "passive"), self._say(event, "short"), "passive without agent"

    def _relative_swap(self) -> DrawnPair:
        a, b, c = self._people(3)
        inner = self._deed(a, b)
        main = self._either(self._with(a, Relative(inner, "subject", "who")), c)
        return self._say(main), self._say(inner.but(subject=b, object=a)), "relative clause"

    def _around_relative(self) -> DrawnPair:
        a, b, c = self._people(3)
        if self.chance(0.5):
            inner = self._deed(a, b)
            relative = Relative(inner, "subject", "who")
        else:
            inner = self._deed(b, a)
            relative = Relative(inner, "object", "that")
        main = self._either(self._with(a, relative), c)
        hypothesis = inner if self.chance(0.4) else main.but(subject=a)
        return self._say(main), self._say(hypothesis), "relative clause"

    def _around_place(self) -> DrawnPair:
        a, b, c = self._people(3)
        near = a.but(modifiers=(Prepositional(Adjunct(self.pick(_NEAR), b)),))
        main = self._either(near, c)
        return self._say(main), self._say(main.but(subject=a)), "prepositional phrase"

    def _and_swap(self) -> DrawnPair:
        a, b, c = self._people(3)
        event = self._deed(a, b.but(partners=(c,)))
        return self._say(event), self._say(event.but(subject=b, object=c)), "conjunction"

    # Subsequence.

    def _near_subject(self) -> DrawnPair:
        a, b, c = self._people(3)
        near = a.but(modifiers=(Prepositional(Adjunct(self.pick(_NEAR), b)),))
        main = self._either(near, c)
        return self._say(main), self._say(main.but(subject=b)), "prepositional phrase"

    def _inside_relative(self) -> DrawnPair:
        a, b, c = self._people(3)
        main = self._either(self._with(a, Relative(self._deed(a, b), "subject", "who")), c)
        return self._say(main), self._say(main.but(subject=b)), "relative clause"

    def _garden_path(self) -> DrawnPair:
        a, b, c = self._people(3)
        verb = LEXICON.believing[self.pick(_GARDEN_PATH)]
        premise = Event(verb, a, content=self._either(b, c), bare_that=True)
        return self._say(premise), self._say(Event(verb, a, b)), "noun phrase or clause"

    def _object_zero(self) -> DrawnPair:
        first = Event(self.pick(LEXICON.optional), self._people(1)[0])
        things = [n for n in first.verb.objects if n.predicates]
        thing = self.plain(self.pick(things))
        main = Event(LEXICON.be, thing, predicate=self.pick(thing.noun.predicates))
        whole = clause(main)
        dependent = clause(first, rel="advcl").root
        dependent.left.insert(0, mark(self.pick(("while", "before", "after"))))
        # Without the comma, the subject of the main clause reads like the object of the first.
        whole.root.left.insert(0, dependent)
        return write(close(whole)), self._say(first.but(object=thing)), "noun phrase or nothing"

    def _conjunct_right(self) -> DrawnPair:
        a, b, c = self._people(3)
        main = self._either(a.but(partners=(b,)), c)
        return self._say(main), self._say(main.but(subject=b)), "conjunction"

    def _adjective(self) -> DrawnPair:
        a, b = self._people(2)
        a, b = a.but(plural=True, determiner=""), b.but(adjectives=())
        main = self._either(a.but(adjectives=(self.pick(a.noun.adjectives),)), b)
        return self._say(main), self._say(main.but(subject=a.but(adjectives=()))), "adjective"

    def _object_place(self) -> DrawnPair:
        a, b, c = self._people(3)
        event = self._deed(a, b)
        near = b.but(modifiers=(Prepositional(Adjunct(self.pick(_NEAR), c)),))
        if self.chance(0.5):
            near = self._with(b, Relative(self._either(b, c), "subject", "who"))
        return self._say(event.but(object=near)), self._say(event), "modifier of the object"

    def _adverbial(self) -> DrawnPair:
        a, b = self._people(2)
        event = self._either(a, b)
        while "s" in event.verb.flags:
            event = self._either(a, b)
        later = event.but(time=self.pick(LEXICON.times["past"]))
        return self._say(later), self._say(event), "time"

    # Constituent.

    def _told(self, verbs: tuple[str, ...], case: str) -> DrawnPair:
        a, b, c = self._people(3)
        inner = self._either(b, c)
        premise = Event(LEXICON.believing[self.pick(verbs)], a, content=inner)
        return self._say(premise), self._say(inner), case

    def _nonfactive(self) -> DrawnPair:
        return self._told(_NONFACTIVE, "believed, said or doubted")

    def _factive(self) -> DrawnPair:
        return self._told(_FACTIVE, "known")

    def _clauses(self, word: str, *, aside: bool) -> DrawnPair:
        a, b, c, d = self._people(4)
        main, other = self._either(a, b), self._either(c, d)
        whole = clause(main)
        dependent = clause(other, rel="advcl").root
        dependent.left.insert(0, mark(word))
        if self.chance(0.5):
            whole.root.left[:0] = [dependent, comma()]
        else:
            whole.root.right.append(dependent)
        return write(close(whole)), self._say(other if aside else main), word

    def _if(self) -> DrawnPair:
        return self._clauses(self.pick(("if", "unless")), aside=True)

    def _because(self) -> DrawnPair:
        word = self.pick(("because", "since", "although"))
        return self._clauses(word, aside=self.chance(0.5))

    def _conjoined(self, word: str) -> DrawnPair:
        a, b, c, d = self._people(4)
        first, second = self._either(a, b), self._either(c, d)
        whole = clause(first)
        other = clause(second, rel="conj").root
        other.left[:0] = [comma(), Node(word, word, "CCONJ", "cc")]
        whole.root.right.append(other)
        return write(close(whole)), self._say(self.pick((first, second))), word

    def _and(self) -> DrawnPair:
        return self._conjoined("and")

    def _or(self) -> DrawnPair:
        return self._conjoined("or")

    def _hedged(self, words: tuple[str, ...], case: str) -> DrawnPair:
        a, b = self._people(2)
        event = self._either(a, b)
        whole = clause(event)
        whole.root.left[:0] = [adverb(self.pick(words)), comma()]
        return write(close(whole)), self._say(event), case

    def _probably(self) -> DrawnPair:
        return self._hedged(("probably", "supposedly", "perhaps", "hopefully"), "doubtful")

    def _surely(self) -> DrawnPair:
        return self._hedged(("certainly", "definitely", "clearly", "undoubtedly"), "certain")

    # Hypotheses that no heuristic would take.

    def _unrelated(self, heuristic: str) -> DrawnPair:
        """A premise of the heuristic's own kind with a hypothesis about somebody else."""
        premise, _, case = self.pick((*self._right(heuristic), *self._wrong(heuristic)))()
        words = set(premise.lower().rstrip(".").replace(",", "").split())
        a, b = self._people(2)
        hypothesis = self._say(self._either(a, b))
        while set(hypothesis.lower().rstrip(".").split()) <= words:
            a, b = self._people(2)
            hypothesis = self._say(self._either(a, b))
        return premise, hypothesis, f"{case}, new word"
