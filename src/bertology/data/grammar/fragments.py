"""Fragments of logic in English: premises, a hypothesis, its label and the number of steps.

After Richardson et al. (2020). Every label is proved by `logic.verdict` before a pair is used.
Names and places are drawn at random; the other words tell nothing of the label, alone or counted:
each hypothesis has its form before it has its label, and premises have the same function words
whatever the label. In monotonicity, forms are weighted so that no word of either sentence goes with
a label; one word of each together (every … no) do tell of it, since they are what it is about, and
in counting they tell a little. benchmarks/fragments.py measures it.

| fragment | what must be combined | steps |
| --- | --- | --- |
| negation | a fact and the negations around it | negations of the hypothesis + 1 |
| boolean | one of several is so (or not all are), and all but one are ruled out | statements |
| quantifier | everyone, someone, nobody, not everyone; everyone who … also … | statements |
| conditional | if …, then …, one after the other | conditionals |
| comparative | taller, shorter, …, one after the other | comparisons |
| counting | more than, at most …; with "only", what is not said is not so | things counted |
| monotonicity | every, some, no, not every; an adjective or verb more or less | changed words |

Neutral pairs have the steps of the pairs that they are mixed with. Whoever is spoken of exists.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from bertology.data.grammar.lexicon import LEXICON
from bertology.data.grammar.logic import (
    CONTRADICTION,
    ENTAILMENT,
    NEUTRAL,
    Formula,
    SpaceName,
    both_ways,
    verdict,
)
from bertology.data.grammar.monotonicity import MonotonicityDraw

FRAGMENTS = (
    "negation", "boolean", "quantifier", "conditional", "comparative", "counting", "monotonicity",
)  # fmt: skip
COMPARISONS = (
    ("taller", "shorter"), ("older", "younger"), ("faster", "slower"), ("stronger", "weaker"),
    ("richer", "poorer"),
)  # fmt: skip
_QUANTIFIERS = ("everyone", "someone", "nobody", "not everyone")
# Which statement about a place makes a hypothesis of a form true, open or false.
_QUANTIFIED: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "everyone": (("everyone",), ("someone",), ("nobody", "not everyone")),
    "someone": (("everyone", "someone"), ("not everyone",), ("nobody",)),
    "nobody": (("nobody",), ("not everyone",), ("everyone", "someone")),
    "not everyone": (("nobody", "not everyone"), ("someone",), ("everyone",)),
    "name": (("everyone",), ("someone", "not everyone"), ("nobody",)),
    "name not": (("nobody",), ("someone", "not everyone"), ("everyone",)),
}
_PEOPLE = 3  # of whom quantifiers speak: the one who is named, and two more
_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven")
_COUNTS = ("at least", "at most", "more than", "fewer than", "exactly")
_COUNTED = 7  # things in the lists of two people together
_UNSAID = 6  # other places that exist: enough for every number that is asked about


class Statement(NamedTuple):
    """A sentence and what it means."""

    text: str
    meaning: Formula


class Drawn(NamedTuple):
    """Premises in the order in which they were made, the hypothesis, and how hard it is."""

    space: SpaceName
    premises: Sequence[Statement]
    hypothesis: Statement
    steps: int


class Pair(NamedTuple):
    """A pair as a corpus has it."""

    premise: str
    hypothesis: str
    label: int
    steps: int


def listed(things: Sequence[str], last: str = "and") -> str:
    """Things in a row: `a, b and c`."""
    *first, end = things
    return f"{', '.join(first)} {last} {end}" if first else end


def compared(one: str, other: str, words: tuple[str, str], turned: bool) -> str:
    """`one` is above `other`, said from the one's side or, turned, from the other's."""
    if turned:
        return f"{other} is {words[1]} than {one}."
    return f"{one} is {words[0]} than {other}."


class FragmentDraw:
    """Random pairs of each fragment, with the label that is asked for."""

    def __init__(self, random: random.Random) -> None:
        self.random = random
        self.names = [noun.lemma for noun in LEXICON.names]
        nouns = LEXICON.nouns.values()
        self.places = [f"the {n.lemma}" for n in nouns if n.sort in ("town", "land")]
        self._monotonicity = MonotonicityDraw(random)
        self._makers: dict[str, Callable[[int], Drawn]] = {
            "negation": self._negation,
            "boolean": self._boolean,
            "quantifier": self._quantifier,
            "conditional": self._conditional,
            "comparative": self._comparative,
            "counting": self._counting,
        }

    def pair(self, fragment: str, label: int) -> Pair:
        """A pair of this fragment whose label is proved."""
        if fragment == "monotonicity":
            return Pair(*self._monotonicity.pair(label))
        drawn = self._makers[fragment](label)
        proved = verdict(
            drawn.space, tuple(s.meaning for s in drawn.premises), drawn.hypothesis.meaning
        )
        if proved != label:
            raise AssertionError(f"{fragment}: {drawn!r:.300} is not {label}")
        sentences = [statement.text for statement in drawn.premises]
        self.random.shuffle(sentences)
        return Pair(" ".join(sentences), drawn.hypothesis.text, label, drawn.steps)

    def some(self, options: Sequence[str], n: int) -> list[str]:
        """So many of the options, none twice."""
        return self.random.sample(options, n)

    def flip(self) -> bool:
        """True or false, each as likely."""
        return self.random.random() < 0.5

    def _negation(self, label: int) -> Drawn:
        depth, half = self.random.randrange(4), self.random.randint(1, 2)
        people, places = self.some(self.names, 2 * half), self.some(self.places, 2 * half)
        # As many facts as denials, so that the count of "not" tells nothing.
        signs = [True, False] * half
        premises = [
            Statement(_visit(who, where, sign), both_ways(("is", i), holds=sign))
            for i, (who, where, sign) in enumerate(zip(people, places, signs, strict=True))
        ]
        one = self.random.randrange(half) * 2
        said = depth % 2 == 0  # what the hypothesis comes to
        if label == NEUTRAL:
            # One person and another's place: nothing is said of these two.
            here, there = self.random.sample([one, one + 1], 2)
            who, where, fact = people[here], places[there], 2 * half
        else:
            asked = one + (said != (label == ENTAILMENT))
            who, where, fact = people[asked], places[asked], asked
        inner = depth > 0 and self.flip()
        text = _visit(who, where, not inner)
        for _ in range(depth - inner):
            text = f"It is not true that {_inside(text, who)}"
        hypothesis = Statement(text, both_ways(("is", fact), holds=said))
        return Drawn(("facts", 2 * half + 1), premises, hypothesis, depth + 1)

    def _boolean(self, label: int) -> Drawn:
        size = self.random.randint(2, 4)
        people, places = self.some(self.names, 3), self.some(self.places, 2 * size)
        asked = self.random.randrange(2)
        premises: list[Statement] = []
        # Of the first, one thing of several is so; of the second, not all are: both are always
        # there, so that words do not tell to which of them the hypothesis belongs.
        for who, some in ((0, True), (1, False)):
            of, first = places[who * size : (who + 1) * size], who * size
            text = f"{people[who]} {_one_of(self.some(of, size), some)}"
            facts = [both_ways(("is", first + i), holds=some) for i in range(size)]
            premises.append(Statement(text, ("any", *facts)))
            open_ = label == NEUTRAL if who == asked else self.flip()
            for i in range(size):
                # The first place stays; where it is left open, the second does, too. What is said
                # of these is about somebody else, and fills up the count of words.
                elsewhere = i == 0 or (open_ and i == 1)
                fact = ("is", 2 * size + 2 * who + i if elsewhere else first + i)
                text = _visit(people[2 if elsewhere else who], of[i], not some)
                premises.append(Statement(text, both_ways(fact, holds=not some)))
        said = self.flip() if label == NEUTRAL else (asked == 0) == (label == ENTAILMENT)
        target = asked * size
        text = _visit(people[asked], places[target], said)
        hypothesis = Statement(text, both_ways(("is", target), holds=said))
        return Drawn(("facts", 2 * size + 4), premises, hypothesis, size)

    def _quantifier(self, label: int) -> Drawn:
        links = self.random.randrange(3)
        form = self.random.choice(list(_QUANTIFIED))
        asked = self.random.choice(_QUANTIFIED[form][label])
        places = self.some(self.places, len(_QUANTIFIERS) + links)
        premises = [
            _quantified(quantifier, "", places[i], i) for i, quantifier in enumerate(_QUANTIFIERS)
        ]
        at = _QUANTIFIERS.index(asked)
        for link in range(len(_QUANTIFIERS), len(places)):
            # Forward, what everyone or someone did; backward, what nobody or not everyone did.
            one, other = (at, link) if asked in ("everyone", "someone") else (link, at)
            premises.append(_linked(places, one, other))
            at = link
        name = self.random.choice(self.names)
        hypothesis = _quantified(form, name, places[at], at)
        return Drawn(("facts", _PEOPLE * len(places)), premises, hypothesis, links + 1)

    def _conditional(self, label: int) -> Drawn:
        links = self.random.randint(1, 3)
        atoms = links + 1
        people, places = self.some(self.names, 2 * atoms), self.some(self.places, 2 * atoms)
        signs = [self.flip() for _ in range(atoms)]
        broken = self.random.randint(-1, links - 1) if label == NEUTRAL else None
        premises: list[Statement] = []
        # A second chain with every sign turned keeps the count of "not" the same.
        for first, turned in ((0, False), (atoms, True)):
            said = [sign != turned for sign in signs]
            literals = [
                Statement(
                    _visit(people[first + i], places[first + i], said[i]),
                    both_ways(("is", first + i), holds=said[i]),
                )
                for i in range(atoms)
            ]
            if broken == -1:  # what the first condition says is not so
                denied = not said[0]
                text = _visit(people[first], places[first], denied)
                premises.append(Statement(text, both_ways(("is", first), holds=denied)))
            else:
                premises.append(literals[0])
            for i in range(links):
                before, after = literals[i], literals[i + 1]
                if i == broken:  # the condition is the other way round
                    before, after = after, before
                premises.append(_condition(before, after))
        last = self.random.choice((0, atoms)) + links
        sign = signs[links] != (last >= atoms)
        said_last = self.flip() if label == NEUTRAL else sign == (label == ENTAILMENT)
        hypothesis = Statement(
            _visit(people[last], places[last], said_last), both_ways(("is", last), holds=said_last)
        )
        return Drawn(("facts", 2 * atoms), premises, hypothesis, links)

    def _comparative(self, label: int) -> Drawn:
        links, words = self.random.randint(1, 4), self.random.choice(COMPARISONS)
        people = self.some(self.names, links + 2)
        extra = links + 1
        edges = [(i, i + 1) for i in range(links)]
        if self.flip():  # one more person above somebody
            joint = self.random.randint(1, links)
            edges.append((extra, joint))
            unknown = self.random.randrange(joint)
        else:  # or below
            joint = self.random.randrange(links)
            edges.append((joint, extra))
            unknown = self.random.randint(joint + 1, links)
        turned = [i % 2 == 0 for i in range(len(edges))]
        self.random.shuffle(turned)
        premises = [
            Statement(compared(people[a], people[b], words, turn), ("is", (a, b)))
            for (a, b), turn in zip(edges, turned, strict=True)
        ]
        one, other = (extra, unknown) if label == NEUTRAL else (0, links)
        if label == CONTRADICTION or (label == NEUTRAL and self.flip()):
            one, other = other, one
        text = compared(people[one], people[other], words, self.flip())
        return Drawn(("order", links + 2), premises, Statement(text, ("is", (one, other))), links)

    def _counting(self, label: int) -> Drawn:
        form, asked = self.random.choice(_COUNTS), self.random.randint(2, 5)
        only, n = self.random.choice(
            [
                (only, n)
                for only in (True, False)
                for n in range(1, _COUNTED)
                if _count_label(form, asked, n, only=only) == label
            ]
        )
        who, other = self.some(self.names, 2)
        places = self.some(self.places, _COUNTED)
        mine, others = places[:n], places[n:]
        texts = {
            True: lambda person, of: f"{person} visited only {listed(of)}.",
            False: lambda person, of: f"{person} visited {listed(of)}.",
        }
        unsaid: list[Formula] = [("is", n + i) for i in range(_UNSAID)]
        meaning: Formula = ("all", *(("is", i) for i in range(n)))
        if only:
            meaning = ("all", meaning, ("not", ("any", *unsaid)))
        premises = [
            Statement(texts[only](who, mine), meaning),
            # Of somebody else's visits nothing follows for these.
            Statement(texts[not only](other, others), ("all",)),
        ]
        facts: list[Formula] = [("is", i) for i in range(n + _UNSAID)]
        text = f"{who} visited {form} {_NUMBERS[asked]} places."
        hypothesis = Statement(text, _count_formula(form, asked, facts))
        return Drawn(("facts", n + _UNSAID), premises, hypothesis, n)


def _visit(who: str, where: str, sign: bool) -> str:
    return f"{who} visited {where}." if sign else f"{who} did not visit {where}."


def _one_of(places: Sequence[str], some: bool) -> str:
    if some:
        return f"visited {listed(places, 'or')}."
    return f"did not visit {'both' if len(places) == 2 else 'all of'} {listed(places)}."


def _inside(text: str, name: str) -> str:
    return text if text.startswith(name) else text[0].lower() + text[1:]


def _condition(before: Statement, after: Statement) -> Statement:
    text = f"If {before.text.removesuffix('.')}, then {after.text}"
    return Statement(text, ("if", before.meaning, after.meaning))


def _fact(person: int, place: int) -> Formula:
    return ("is", place * _PEOPLE + person)


def _quantified(form: str, name: str, where: str, place: int) -> Statement:
    """The one who is named is the first of the people."""
    visits: list[Formula] = [_fact(person, place) for person in range(_PEOPLE)]
    if form in ("name", "name not"):
        said = form == "name"
        return Statement(_visit(name, where, said), both_ways(visits[0], holds=said))
    meanings: dict[str, Formula] = {
        "everyone": ("all", *visits),
        "someone": ("any", *visits),
        "nobody": ("not", ("any", *visits)),
        "not everyone": ("not", ("all", *visits)),
    }
    return Statement(f"{form.capitalize()} visited {where}.", meanings[form])


def _linked(places: Sequence[str], one: int, other: int) -> Statement:
    links: list[Formula] = [
        ("if", _fact(person, one), _fact(person, other)) for person in range(_PEOPLE)
    ]
    text = f"Everyone who visited {places[one]} also visited {places[other]}."
    return Statement(text, ("all", *links))


def _count_formula(form: str, asked: int, facts: Sequence[Formula]) -> Formula:
    least, more = ("least", asked, *facts), ("least", asked + 1, *facts)
    formulas: dict[str, Formula] = {
        "at least": least,
        "at most": ("not", more),
        "more than": more,
        "fewer than": ("not", least),
        "exactly": ("all", least, ("not", more)),
    }
    return formulas[form]


def _count_label(form: str, asked: int, n: int, *, only: bool) -> int:
    """What a list of n places says of the count; `verdict` proves it again."""
    so = {
        "at least": n >= asked,
        "at most": n <= asked,
        "more than": n > asked,
        "fewer than": n < asked,
        "exactly": n == asked,
    }[form]
    if only:
        return ENTAILMENT if so else CONTRADICTION
    # More places may follow: a count that can only grow.
    if form in ("at least", "more than"):
        return ENTAILMENT if so else NEUTRAL
    too_many = n >= asked if form == "fewer than" else n > asked
    return CONTRADICTION if too_many else NEUTRAL
