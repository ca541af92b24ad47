"""Paradigms of sentences that cross three factors: licensor, scope and item of negative polarity.

A sentence has an acceptability (LABEL), an environment (GROUP), a paradigm (ITEM), and three
factors (SENTENCE_LABELS): is there a licensor, would the item be in its scope, is there an item?
Where a paradigm has the four sentences in scope, it gives minimal pairs: two sentences that differ
in one factor, of which one is acceptable.

A model may like some words or orders of words wherever they stand. So pairs also come "beyond
words": what a change of licensor or scope does to the sentence with the item, less what it does to
the same sentence with a plain word in the item's place. What words are liked for falls out of it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats
from bertology.errors import DataError
from bertology.studies.designs.clozes import PairBlank, pair_blank

if TYPE_CHECKING:
    import xarray as xr

    from bertology.data.corpus import Corpus

Cell = tuple[int, int, int]

FACTORS = ("licensor", "scope", "npi_present")
_GOOD: Cell = (1, 1, 1)
CONTRASTS: Mapping[str, Sequence[tuple[Cell, Cell]]] = {
    "licensor": [(_GOOD, (0, 1, 1))],
    "scope": [(_GOOD, (1, 0, 1))],
    "npi": [((0, 1, 0), (0, 1, 1)), ((1, 0, 0), (1, 0, 1)), ((0, 0, 0), (0, 0, 1))],
}
"""By what differs: the acceptable sentence and the other, each by its factors."""
_FOUR: Sequence[Cell] = [_GOOD, (1, 1, 0), (0, 1, 1), (0, 1, 0)]
_SAME = 1e-5  # of log-probabilities: sums over the same tokens in another order differ by less
_WORDS = 3  # in which two sentences may differ, for a blank to be in their place


def whole_paradigms(corpus: Corpus, most: int, seed: int) -> Corpus:
    """At most so many sentences, drawn by whole paradigms, in the order of the corpus."""
    if len(corpus) <= most:
        return corpus
    sizes: dict[str, int] = {}
    for example in corpus:
        sizes[str(example.get("item"))] = sizes.get(str(example.get("item")), 0) + 1
    items, kept, count = list(sizes), set[str](), 0
    random.Random(seed).shuffle(items)
    for item in items:
        if count + sizes[item] <= most:
            kept.add(item)
            count += sizes[item]
    return replace(corpus, examples=[e for e in corpus if str(e.get("item")) in kept], origin={})


@dataclass(frozen=True)
class Paradigms:
    """What is known of all sentences (N,)."""

    label: NDArray[np.int64]
    factors: NDArray[np.int64]  # (N, 3)
    environment: NDArray[np.str_]
    npi: NDArray[np.str_]  # empty where the corpus does not tell
    item: NDArray[np.str_]

    @classmethod
    def of(cls, corpus: Corpus) -> Paradigms:
        """Those of a corpus; labels that are missing or are neither yes nor no are refused."""
        label, factors = [], []
        for example in corpus:
            if example.label not in (0, 1):
                raise DataError(
                    f"Sentence {example.id!r} of {corpus.name!r} has the label {example.label!r}; "
                    "acceptability must be 0 or 1.",
                    hint="Give sentences with two labels, such as grammar-licensing.",
                )
            told = example.get("sentence_labels")
            wrong = [f for f in FACTORS if told.get(f) not in ("yes", "no")]
            if wrong:
                raise DataError(
                    f"Sentence {example.id!r} of {corpus.name!r} does not say yes or no to "
                    f"{wrong[0]!r}.",
                    hint=f"Its sentence_labels must have {', '.join(FACTORS)}.",
                )
            label.append(int(example.label))
            factors.append([told[f] == "yes" for f in FACTORS])
        words = [
            np.array([str(e.annotations.get(name) or "") for e in corpus], str)
            for name in ("group", "npi", "item")
        ]
        return cls(np.array(label), np.array(factors, np.int64), *words)

    def dataset(self, some: slice) -> dict[str, tuple[Sequence[str] | str, object]]:
        """Those of some sentences, as variables of a part."""
        found: dict[str, tuple[Sequence[str] | str, object]] = {
            name.name: ("example", getattr(self, name.name)[some]) for name in fields(self)
        }
        return found | {"factors": (("example", "factor"), self.factors[some])}

    @classmethod
    def of_parts(cls, parts: Sequence[xr.Dataset]) -> Paradigms:
        """Those of all parts together."""
        names = [f.name for f in fields(cls)]
        joined = {n: np.concatenate([p[n].to_numpy() for p in parts]) for n in names}
        return cls(**joined)

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """(P, 2, 2, 2): the sentences of paradigms with the four in scope; -1 where there is none.

        Of sentences with the same factors the first counts.
        """
        by_item: dict[str, NDArray[np.int64]] = {}
        for at, (item, cell) in enumerate(zip(self.item, self.factors, strict=True)):
            places = by_item.setdefault(str(item), np.full((2, 2, 2), -1))
            if places[tuple(cell)] < 0:
                places[tuple(cell)] = at
        whole = [p for p in by_item.values() if all(p[cell] >= 0 for cell in _FOUR)]
        return np.array(whole, np.int64).reshape(-1, 2, 2, 2)

    @cached_property
    def of_paradigms(self) -> NDArray[np.int64]:
        """(P,): one sentence of each whole paradigm, for what all of them share."""
        return self.places[:, 1, 1, 1]

    @property
    def cells(self) -> NDArray[np.str_]:
        """(N,): environment and item, whose sentences are alike in the words that matter."""
        return np.array([f"{e}/{n}" for e, n in zip(self.environment, self.npi, strict=True)], str)

    def at(self, values: Floats, cell: Cell) -> Floats:
        """(P,) of values (N,): those of the sentence with these factors; NaN where none is."""
        places = self.places[:, cell[0], cell[1], cell[2]]
        return np.where(places < 0, np.nan, values[places])

    def _counts(self, good: Cell, bad: Cell) -> NDArray[np.bool_]:
        label = self.label.astype(float)
        counts: NDArray[np.bool_] = (self.at(label, good) == 1) & (self.at(label, bad) == 0)
        return counts

    def right(self, scores: Floats, contrast: str) -> Floats:
        """(P,): the share of pairs whose acceptable sentence has the higher score (N,)."""
        return self._shares(
            contrast, lambda good, bad: preferred(self.at(scores, good) - self.at(scores, bad))
        )

    def both(self, scores: Floats, contrast: str) -> Floats:
        """(P,): the share of pairs with both sentences judged right: above 0, and not."""

        def judged(good: Cell, bad: Cell) -> Floats:
            one, other = self.at(scores, good), self.at(scores, bad)
            known = np.isfinite(one) & np.isfinite(other)
            return np.where(known, (one > 0) & (other <= 0), np.nan)

        return self._shares(contrast, judged)

    def _shares(self, contrast: str, of: Callable[[Cell, Cell], Floats]) -> Floats:
        found = [
            np.where(self._counts(good, bad), of(good, bad), np.nan)
            for good, bad in CONTRASTS[contrast]
        ]
        told = np.isfinite(found)
        sums = np.where(told, found, 0.0).sum(axis=0)
        shares: Floats = np.where(told.any(axis=0), sums / np.maximum(told.sum(axis=0), 1), np.nan)
        return shares

    def beyond_words(self, scores: Floats, contrast: str) -> Floats:
        """(P,): 1 where licensor or scope does more for the item than for a plain word."""
        ((good, bad),) = CONTRASTS[contrast]
        plain = [self.at(scores, (cell[0], cell[1], 0)) for cell in (good, bad)]
        more = (self.at(scores, good) - self.at(scores, bad)) - (plain[0] - plain[1])
        return np.where(self._counts(good, bad), preferred(more), np.nan)


def preferred(more: Floats) -> Floats:
    """1 above 0, a half where both sides are the same but for rounding; NaN stays."""
    same = np.abs(more) < _SAME
    return np.where(np.isnan(more), np.nan, np.where(same, 0.5, more > 0))


class Partners:
    """Blanks in the place of items and of licensors, found by the paradigm's other sentences."""

    def __init__(self, corpus: Corpus) -> None:
        self.known = Paradigms.of(corpus)
        self._texts = [example.text for example in corpus]
        self._place = {at: (number, cell) for number, at, cell in _cells_of(self.known.places)}

    def __contains__(self, sentence: int) -> bool:
        """Whether a sentence is one of a whole paradigm."""
        return sentence in self._place

    def blank(self, sentence: int, factor: str) -> PairBlank | None:
        """What stands for a factor's yes in a sentence, and what in the one that says no."""
        number = FACTORS.index(factor)
        if sentence not in self._place or not self.known.factors[sentence, number]:
            return None
        paradigm, cell = self._place[sentence]
        other = list(cell)
        other[number] = 0
        partner = int(self.known.places[(paradigm, *other)])
        if partner < 0:
            return None
        return pair_blank(self._texts[sentence], self._texts[partner], most=_WORDS)


def _cells_of(places: NDArray[np.int64]) -> Iterator[tuple[int, int, Cell]]:
    for (paradigm, a, b, c), at in np.ndenumerate(places):
        if at >= 0:
            yield paradigm, int(at), (a, b, c)
