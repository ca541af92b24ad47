"""Facts asked in several wordings: alone, chosen on one half of the subjects, and together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from bertology.data.corpus import Example
    from bertology.studies.cloze.facts.asked import FactBook

Floats = NDArray[np.float64]

FIRST = "first wording"
_TIE = 1e-3  # of the mean reciprocal rank, which decides among wordings that get as many right


def kinds_of(facts: Iterable[Example]) -> set[str]:
    """The kinds of all wordings; none where the corpus does not tell."""
    of_relations = {tuple(fact.annotations.get("wording_kinds") or ()) for fact in facts}
    return {kind for kinds in of_relations for of in kinds for kind in of.split()}


def halves_of(subjects: Sequence[str]) -> NDArray[np.int64]:
    """0 or 1 for each fact; the subjects take turns, and facts about one stay together."""
    turn = {subject: i % 2 for i, subject in enumerate(dict.fromkeys(subjects))}
    return np.array([turn[subject] for subject in subjects], np.int64)


@dataclass(frozen=True)
class Asked:
    """The facts (N) of one relation in its wordings (W), as log-probabilities of objects (O)."""

    book: FactBook
    facts: Sequence[Example]
    templates: tuple[str, ...]
    kinds: tuple[str, ...]
    ranks: Floats  # (N, W) of the right answer among the objects
    scores_of: NDArray[np.float32]  # (N, W, O)

    @classmethod
    def of(cls, book: FactBook, facts: Sequence[Example], most: int, batch_tokens: int) -> Asked:
        """Every fact in its first wordings, `most` at most."""
        if not facts:
            return cls(book, facts, (), (), np.empty((0, 0)), np.empty((0, 0, 0), np.float32))
        templates = tuple(str(t) for t in facts[0].get("wordings"))[:most]
        kinds = tuple(facts[0].annotations.get("wording_kinds") or ("",) * len(templates))[:most]
        ranks = np.empty((len(facts), len(templates)))
        scores = np.empty((*ranks.shape, len(book.objects(facts[0]))), np.float32)
        said = book.ask(facts, wordings=len(templates), tokens_per_batch=batch_tokens)
        for i, of_fact in enumerate(said):
            for w, one in enumerate(of_fact):
                ranks[i, w], scores[i, w] = one.restricted, one.objects
        return cls(book, facts, templates, kinds, ranks, scores)

    def scores(self) -> Floats:
        """What each wording gets right, of all facts."""
        if not self.templates:
            return np.empty(0)
        found: Floats = (self.ranks <= 1).mean(axis=0)
        return found

    def of_kind(self, kind: str) -> list[int]:
        """The wordings of a kind; "": all."""
        return [w for w, of in enumerate(self.kinds) if not kind or kind in of.split()]

    def alone(self, wording: int) -> tuple[Floats, Floats]:
        """Ranks (N) with one wording, and hits beyond chance."""
        return self.joined([wording])

    def joined(self, wordings: Sequence[int]) -> tuple[Floats, Floats]:
        """The same with the mean of several wordings' log-probabilities; NaN without any."""
        rank, excess = np.full((2, len(self.facts)), np.nan)
        if not wordings or not self.facts:
            return rank, excess
        together = self.scores_of[:, list(wordings)].mean(axis=1, dtype=np.float64)
        for i, (fact, scores) in enumerate(zip(self.facts, together, strict=True)):
            rank[i] = self.book.rank_among(fact, scores)
            said = self.book.objects(fact)[int(scores.argmax())]
            excess[i] = (said in self.book.right(fact)) - self.book.by_chance(fact, said)
        return rank, excess

    def picked(
        self, chosen: Sequence[Sequence[int]], halves: NDArray[np.int64]
    ) -> tuple[Floats, Floats]:
        """The same, each half with the wordings that were chosen for it."""
        ways = [self.joined(wordings) for wordings in chosen]
        rank, excess = (
            np.where(halves == 0, first, second) for first, second in zip(*ways, strict=True)
        )
        return rank, excess

    def any_of(self, wordings: Sequence[int]) -> tuple[Floats, Floats]:
        """The best rank in any of the wordings: an upper bound, to which chance adds much."""
        nothing = np.full(len(self.facts), np.nan)
        return (self.ranks[:, list(wordings)].min(axis=1) if wordings else nothing), nothing


def best_and_together(
    asked: Asked, wordings: Sequence[int], halves: NDArray[np.int64], few: int
) -> tuple[list[list[int]], list[list[int]]]:
    """For each half the best wording, and the best few, by the facts of the other half."""
    best, several = [], []
    for half in (0, 1):
        dev = asked.ranks[halves != half][:, list(wordings)]
        if not len(dev):  # one subject has no other half, and the first wording stands
            order = list(range(len(wordings)))
        else:
            order = list(np.argsort(-(dev <= 1).mean(0) - _TIE * (1 / dev).mean(0), kind="stable"))
        best.append([wordings[i] for i in order[:1]])
        several.append([wordings[i] for i in order[:few]])
    return best, several
