"""Paradigms of negative polarity items: eight sentences each, of which the rule says what is good.

A negative polarity item (NPI, "ever") needs a word that licenses it ("not") above it. A paradigm
has two clauses and crosses three factors (Warstadt et al. 2019): is there a licensor or a plain
word in its place, would the NPI be in its scope, is there an NPI or a plain word in its place? A
sentence is bad if it has an NPI without a licensor, or outside its scope:

    the farmers had not told the doctors that the pilots had ever seen the nurses.    good
    the farmers had ever told the doctors that the pilots had not seen the nurses.    bad

Plain words are as many as those in whose place they stand. NPIs are weak ones, which all
environments license. No plain word of one environment licenses in another.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import count, product
from typing import NamedTuple

from bertology.data.grammar.lexicon import LEXICON

FACTORS = ("licensor", "scope", "npi_present")

ENVIRONMENTS: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "negation": (("not",), ("also",)),
    "determiner": (("no",), ("many",)),
    "adverb": (("rarely", "seldom", "hardly"), ("sometimes", "usually")),
    "only": (("only",), ("clearly",)),
    "question": (("whether",), ("that",)),
    "conditional": (("if",), ("because",)),
    "quantifier": (("every",), ("some",)),
    "before": (("before",), ("after",)),
}
"""Licensors of each environment, and plain words that stand in their place."""

NPIS = {
    "ever": "often",
    "any": "these",
    "anyone": "everyone",
    "anywhere": "elsewhere",
    "at all": "as well",
    "even once": "long ago",
    "much": "twice",
}
"""Negative polarity items, and the plain words that stand in their place."""

_TELLING = ("told", "informed", "reminded", "warned", "assured", "convinced")
_ASKABLE = 3  # the first of them also take "whether"
_SIDE_BY_SIDE = ("conditional", "quantifier", "before")  # no clause is part of what is told


class ParadigmSentence(NamedTuple):
    """One of the eight: its text, whether it is good, its factors, and which paradigm it is of."""

    text: str
    good: bool
    factors: dict[str, str]
    environment: str
    npi: str
    paradigm: str


class _Clause(NamedTuple):
    """Two people in the plural and what one has done to the other."""

    subject: str
    verb: str
    object: str

    def words(self, item: str = "", at: str = "", licensor: str = "", place: str = "") -> list[str]:
        """The clause with an item or its plain word, and a licensor or its plain word."""
        first = {"determiner": [licensor], "only": [licensor, "the"]}.get(place, ["the"])
        what = {"any": [item, self.object], "anyone": [item]}.get(at, ["the", self.object])
        before = [licensor] if place in ("negation", "adverb") else []
        before += [item] if at == "ever" else []
        after = [item] if at and at not in ("ever", "any", "anyone") else []
        return [*first, self.subject, "had", *before, self.verb, *what, *after]


class LicensingDraw:
    """Random paradigms."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def paradigm(self, number: int) -> tuple[str, list[ParadigmSentence]]:
        """What makes a paradigm another one (its content words), and its eight sentences.

        Environments and items take turns with the number, so that any number of paradigms has all
        of them about as often.
        """
        environment = list(ENVIRONMENTS)[number % len(ENVIRONMENTS)]
        return self._paradigm(environment, list(NPIS)[number % len(NPIS)])

    def _paradigm(self, environment: str, npi: str) -> tuple[str, list[ParadigmSentence]]:
        people = self.rng.sample(LEXICON.people_in_plural, 4)
        seen, done = (v.participle for v in self.rng.sample(LEXICON.reversible, 2))
        telling = _TELLING[:_ASKABLE] if environment == "question" else _TELLING
        outer = done if environment in _SIDE_BY_SIDE else self.rng.choice(telling)
        a, b, c, d = (noun.plural for noun in people)
        if environment == "quantifier":
            a = people[0].lemma
        upper, lower = _Clause(a, outer, b), _Clause(c, seen, d)
        words = [self.rng.choice(of) for of in ENVIRONMENTS[environment]]
        key = f"{environment}/{npi}/{a} {outer} {b} {c} {seen} {d}"
        found = []
        for licensor, scope, present in product((True, False), repeat=3):
            item = npi if present else NPIS[npi]
            text = _said(environment, (upper, lower), words[not licensor], scope, (npi, item))
            said = ("yes" if is_so else "no" for is_so in (licensor, scope, present))
            found.append(
                ParadigmSentence(
                    f"{text[0].upper()}{text[1:]}.",
                    not present or (licensor and scope),
                    dict(zip(FACTORS, said, strict=True)),
                    environment,
                    npi,
                    key,
                )
            )
        return key, found


def _said(
    environment: str,
    clauses: tuple[_Clause, _Clause],
    licensor: str,
    scope: bool,
    item: tuple[str, str],
) -> str:
    """A sentence without its full stop; `item` is which item it is, and what stands there."""
    upper, lower = clauses
    npi, word = item
    inside, outside = (word, npi), ("", "")
    if not scope:
        inside, outside = outside, inside
    if environment == "quantifier":
        _, *restricted = lower.words(*inside)  # who had …: the noun of the clause is the quantified
        _, _, *main = upper.words(*outside)
        return " ".join([licensor, upper.subject, "who", *restricted[1:], *main])
    if environment in _SIDE_BY_SIDE:
        return f"{licensor} {' '.join(lower.words(*inside))}, {' '.join(upper.words(*outside))}"
    joint = licensor if environment == "question" else "that"
    # In scope, the licensor is in the clause above the item; else each is in the other's place.
    above, below = (licensor, environment), ("", "")
    if not scope:
        above, below = below, above
    return " ".join([*upper.words(*outside, *above), joint, *lower.words(*inside, *below)])


def licensing_rows(
    seed: int, fits: Callable[[str], bool]
) -> Iterator[tuple[str, int, dict[str, object]]]:
    """Texts, labels and annotations of paradigms whose key `fits` a split; paradigms stay whole."""
    draw, seen = LicensingDraw(random.Random(seed)), set[str]()
    for number in count():
        key, sentences = draw.paradigm(number)
        while key in seen or not fits(key):
            key, sentences = draw.paradigm(number)
        seen.add(key)
        for one in sentences:
            about: dict[str, object] = {"group": one.environment, "item": key, "npi": one.npi}
            yield one.text, int(one.good), about | {"sentence_labels": one.factors}
