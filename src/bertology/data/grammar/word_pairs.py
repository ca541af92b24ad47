"""Pairs of nouns and how similar they are, by what the grammar's tables say of them.

The similarity of two objects is what they share of all that either has: the properties and
affordances of the table of objects, and the sort that the lexicon counts them to. What few objects
have counts for more (the logarithm of how many times rarer it is than being an object). It goes
from 0 to 10. So it is a small check that works everywhere, no measure of what people think.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

from bertology.data.grammar.lexicon import LEXICON
from bertology.data.grammar.objects import OBJECTS
from bertology.data.grammar.rows import Row

_MOST = 10


def word_pair_rows(seed: int, n: int) -> list[Row]:
    """So many pairs of the table, drawn by the seed if these are not all."""
    every = list(_rows())
    chosen: Sequence[int] = range(len(every))
    if n < len(every):
        chosen = random.Random(seed).sample(chosen, n)
    return [every[i] for i in sorted(chosen)]


def _features() -> dict[str, frozenset[str]]:
    found = {}
    for name, (properties, affordances) in OBJECTS.items():
        noun = LEXICON.nouns.get(name)
        sort = {f"a kind of {noun.sort}"} if noun is not None else set()
        done = {f"to {what}" for what in affordances.split()}
        found[name] = frozenset({*properties.split(), *done, *sort})
    return found


def _rows() -> Iterator[Row]:
    features = _features()
    counts = Counter(feature for has in features.values() for feature in has)
    weights = {feature: math.log(len(features) / count) for feature, count in counts.items()}
    for one, other in combinations(features, 2):
        shared, either = features[one] & features[other], features[one] | features[other]
        # Summed in order: sets have another one in each process.
        both, whole = (sum(weights[f] for f in sorted(part)) for part in (shared, either))
        yield one, other, round(_MOST * both / whole, 2), {}


WORD_PAIRS = sum(1 for _ in _rows())
