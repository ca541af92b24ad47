"""Do states of words lead to their translations, and does the offset of two languages help?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats, Ints

HOW = ("nearest", "shifted")
FEWEST = 5
"""Words that are asked, of one half and direction."""


@dataclass
class Vocabulary:
    """The words of one language in one half of the sentences, and sums of their states."""

    numbers: dict[str, int] = field(default_factory=dict)
    sums: dict[int, NDArray[np.float32]] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)

    def add(self, words: Sequence[str], states: NDArray[np.float32]) -> list[int]:
        """Numbers of words whose states (layers, words, width) are given; case is left out."""
        found = [self.numbers.setdefault(word.casefold(), len(self.numbers)) for word in words]
        for at, number in enumerate(found):
            here = self.sums.get(number)
            self.sums[number] = states[:, at] if here is None else here + states[:, at]
            self.counts[number] = self.counts.get(number, 0) + 1
        return found

    def means(self) -> NDArray[np.float32]:
        """(words, layers, width)"""
        return np.stack([self.sums[n] / self.counts[n] for n in range(len(self.numbers))])

    def centre(self) -> Floats:
        """(layers, width): over all words of all sentences."""
        total = np.stack(list(self.sums.values())).sum(axis=0, dtype=np.float64)
        return np.asarray(total / max(sum(self.counts.values()), 1))


@dataclass
class Translated:
    """Two languages and two halves: their words, and which words people aligned."""

    words: list[list[Vocabulary]] = field(
        default_factory=lambda: [[Vocabulary(), Vocabulary()], [Vocabulary(), Vocabulary()]]
    )
    """By half, then by language."""
    linked: list[set[tuple[int, int]]] = field(default_factory=lambda: [set(), set()])

    def asked(self) -> list[tuple[int, int, Ints, NDArray[np.uint8]]]:
        """By half and direction: the words asked, and hits (how, layers, words).

        The nearest word of the other language, in all sentences of the half, by Euclidean distance;
        `shifted`: after the mean difference of the two languages in the other half was added.
        """
        found = []
        for half in (0, 1):
            for direction in (0, 1):
                links = {(b, a) if direction else (a, b) for a, b in self.linked[half]}
                asked = np.array(sorted({a for a, _ in links}), np.int64)
                if len(asked) < FEWEST:
                    continue
                own, other = (self.words[half][side] for side in (direction, 1 - direction))
                centres = [
                    self.words[1 - half][side].centre() for side in (direction, 1 - direction)
                ]
                right = np.zeros((len(asked), len(other.numbers)), bool)
                row = {word: at for at, word in enumerate(asked.tolist())}
                for a, b in links:
                    right[row[a], b] = True
                x, y = own.means()[asked], other.means()
                hits = np.zeros((len(HOW), x.shape[1], len(asked)), np.uint8)
                for layer in range(x.shape[1]):
                    shift = (centres[1] - centres[0])[layer].astype(np.float32)
                    to = y[:, layer]
                    for number, of in enumerate((x[:, layer], x[:, layer] + shift)):
                        nearest = (of @ to.T - (to * to).sum(axis=1) / 2).argmax(axis=1)
                        hits[number, layer] = right[np.arange(len(asked)), nearest]
                found.append((half, direction, asked, hits))
        return found
