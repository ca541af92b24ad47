"""Everyday objects, their properties, and what can be done with them: a table of our own.

Three relations, as Forbes, Holtzman and Choi (2019) have them:

- object-property: "An apple is sweet."
- object-affordance: "He ate the apple."
- affordance-property: "If you can eat something, then it is sweet." It is so if more than half of
  the objects have the property with which it can be done; only of affordances of three objects or
  more.

The table is our own, by what is typical: what stands in a row is so, all else is not. So it is a
small check that works everywhere, no measure of what people think.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

from bertology.data.grammar.lexicon import LEXICON, read_table
from bertology.data.grammar.rows import Row

_TABLE = read_table("objects")
PROPERTIES, AFFORDANCES = _TABLE["properties"], _TABLE["affordances"]
OBJECTS = {name: told.split(" | ") for name, told in _TABLE["objects"].items()}
_FEWEST = 3  # objects that afford something, for what follows from it

ObjectRow = tuple[str, int, dict[str, object]]  # text, label, annotations


def object_rows(seed: int, n: int) -> list[ObjectRow]:
    """So many sentences of the table, drawn by the seed if these are not all."""
    every = list(_rows())
    chosen: Sequence[int] = range(len(every))
    if n < len(every):
        chosen = random.Random(seed).sample(chosen, n)
    return [every[i] for i in sorted(chosen)]


def _rows() -> Iterator[ObjectRow]:
    has = {name: set(given.split()) for name, (given, _) in OBJECTS.items()}
    affords = {name: set(given.split()) for name, (_, given) in OBJECTS.items()}
    for name in OBJECTS:
        for group, words in PROPERTIES.items():
            text = f"{_article(name)} {name} {words}."
            yield text, int(group in has[name]), _about(name, group, "object-property")
    for name in OBJECTS:
        for group, past in AFFORDANCES.items():
            text = f"He {past} the {name}."
            yield text, int(group in affords[name]), _about(name, group, "object-affordance")
    for done in AFFORDANCES:
        among = [has[name] for name in OBJECTS if done in affords[name]]
        for group, words in PROPERTIES.items():
            if len(among) >= _FEWEST:
                text = f"If you can {done} something, then it {words}."
                so = sum(group in one for one in among) / len(among)
                about = _about(done, group, "affordance-property") | {"share": so}
                yield text, int(so > 0.5), about


def _about(entity: str, group: str, relation: str) -> dict[str, object]:
    return {"entity": entity, "group": group, "relation": relation}


def _article(name: str) -> str:
    return "An" if name[0] in "aeiou" else "A"


OBJECT_SENTENCES = sum(1 for _ in _rows())


# Pairs of nouns and how similar they are, by what the grammar's tables say of them.
#
# The similarity of two objects is what they share of all that either has: the properties and
# affordances of the table of objects, and the sort that the lexicon counts them to. What few
# objects have counts for more (the logarithm of how many times rarer it is than being an object).
# It goes from 0 to 10. So it is a small check that works everywhere, no measure of what people
# think.

_MOST = 10


def word_pair_rows(seed: int, n: int) -> list[Row]:
    """So many pairs of the table, drawn by the seed if these are not all."""
    every = list(_similar_rows())
    chosen: Sequence[int] = range(len(every))
    if n < len(every):
        chosen = random.Random(seed).sample(chosen, n)
    return [every[i] for i in sorted(chosen)]


def _similar_rows() -> Iterator[Row]:
    features = {}
    for name, (properties, affordances) in OBJECTS.items():
        noun = LEXICON.nouns.get(name)
        sort = {f"a kind of {noun.sort}"} if noun is not None else set()
        done = {f"to {what}" for what in affordances.split()}
        features[name] = frozenset({*properties.split(), *done, *sort})
    counts = Counter(feature for has in features.values() for feature in has)
    weights = {feature: math.log(len(features) / count) for feature, count in counts.items()}
    for one, other in combinations(features, 2):
        shared, either = features[one] & features[other], features[one] | features[other]
        # Summed in order: sets have another one in each process.
        both, whole = (sum(weights[f] for f in sorted(part)) for part in (shared, either))
        yield one, other, round(_MOST * both / whole, 2), {}


WORD_PAIRS = sum(1 for _ in _similar_rows())
