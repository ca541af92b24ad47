"""Monotonicity: every, some, no and not every, with an adjective or a verb more or less.

A form is two determiners and how many adjectives and verbs each sentence has. `logic.verdict`
labels each form once; then the forms are weighted so that the label does not depend on any of these
alone (iterative proportional fitting): only together do they tell it.
"""

from __future__ import annotations

import random
from functools import lru_cache
from itertools import accumulate, product
from typing import NamedTuple

import numpy as np

from bertology.data.grammar.lexicon import LEXICON
from bertology.data.grammar.logic import Formula, verdict

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
