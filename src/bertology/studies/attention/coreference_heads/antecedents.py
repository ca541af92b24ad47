"""The best head and the best of baselines at finding antecedents, as values of documents."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bertology.data.words.antecedents import BASELINES, SIMPLE
from bertology.stats import Estimate
from bertology.studies.designs.parts import Gathered
from bertology.studies.designs.shares import best_of_other_half

Floats = NDArray[np.float64]
_MATCHING = "head match or nearest"
_TOGETHER = 8  # neighbours in one half: twins, or texts of one source; fewer where there are few


@dataclass(frozen=True)
class BestHead:
    """The cross-fitted best head of a kind and the baselines, as values of documents."""

    best: int  # on all documents
    score: Floats
    sieve: Floats
    matching: Floats  # head match, else nearest
    alone: Floats  # head match, else nothing
    simple: Floats  # the best of nearest, first, random, cross-fitted
    name: str  # which of these it is, on all documents
    bar: Floats  # the best of simple choices and of matching, cross-fitted


def best_head(seen: Gathered, kind: int, reading: int) -> BestHead:
    """`kind` counts from 0, all mentions; `reading` as in READINGS."""
    counts, base = seen["mentions"][:, kind], seen["base"][:, kind]
    hits = seen.spooled["hits"][kind][:, reading].reshape(len(counts), -1)
    picked = partial(
        best_of_other_half,
        items=counts,
        together=min(_TOGETHER, max(1, len(counts) // _TOGETHER)),
    )
    best, score = picked(hits)

    def some(*names: str) -> tuple[int, Floats]:
        return picked(base[:, [BASELINES.index(name) for name in names]])

    at, simple = some(*SIMPLE)
    return BestHead(
        best=best,
        score=score,
        sieve=some("sieve")[1],
        matching=some(_MATCHING)[1],
        alone=some("head match")[1],
        simple=simple,
        name=SIMPLE[at],
        bar=some(*SIMPLE, "string match or nearest", _MATCHING)[1],
    )


def lesser_of(a: Estimate, b: Estimate) -> Estimate:
    """The lesser of two quantities; it is surely above 0 where both are."""
    value, low, high = (min(getattr(a, end), getattr(b, end)) for end in ("value", "low", "high"))
    return replace(a, value=value, low=low, high=high)
