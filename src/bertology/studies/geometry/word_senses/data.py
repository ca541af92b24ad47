"""Occurrences with senses as a study asks about them: who may teach whom, and what is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Bools, Ints
from bertology.errors import DataError, UnknownNameError

if TYPE_CHECKING:
    from bertology.annotated.sense_occurrences import Occurrence, StaticViews
    from bertology.data.corpus import Corpus
    from bertology.train.probes.neighbours import Occurrences

_FEWEST = 10  # occurrences to be answered, for anything to be judged


@dataclass(frozen=True)
class SenseData:
    """N occurrences of ambiguous lemmas: of two senses or more in all that is looked at."""

    places: Ints
    """Where each stands among all occurrences of the corpus."""
    lemmas: Sequence[str]
    senses: Sequence[Sequence[str]]
    """Of each lemma, in order of the alphabet."""
    lemma_of: Ints
    sense_of: Ints  # within its lemma
    units: Ints
    unit: str
    """What is held out together: documents or texts."""
    folds: Ints
    asked: Bools
    known: Bools
    repeated: int
    """Occurrences that are left out: their text was read before, in another document."""

    @classmethod
    def of(
        cls,
        corpus: Corpus,
        occurrences: Sequence[Occurrence],
        there: Bools,
        *,
        asked: int,
        folds: int,
        seed: int,
    ) -> SenseData:
        """Of those that have a state; the first so many examples are `asked` about.

        If these are all, each fold is answered by the others; if not, by the other examples. A text
        that reads as an earlier one in another document is left out.
        """
        from bertology.annotated.sense_occurrences import held_out_units, read_before

        of_example, unit = held_out_units(corpus, occurrences)
        again = read_before(corpus, occurrences, of_example)
        repeated = there & again[np.array([one.span[0] for one in occurrences], np.int64)]
        there = there & ~repeated
        own: dict[str, set[str]] = {}
        for one, here in zip(occurrences, there, strict=True):
            if here:
                own.setdefault(one.lemma, set()).add(one.sense)
        lemmas = sorted(lemma for lemma, senses in own.items() if len(senses) > 1)
        senses = [sorted(own[lemma]) for lemma in lemmas]
        number = {lemma: at for at, lemma in enumerate(lemmas)}
        kept = [i for i, one in enumerate(occurrences) if there[i] and one.lemma in number]
        some = [occurrences[i] for i in kept]
        examples = np.array([one.span[0] for one in some], np.int64)
        lemma_of = np.array([number[one.lemma] for one in some], np.int64)
        sense_of = np.array(
            [senses[at].index(one.sense) for at, one in zip(lemma_of, some, strict=True)], np.int64
        )
        units = of_example[examples] if some else np.zeros(0, np.int64)
        ask = examples < asked
        if asked < len(corpus):
            parts = (~ask).astype(np.int64)
            known = ~ask & ~np.isin(units, units[ask])  # texts that are asked about do not teach
        else:
            order = np.random.default_rng(seed).permutation(int(of_example.max()) + 1)
            parts, known = order[units] % folds, np.ones(len(some), bool)
        found = cls(
            np.array(kept, np.int64), lemmas, senses, lemma_of, sense_of, units, unit, parts, ask,
            known, int(repeated.sum()),
        )  # fmt: skip
        if (count := int(found.answered.sum())) < _FEWEST:
            raise DataError(
                f"{count} occurrences of words with several senses have others to compare with; "
                f"{_FEWEST} are needed.",
                hint="Give more text with --limit.",
            )
        return found

    def __len__(self) -> int:
        return len(self.places)

    @property
    def answered(self) -> Bools:
        """(N,): asked, and another part has the lemma."""
        taught = np.zeros(len(self), bool)
        for rows in self.by_lemma():
            known = Counter(self.folds[rows[self.known[rows]]].tolist())
            total = sum(known.values())
            taught[rows] = [total > known[int(fold)] for fold in self.folds[rows]]
        return taught & self.asked

    def by_lemma(self) -> list[Ints]:
        """The occurrences of each lemma."""
        order = np.argsort(self.lemma_of, kind="stable")
        return np.split(order, np.searchsorted(self.lemma_of[order], range(1, len(self.lemmas))))

    def asking(self) -> Occurrences:
        """For `train.probes.neighbours`."""
        from bertology.train.probes.neighbours import Occurrences

        return Occurrences(self.lemma_of, self.sense_of, self.folds, self.asked, self.known)

    def summed(self, right: NDArray[Any], by: Ints, size: int) -> NDArray[Any]:
        """How many answers are right, (size, …) of `right` (…, N), by unit or lemma.

        Of answers that are right by a chance, the number to be expected.
        """
        counted = np.moveaxis(np.where(self.answered, right, 0), -1, 0)
        found = np.zeros((size, *counted.shape[1:]), counted.dtype)
        np.add.at(found, by, counted)
        return found


def static_answers(data: SenseData, views: StaticViews) -> dict[str, NDArray[np.float64]]:
    """The chance of each answer (N,) to be right without any layer.

    `frequent`: the lemma's most frequent sense in what may teach. `static`: the most frequent sense
    of those that are spelt alike there, or of the form whose input embedding is nearest; that is
    what the nearest neighbours of static embeddings say, all that are equally near. Of senses that
    are equally frequent any may be said: 1 / their number, if the right one is among them. Their
    order in the alphabet would mean something where senses are numbered by frequency. `reachable`:
    whether the right sense is among those that are taught at all.
    """
    lengths = np.maximum(np.linalg.norm(views.vectors, axis=1, keepdims=True), 1e-12)
    unit = views.vectors / lengths
    found = {name: np.zeros(len(data)) for name in ("frequent", "static", "reachable")}
    for lemma, rows in enumerate(data.by_lemma()):
        kinds = len(data.senses[lemma])
        forms, own = np.unique(views.forms[rows], return_inverse=True)
        near = unit[forms] @ unit[forms].T
        for fold in np.unique(data.folds[rows[data.asked[rows]]]):
            teach = data.known[rows] & (data.folds[rows] != fold)
            if not teach.any():
                continue
            table = np.zeros((len(forms), kinds), np.int64)
            np.add.at(table, (own[teach], data.sense_of[rows[teach]]), 1)
            seen = table.sum(axis=1) > 0
            closest = np.where(seen[None], near, -np.inf).argmax(axis=1)
            closest = np.where(seen, np.arange(len(forms)), closest)
            here = (data.folds[rows] == fold) & data.asked[rows]
            asked, truth = rows[here], data.sense_of[rows[here]]
            found["frequent"][asked] = _chances(table.sum(axis=0, keepdims=True))[0, truth]
            alike = _chances(table)[closest[own[here]]]
            found["static"][asked] = alike[np.arange(len(truth)), truth]
            found["reachable"][asked] = table.sum(axis=0)[truth] > 0
    return found


def _chances(counts: Ints) -> NDArray[np.float64]:
    """(rows, senses): the chance of each sense to be said, if one of the most frequent is."""
    most = counts == counts.max(axis=1, keepdims=True)
    found: NDArray[np.float64] = most / most.sum(axis=1, keepdims=True)
    return found


def clustered_lemmas(
    data: SenseData, *, fewest: int, most: int, points: int, seed: int
) -> list[tuple[int, Ints]]:
    """Lemmas with two senses or more of `fewest` occurrences each, and these occurrences.

    Of each document or text only the first occurrence of a lemma counts: others of the same text
    lie near it, and mostly have its sense, whatever the states tell of senses. The most frequent
    lemmas; of their occurrences at most so many, drawn at random.
    """
    found = []
    for lemma, every in enumerate(data.by_lemma()):
        rows = every[np.sort(np.unique(data.units[every], return_index=True)[1])]
        counts = np.bincount(data.sense_of[rows], minlength=len(data.senses[lemma]))
        kept = rows[counts[data.sense_of[rows]] >= fewest]
        if (counts >= fewest).sum() >= 2:
            found.append((lemma, kept))
    found.sort(key=lambda pair: (-len(pair[1]), pair[0]))
    rng = np.random.default_rng(seed)
    drawn = []
    for lemma, rows in sorted(found[:most]):
        some = rows if len(rows) <= points else np.sort(rng.choice(rows, points, replace=False))
        counts = np.bincount(data.sense_of[some])
        some = some[counts[data.sense_of[some]] >= 2]  # a sense of one occurrence has no inside
        if len(np.unique(data.sense_of[some])) > 1:
            drawn.append((lemma, some))
    return drawn


def pictured_lemmas(data: SenseData, words: Sequence[str], most: int) -> list[int]:
    """The lemmas to draw: those that are named, or those with the most occurrences outside of
    their most frequent sense.
    """
    if words:
        plain = {lemma: lemma.rpartition(".")[0] or lemma for lemma in data.lemmas}
        found = []
        for word in words:
            own = [at for at, x in enumerate(data.lemmas) if word in (x, plain[x])]
            if not own:
                known = [x for lemma, x in plain.items() if lemma not in words]
                raise UnknownNameError("word with several senses", word, sorted(set(known)))
            found += [at for at in own if at not in found]
        return found
    others = [len(rows) - int(np.bincount(data.sense_of[rows]).max()) for rows in data.by_lemma()]
    order = sorted(range(len(others)), key=lambda at: (-others[at], at))
    return order[:most]
