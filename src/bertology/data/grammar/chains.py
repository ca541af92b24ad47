"""Chains in cloze form: an answer that follows from one statement, or from several together.

Every cloze has two candidates, each as often right, that words alone do not tell apart:

- `comparison`: Anna is taller than Ben, Ben is taller than Carl: Anna is [MASK] than Carl (taller,
  shorter). Each relation is said from either side, and one person stands outside the chain.
- `containment`: the ring is in the box, the box is in the attic: the ring is in the [MASK]. A
  second chain of the same length ends in the other candidate.

STEPS is how many statements the answer takes. Statements are in random order.
"""

from __future__ import annotations

import random
from itertools import pairwise
from typing import NamedTuple

from bertology.data.clozes import MASK
from bertology.data.grammar.fragments import COMPARISONS, compared
from bertology.data.grammar.lexicon import LEXICON

__all__ = ["CHAINS", "MOST_STEPS", "ChainDraw", "ChainedCloze"]

CHAINS = ("comparison", "containment")
MOST_STEPS = 5


class ChainedCloze(NamedTuple):
    """A cloze, its answer, what else it could be, and the statements that lead to it."""

    text: str
    answer: str
    candidates: tuple[str, str]
    steps: int


class ChainDraw:
    """Random chains."""

    def __init__(self, random: random.Random) -> None:
        self.random = random
        nouns = LEXICON.nouns.values()
        self._names = [noun.lemma for noun in LEXICON.names]
        self._things = [
            n.lemma for n in nouns if n.sort in ("valuable", "fruit") and n.lemma != "statue"
        ]
        self._containers = [n.lemma for n in nouns if n.sort == "container"]
        self._rooms = [n.lemma for n in nouns if n.sort == "home"]

    def cloze(self, chain: str, steps: int) -> ChainedCloze:
        """A cloze of this kind that takes so many steps."""
        return self._comparison(steps) if chain == "comparison" else self._containment(steps)

    def _comparison(self, steps: int) -> ChainedCloze:
        words = self.random.choice(COMPARISONS)
        people = self.random.sample(self._names, steps + 2)
        outside = steps + 1
        pairs = [(i, i + 1) for i in range(steps)]
        at = self.random.randint(1, steps)
        pairs.append((outside, at) if self.random.random() < 0.5 else (at - 1, outside))
        turned = [i % 2 == 0 for i in range(len(pairs))]
        self.random.shuffle(turned)
        statements = [
            compared(people[a], people[b], words, turn)
            for (a, b), turn in zip(pairs, turned, strict=True)
        ]
        self.random.shuffle(statements)
        answer = self.random.randrange(2)
        one, other = (people[0], people[steps])[:: 1 if answer == 0 else -1]
        statements.append(f"So {one} is {MASK} than {other}.")
        return ChainedCloze(" ".join(statements), words[answer], words, steps)

    def _containment(self, steps: int) -> ChainedCloze:
        things = self.random.sample(self._things, 2)
        rooms = self.random.sample(self._rooms, 2)
        containers = self.random.sample(self._containers, 2 * (steps - 1))
        statements = []
        for i in range(2):
            chain = [things[i], *containers[i * (steps - 1) : (i + 1) * (steps - 1)], rooms[i]]
            statements += [f"The {a} is in the {b}." for a, b in pairwise(chain)]
        self.random.shuffle(statements)
        asked = self.random.randrange(2)
        statements.append(f"So the {things[asked]} is in the {MASK}.")
        # In the order of the alphabet, which does not tell the right one.
        first, second = sorted(rooms)
        return ChainedCloze(" ".join(statements), rooms[asked], (first, second), steps)
