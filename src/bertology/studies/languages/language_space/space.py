"""What vectors of parallel sentences tell: centroids of languages, translations, languages.

Items are dealt into two halves by turns. Whatever is learnt (centroids, probes) is learnt on one
half and used on the other, and a sentence is looked for among those of its own half only. NumPy and
SciPy only: a test repeats all of it in a plain script.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats, Ints

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Vectors = NDArray[np.float32]
FEWEST = 5
"""Items of one half that two languages must share."""
HOW = ("cosine", "centred", "nearest", "shifted")
"""By cosine as states are, and after centring; the nearest, and the nearest to the sentence after
the mean difference of the two languages was added."""
LEXICAL = ("pieces", "characters")
PROBES = ("identity", "centred", "dealt")
_PENALTY = 0.01  # of a probe, for each text, in units of a feature's variance


@dataclass(frozen=True)
class Texts:
    """Which language each text is in, by its place among `codes`, and which item it says."""

    codes: Sequence[str]
    language: Ints
    item: Ints

    @classmethod
    def of(cls, languages: Sequence[str], items: Sequence[object]) -> Texts:
        """Codes in the order of the alphabet, items in their own."""
        codes = sorted(set(languages))
        number = {item: at for at, item in enumerate(dict.fromkeys(items))}
        language = np.array([codes.index(code) for code in languages], np.int64)
        return cls(codes, language, np.array([number[item] for item in items], np.int64))

    @cached_property
    def half(self) -> Ints:
        """Of each text: 0 or 1, the same for all texts of an item."""
        return self.item % 2

    @cached_property
    def pairs(self) -> list[tuple[int, int, list[tuple[Ints, Ints]]]]:
        """Two languages, and for each half the texts of both that say the same."""
        first = [dict[int, int]() for _ in self.codes]
        for text, (language, item) in enumerate(zip(self.language, self.item, strict=True)):
            first[language].setdefault(int(item), text)
        found = []
        for a, b in combinations(range(len(self.codes)), 2):
            shared = [item for item in first[a] if item in first[b]]
            halves = [
                (
                    np.array([first[a][item] for item in shared if item % 2 == half], np.int64),
                    np.array([first[b][item] for item in shared if item % 2 == half], np.int64),
                )
                for half in (0, 1)
            ]
            if min(len(one) for one, _ in halves) >= FEWEST:
                found.append((a, b, halves))
        return found

    @cached_property
    def rows(self) -> tuple[Ints, Ints, Ints, Ints]:
        """What is looked for: language, language of the candidates, item, how many candidates."""
        found = [
            np.stack([np.full(len(one), x), np.full(len(one), y), self.item[one],
                      np.full(len(one), len(one))])
            for a, b, halves in self.pairs
            for x, y in ((a, b), (b, a))
            for one, _ in halves
        ]  # fmt: skip
        asked, wanted, item, candidates = np.concatenate(found, axis=1)
        return asked, wanted, item, candidates


def centroids(x: Floats | Vectors, texts: Texts, among: NDArray[np.bool_] | None = None) -> Floats:
    """The mean (languages, width) of each language; 0 of one without a text."""
    some = slice(None) if among is None else among
    member = np.eye(len(texts.codes))[texts.language[some]]
    found: Floats = member.T @ x[some].astype(np.float64)
    return np.asarray(found / np.maximum(member.sum(axis=0), 1)[:, None])


def centred(x: Vectors, texts: Texts) -> Vectors:
    """Each text without the centroid that its language has in the other half."""
    found = x.copy()
    for half in (0, 1):
        here = texts.half == half
        found[here] -= centroids(x, texts, ~here)[texts.language[here]].astype(np.float32)
    return found


def found_in(x: Vectors, texts: Texts) -> NDArray[np.uint8]:
    """(how, rows): whether the right sentence comes first, in the order of `Texts.rows`."""
    hits: list[NDArray[np.bool_]] = []
    for of in (x, centred(x, texts)):
        length = np.maximum(np.linalg.norm(of, axis=1), 1e-12)
        by_cosine, nearest = list[NDArray[np.bool_]](), list[NDArray[np.bool_]]()
        for _, _, halves in texts.pairs:
            products = [(one, other, of[one] @ of[other].T) for one, other in halves]
            for turned in (False, True):
                for one, other, dots in products:
                    a, b, by = (other, one, dots.T) if turned else (one, other, dots)
                    right = np.arange(len(a))
                    by_cosine.append((by / length[b]).argmax(axis=1) == right)
                    nearest.append((by - length[b] ** 2 / 2).argmax(axis=1) == right)
        hits += [np.concatenate(by_cosine), np.concatenate(nearest)]
    # As they are by cosine, centred by cosine; nearest as they are, nearest once both are centred:
    # a vector moved from one centroid to the other is as far from each candidate.
    return np.stack([hits[0], hits[2], hits[1], hits[3]]).astype(np.uint8)


def found_by_words(bags: csr_array, texts: Texts) -> Floats:
    """(rows,): the same by what texts share; of several that share as much, one is guessed."""
    found = []
    for _, _, halves in texts.pairs:
        products = [(bags[one] @ bags[other].T).toarray() for one, other in halves]
        for turned in (False, True):
            for dots in products:
                by = dots.T if turned else dots
                first = by >= by.max(axis=1, keepdims=True) - 1e-9
                found.append(np.diag(first) / first.sum(axis=1))
    return np.concatenate(found)


def bags_of(units: Sequence[Sequence[object]]) -> csr_array:
    """(texts, kinds): unit vectors of counts, each kind weighed by how few texts have it."""
    from scipy.sparse import csr_array, diags_array

    number: dict[object, int] = {}
    columns = [number.setdefault(one, len(number)) for of in units for one in of]
    starts = np.cumsum([0, *map(len, units)])
    shape = (len(units), max(len(number), 1))
    counts = csr_array((np.ones(len(columns)), columns, starts), shape=shape)
    counts.sum_duplicates()
    having = np.bincount(counts.indices, minlength=shape[1])
    weighed = counts @ diags_array(np.log(len(units) / np.maximum(having, 1)) + 1e-9)
    length = np.sqrt((weighed * weighed).sum(axis=1))
    return csr_array(diags_array(1 / np.maximum(length, 1e-12)) @ weighed)


def character_triples(text: str) -> list[str]:
    """Three characters in a row, case left out."""
    padded = f" {text.casefold()} "
    return [padded[at : at + 3] for at in range(len(padded) - 2)]


def languages_told(x: Vectors, texts: Texts, *, seed: int) -> NDArray[np.uint8]:
    """(probes, texts): whether a linear probe, trained on the other half, tells the language.

    Of states as they are; of centred ones; and trained on languages that were dealt out anew. A
    probe is least squares on each language, with a penalty on large weights.
    """
    dealt = np.random.default_rng(seed).permutation(texts.language)
    wanted = np.eye(len(texts.codes))
    told = np.zeros((len(PROBES), len(x)), np.uint8)
    for half in (0, 1):
        test, train = texts.half == half, texts.half != half
        # Both halves without the centroids of the training half: what is tested helps nothing.
        without = x - centroids(x, texts, train)[texts.language].astype(np.float32)
        for number, of in enumerate((x, without)):
            mean, spread = of[train].mean(axis=0), of[train].std(axis=0)
            scaled = (of - mean) / np.where(spread > 1e-6, spread, np.float32(np.inf))
            learnt = scaled[train]
            products = (learnt.T @ learnt).astype(np.float64)
            products += _PENALTY * train.sum() * np.eye(len(products))
            labels = [texts.language, dealt] if number == 0 else [texts.language]
            for place, given in zip((0, 2) if number == 0 else (1,), labels, strict=True):
                y = wanted[given[train]]
                weights = np.linalg.solve(products, learnt.T @ (y - y.mean(axis=0)))
                said = (scaled[test] @ weights.astype(np.float32) + y.mean(axis=0)).argmax(axis=1)
                told[place, test] = said == texts.language[test]
    return told


def apart(points: Floats) -> Floats:
    """Euclidean distances (K, K) of points (K, width)."""
    found: Floats = np.linalg.norm(points[:, None] - points[None], axis=-1)
    return found
