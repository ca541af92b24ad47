"""What static vectors are asked: how alike two words are, and the fourth word of an analogy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.annotated.word_contexts import spelt
from bertology.data.corpus import Field
from bertology.errors import CapabilityError
from bertology.stats.rank_agreement import PairLinks
from bertology.studies.geometry.shared.pair_turns import components

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
SIMILARITY, ADD, MULTIPLY = "similarity", "analogy by sum", "analogy by product"
_SOME = 512  # analogies that are answered together
_DIGITS = 10  # of cosines: what differs by rounding alone is the same rank
_EPSILON = 0.001  # of 3CosMul, as Levy and Goldberg have it


@dataclass(frozen=True)
class WordQuestions:
    """Pairs of words that people scored, or analogies a : b = c : d, words by number."""

    words: Sequence[str]
    """As they are written."""
    items: NDArray[np.int64]  # (N, 2) or (N, 4)
    judged: Floats | None  # (N,), of pairs
    groups: Sequence[str]
    """The section of each analogy; "" for pairs."""

    @property
    def scores(self) -> tuple[str, ...]:
        """What is scored."""
        return (ADD, MULTIPLY) if self.judged is None else (SIMILARITY,)

    @property
    def links(self) -> PairLinks:
        """Pairs share words; analogies share pairs, as Athens : Greece, or a word of them.

        Pairs that hang together by a word, as Athens : Greece and Greece : Greek, are one, unless
        that would be more than a quarter of all questions.
        """
        if self.judged is not None:
            return PairLinks(self.items[:, 0], self.items[:, 1])
        one = components(self.items.reshape(-1, 2), len(self.words))
        if 4 * np.bincount(one[self.items[:, [0, 2]]].ravel()).max() > len(self.items):
            return PairLinks.of([((a, b), (c, d)) for a, b, c, d in self.items.tolist()])
        return PairLinks(one[self.items[:, 0]], one[self.items[:, 2]])

    def answered(self, vectors: Floats, there: Bools) -> Floats:
        """(scores, N): cosines, or 1 where an analogy is right, among the words that are there."""
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        units = vectors / np.where(lengths > 0, lengths, 1.0)
        if self.judged is not None:
            cosines: Floats = (units[self.items[:, 0]] * units[self.items[:, 1]]).sum(axis=1)
            return np.round(cosines, _DIGITS)[None]
        found = [
            _analogies(units, there, self.items[at : at + _SOME])
            for at in range(0, len(self.items), _SOME)
        ]
        return np.concatenate(found, axis=1)


def _analogies(units: Floats, there: Bools, items: NDArray[np.int64]) -> Floats:
    """Sum and product of cosines (3CosAdd, 3CosMul); the words of a question are no answer."""
    a, b, c, d = items.T
    near_a, near_b, near_c = (units[words] @ units.T for words in (a, b, c))
    added = near_b - near_a + near_c
    shifted = [(near + 1) / 2 for near in (near_a, near_b, near_c)]
    multiplied = shifted[1] * shifted[2] / (shifted[0] + _EPSILON)
    rows, right = np.arange(len(items)), []
    for scores in (added, multiplied):
        scores[:, ~there] = -np.inf
        for words in (a, b, c):
            scores[rows, words] = -np.inf
        right.append(scores.argmax(axis=1) == d)
    return np.array(right, np.float64)


def asked_words(corpus: Corpus) -> list[list[str]]:
    """The words of each question; refuse a corpus that asks none of single words."""
    if {Field.TEXT_B, Field.LABEL} <= corpus.fields and Field.TARGETS not in corpus.fields:
        pairs = [list(one.texts) for one in corpus]
        if sum(len(word.split()) > 1 for pair in pairs for word in pair) <= len(pairs) / 10:
            return pairs
    elif Field.WORDS in corpus.fields and Field.GROUP in corpus.fields:
        found = [[str(word) for word in one.get(Field.WORDS)] for one in corpus]
        if all(len(words) == 4 for words in found):
            return found
    raise CapabilityError(
        f"Corpus {corpus.name!r} holds neither pairs of single words with a score nor analogies of "
        "four words.",
        hint="Word pairs are text, text_b and label; analogies have four words and a group. Such "
        "are grammar-word-pairs, simlex-999 and google-analogies.",
    )


def word_questions(corpus: Corpus, more: Sequence[str] = ()) -> WordQuestions:
    """The questions of a corpus; `more` words are possible answers too."""
    asked = asked_words(corpus)
    numbers: dict[str, int] = {}
    words: list[str] = []
    for word in [*(word for some in asked for word in some), *more]:
        if numbers.setdefault(spelt(word.strip(), lower=True), len(words)) == len(words):
            words.append(word.strip())
    items = [[numbers[spelt(word.strip(), lower=True)] for word in some] for some in asked]
    pairs = len(asked[0]) == 2
    return WordQuestions(
        words,
        np.array(items, np.int64),
        np.array(corpus.labels, np.float64) if pairs else None,
        [""] * len(items) if pairs else [str(one.get(Field.GROUP)) for one in corpus],
    )
