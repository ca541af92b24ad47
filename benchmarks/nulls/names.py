"""Nulls of name-guesses: random models, and a model that follows names to answers at random."""

from __future__ import annotations

import random
from collections.abc import Mapping

import planted_facts
import planted_links
from bertology.data.corpus import Corpus, Example, Field
from bertology.studies.cloze.name_guesses import NameGuesses
from nulls import HOLDS, Null, judged
from nulls.facts import random_facts, random_masked_lm

_NOUNS = ("r0=city", "r1=language", "r2=country")
FIELDS = frozenset({Field.TEXT, Field.ANSWER, Field.GROUP, Field.ENTITY})


def of_random_models(seed: int) -> Mapping[str, str]:
    facts = random_facts(seed, versions=False)
    study = NameGuesses(nouns=_NOUNS, resamples=100, seed=seed)
    return judged("name-guesses", planted_links.ask(study, random_masked_lm(seed), facts))


def of_shuffled_answers(seed: int) -> Mapping[str, str]:
    """The model says to each name what its table has; the truth has nothing to do with it."""
    rng, facts = random.Random(seed), list[Example]()
    for i in range(120):
        name = rng.choice(planted_facts.SUBJECTS)
        answer = rng.choice(planted_facts.OBJECTS[:4])
        about = {"answer": [answer], "group": "P1", "entity": f"{name} {i}"}
        facts.append(Example(str(i), f"{name} {i} comes from [MASK] .", annotations=about))
    study = NameGuesses(nouns=("P1=from",), resamples=100, seed=seed)
    model = planted_facts.encoder(planted_facts.model())
    return judged("name-guesses", planted_links.ask(study, model, Corpus("facts", facts, FIELDS)))


_FALSE = dict.fromkeys(("success-comes-from-names", "names-mislead"), HOLDS)
NULLS = (
    Null("random model (guesses from names)", of_random_models, _FALSE),
    Null("answers that have nothing to do with names", of_shuffled_answers, _FALSE),
)
