"""Chains in cloze form: an answer that follows from one statement, or from several together.

An item is a set of statements, in random order, with ten questions: of each number of steps two,
with the same two candidates, of which one is right in the first and the other in the second. So
texts of one step are as long as those of five, and no words alone tell what is right:

- `comparison`: eight people, each taller than the next: Anna is [MASK] than Carl (taller, shorter).
  Each relation is said from either side. The two who are asked about are neither at the top nor at
  the bottom, so that each is taller than one and shorter than another.
- `containment`: the ring is in the box, …, the bag is in the attic; and a second chain of the same
  length that ends in the other candidate. The box is in the [MASK].

STEPS is how many statements the answer takes. `short` are the places of the statements that a
shorter text would keep: those that one of the two questions takes, and of comparisons one more at
each end, for what was said above.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import cycle, pairwise
from typing import NamedTuple

from bertology.data.clozes import MASK
from bertology.data.grammar.fragments import COMPARISONS, compared
from bertology.data.grammar.lexicon import LEXICON

CHAINS = ("comparison", "containment")
MOST_STEPS = 5


class ChainedCloze(NamedTuple):
    """A question, its answer, what else it could be, and the statements that lead to it."""

    question: str
    answer: str
    candidates: tuple[str, str]
    steps: int
    short: tuple[int, ...]


class ChainItem(NamedTuple):
    """Statements, and what is asked about them."""

    statements: str
    clozes: tuple[ChainedCloze, ...]


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

    def item(self, chain: str) -> ChainItem:
        """Statements of this kind with all their questions."""
        return self._comparisons() if chain == "comparison" else self._containments()

    def _comparisons(self) -> ChainItem:
        words = self.random.choice(COMPARISONS)
        people = self.random.sample(self._names, MOST_STEPS + 3)
        turned = [i % 2 == 0 for i in range(len(people) - 1)]
        self.random.shuffle(turned)
        links = [
            compared(one, other, words, turn)
            for (one, other), turn in zip(pairwise(people), turned, strict=True)
        ]
        text, places = self._mixed(links)
        clozes = []
        for steps in range(1, MOST_STEPS + 1):
            top = self.random.randint(1, MOST_STEPS + 1 - steps)
            pair = people[top], people[top + steps]
            short = tuple(sorted(places[top - 1 : top + steps + 1]))
            for one, other, answer in ((*pair, words[0]), (*pair[::-1], words[1])):
                question = f"So {one} is {MASK} than {other}."
                clozes.append(ChainedCloze(question, answer, words, steps, short))
        return ChainItem(text, tuple(clozes))

    def _containments(self) -> ChainItem:
        things = self.random.sample(self._things, 2)
        rooms = self.random.sample(self._rooms, 2)
        containers = self.random.sample(self._containers, 2 * (MOST_STEPS - 1))
        chains = [[things[i], *containers[i::2], rooms[i]] for i in range(2)]
        links = [f"The {a} is in the {b}." for chain in chains for a, b in pairwise(chain)]
        text, places = self._mixed(links)
        # In the order of the alphabet, which does not tell the right one.
        first, second = sorted(rooms)
        clozes = []
        for steps in range(1, MOST_STEPS + 1):
            ends = places[MOST_STEPS - steps : MOST_STEPS] + places[2 * MOST_STEPS - steps :]
            for chain in chains:
                question = f"So the {chain[-1 - steps]} is in the {MASK}."
                short = tuple(sorted(ends))
                clozes.append(ChainedCloze(question, chain[-1], (first, second), steps, short))
        return ChainItem(text, tuple(clozes))

    def _mixed(self, links: list[str]) -> tuple[str, list[int]]:
        """Statements in random order, and the place of each."""
        order = self.random.sample(range(len(links)), len(links))
        places = [order.index(i) for i in range(len(links))]
        return " ".join(links[i] for i in order), places


def chain_rows(
    seed: int, belongs: Callable[[str], bool]
) -> Iterator[tuple[str, dict[str, object]]]:
    """Items with all their questions, of those whose statements belong to a split."""
    draw, seen = ChainDraw(random.Random(seed)), set()
    for chain in cycle(CHAINS):
        item = draw.item(chain)
        while item.statements in seen or not belongs(item.statements):
            item = draw.item(chain)
        seen.add(item.statements)
        for one in item.clozes:
            yield (
                f"{item.statements} {one.question}",
                {
                    "answer": [one.answer],
                    "candidates": one.candidates,
                    "group": chain,
                    "item": f"{chain}-{len(seen)}",
                    "steps": one.steps,
                    "short": one.short,
                },
            )
