"""Fragments of logic in English: premises, a hypothesis, its label and the number of steps.

After Richardson et al. (2020). Every label is proved by `verdict` before a pair is used.
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
from functools import cache, lru_cache
from itertools import accumulate, product
from typing import Any, Literal, NamedTuple

import numpy as np

from bertology.data.grammar.lexicon import LEXICON

# A small model checker: does a hypothesis follow from premises, in every possible world?
#
# A formula is a nested tuple: `("is", key)`, `("not", f)`, `("all", f, g, …)`, `("any", f, g, …)`,
# `("if", f, g)`, `("least", n, f, g, …)` (at least n of them). The worlds of a space are numbered,
# and a set of worlds is one whole number with a bit for each: so a formula is worked out in all
# worlds at once, and a label is a proof, not an opinion.

ENTAILMENT, NEUTRAL, CONTRADICTION = 0, 1, 2
Formula = tuple[Any, ...]
SpaceName = tuple[Literal["facts", "order"], int]
"""`("facts", n)`: n facts that hold or not; `("order", n)`: the orders of n things, with ties."""


@cache
def _everywhere(space: SpaceName) -> int:
    kind, n = space
    worlds = 2**n if kind == "facts" else n**n
    return int((1 << worlds) - 1)


@cache
def _where(space: SpaceName, key: Any) -> int:
    """The worlds in which a fact (its number) holds, or one thing comes before another (a pair)."""
    kind, n = space
    if kind == "facts":
        # Blocks of 2**key worlds, in turn with the fact and without it.
        return _everywhere(space) // ((1 << int(2**key)) + 1)
    one, other = key
    ranks = product(range(n), repeat=n)
    return sum(1 << world for world, rank in enumerate(ranks) if rank[one] > rank[other])


def _worlds(formula: Formula, space: SpaceName) -> int:
    """The worlds in which a formula holds."""
    kind, *parts = formula
    everywhere = _everywhere(space)
    if kind == "is":
        return _where(space, parts[0])
    if kind == "least":
        return _at_least(parts[0], [_worlds(part, space) for part in parts[1:]], everywhere)
    sets = [_worlds(part, space) for part in parts]
    if kind == "not":
        return everywhere & ~sets[0]
    if kind == "if":
        return (everywhere & ~sets[0]) | sets[1]
    found = everywhere if kind == "all" else 0
    for one in sets:
        found = found & one if kind == "all" else found | one
    return found


def _at_least(n: int, sets: list[int], everywhere: int) -> int:
    """Worlds that are in n of the sets or more."""
    reached = [everywhere, *[0] * n]  # by how many of the sets so far
    for one in sets:
        for count in range(n, 0, -1):
            reached[count] |= reached[count - 1] & one
    return reached[n]


@lru_cache(maxsize=100_000)
def verdict(space: SpaceName, premises: tuple[Formula, ...], hypothesis: Formula) -> int:
    """Whether the hypothesis holds in all, some or none of the worlds of the premises.

    Premises that no world satisfies entail everything: they are a mistake of who wrote them.
    """
    given = _worlds(("all", *premises), space)
    so = _worlds(hypothesis, space)
    if not given:
        raise ValueError(f"no world satisfies {premises!r:.200}")
    if given & so == given:
        return ENTAILMENT
    return NEUTRAL if given & so else CONTRADICTION


def both_ways(formula: Formula, *, holds: bool) -> Formula:
    """The formula, or its negation."""
    return formula if holds else ("not", formula)


# Monotonicity: every, some, no and not every, with an adjective or a verb more or less.
#
# A form is two determiners and how many adjectives and verbs each sentence has. `verdict` labels
# each form once; then the forms are weighted so that the label does not depend on any of these
# alone (iterative proportional fitting): only together do they tell it.

_DETERMINERS = ("every", "some", "no", "not every")
_ADJECTIVES = ("happy", "old", "tall", "quiet", "tired", "clever", "polite", "hungry", "brave")
_VERBS = ("sang", "danced", "laughed", "slept", "waited", "smiled", "jumped", "shouted", "wept")
_MOST_ADJECTIVES, _MOST_VERBS = 2, 2
_KINDS = 2 ** (_MOST_ADJECTIVES + _MOST_VERBS)  # of people: with each adjective and verb, or not
_ROUNDS = 300


class _Form(NamedTuple):
    determiner: str
    other_determiner: str
    adjectives: int
    other_adjectives: int
    verbs: int
    other_verbs: int

    @property
    def steps(self) -> int:
        """How many words, or pairs of determiners, differ."""
        apart = abs(self.adjectives - self.other_adjectives) + abs(self.verbs - self.other_verbs)
        return apart + (self.determiner != self.other_determiner)


class MonotonicityDraw:
    """Random pairs with the label that is asked for."""

    def __init__(self, random: random.Random) -> None:
        self.random = random
        self.nouns = [n.lemma for n in LEXICON.nouns.values() if n.sort == "person"]

    def pair(self, label: int) -> tuple[str, str, int, int]:
        """Premise, hypothesis, label, steps."""
        forms, weights = _weighted()[label]
        (form,) = self.random.choices(forms, cum_weights=weights)
        noun = self.random.choice(self.nouns)
        adjectives = self.random.sample(_ADJECTIVES, _MOST_ADJECTIVES)
        verbs = self.random.sample(_VERBS, _MOST_VERBS)

        def text(determiner: str, of: int, did: int) -> str:
            phrase = " ".join([determiner, *adjectives[:of], noun, " and ".join(verbs[:did])])
            return f"{phrase[0].upper()}{phrase[1:]}."

        premise = text(form.determiner, form.adjectives, form.verbs)
        hypothesis = text(form.other_determiner, form.other_adjectives, form.other_verbs)
        return premise, hypothesis, label, form.steps


@lru_cache(maxsize=1)
def _weighted() -> dict[int, tuple[list[_Form], list[float]]]:
    """Forms by label, with their cumulative weights."""
    forms = [
        _Form(one, other, adjectives, other_adjectives, verbs, other_verbs)
        for one, other in product(_DETERMINERS, repeat=2)
        for adjectives, other_adjectives in product(range(_MOST_ADJECTIVES + 1), repeat=2)
        for verbs, other_verbs in product(range(1, _MOST_VERBS + 1), repeat=2)
    ]
    forms = [form for form in forms if form.steps]
    labels = [_label(form) for form in forms]
    weights = _even([[(form[k], label) for form, label in zip(forms, labels, strict=True)]
                     for k in range(len(_Form._fields))])  # fmt: skip
    found = {}
    for label in sorted(set(labels)):
        chosen = [i for i, one in enumerate(labels) if one == label]
        cumulative = list(accumulate(weights[i] for i in chosen))
        found[label] = ([forms[i] for i in chosen], cumulative)
    return found


def _even(features: list[list[tuple[object, int]]]) -> list[float]:
    """Weights with which every value of a feature goes with all labels alike.

    For each feature: the value and the label of every form.
    """
    kinds = len({label for _, label in features[0]})
    numbered = []
    for pairs in features:
        number = {pair: i for i, pair in enumerate(dict.fromkeys(pairs))}
        of_value = {value: [i for (v, _), i in number.items() if v == value] for value, _ in number}
        places = np.array([number[pair] for pair in pairs])
        numbered.append((places, [of_value[value] for value, _ in number]))
    weights = np.ones(len(features[0]))
    for _ in range(_ROUNDS):
        for places, alike in numbered:
            totals = np.bincount(places, weights=weights).tolist()
            means = [sum(totals[i] for i in same) / kinds for same in alike]
            scales = [mean / total for mean, total in zip(means, totals, strict=True)]
            weights *= np.array(scales)[places]
    found: list[float] = weights.tolist()
    return found


def _label(form: _Form) -> int:
    premise = _meaning(form.determiner, form.adjectives, form.verbs)
    hypothesis = _meaning(form.other_determiner, form.other_adjectives, form.other_verbs)
    # Whoever is spoken of exists.
    spoken_of = [_exists(of, 0, of_those=True) for of in (form.adjectives, form.other_adjectives)]
    return verdict(("facts", _KINDS), (*spoken_of, premise), hypothesis)


def _exists(adjectives: int, verbs: int, *, of_those: bool) -> Formula:
    """Somebody with the first adjectives who did all of the first verbs, or (if not) not all."""
    kinds = []
    for kind in range(_KINDS):
        has = all(kind >> i & 1 for i in range(adjectives))
        did = all(kind >> (_MOST_ADJECTIVES + i) & 1 for i in range(verbs))
        if has and did == of_those:
            kinds.append(("is", kind))
    return ("any", *kinds)


def _meaning(determiner: str, adjectives: int, verbs: int) -> Formula:
    some_did = _exists(adjectives, verbs, of_those=True)
    some_did_not = _exists(adjectives, verbs, of_those=False)
    meanings: dict[str, Formula] = {
        "every": ("not", some_did_not),
        "some": some_did,
        "no": ("not", some_did),
        "not every": some_did_not,
    }
    return meanings[determiner]


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
