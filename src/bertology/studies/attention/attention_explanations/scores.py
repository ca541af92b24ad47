"""Scores of explanations: how faithful an order of words is, and whether people would give it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

RANDOM = "random"


@dataclass(frozen=True)
class Score:
    """One way to judge an order of words."""

    title: str
    better: int  # 1: more is better; -1: less is
    whole: bool = False  # a correlation: drawn as it is, not in points
    about: str = ""


SCORES = {
    "comprehensiveness": Score(
        "comprehensiveness",
        1,
        about="how much less probable the answer is without the top words",
    ),
    "sufficiency": Score(
        "sufficiency", -1, about="how much less probable the answer is by the top words alone"
    ),
    "erased": Score(
        "words erased until the answer flips", -1, about="the share of words that must go"
    ),
    "tau": Score(
        "agreement with leaving out", 1, whole=True, about="Kendall's τ with leaving words out"
    ),
    "tau_size": Score(
        "agreement with leaving out, in size",
        1,
        whole=True,
        about="Kendall's τ of sizes, whether a word speaks for the answer or against it",
    ),
    "precision": Score(
        "agreement with people", 1, about="average precision (AUPRC) for words that people marked"
    ),
    "f1": Score(
        "F1 with people", 1, about="F1 of as many top words as people marked, with those they did"
    ),
}
"""What an order of words is judged by."""


@dataclass(frozen=True)
class Ordered:
    """One order of words, and what the classifier says without its top words or with them only."""

    order: Ints
    relevance: Floats | None  # of each word; None for an order of chance
    said: Floats  # (share, 2, class): without the top words, with these alone


def example_scores(
    one: Ordered,
    *,
    answer: int,
    probability: float,
    sizes: Sequence[int],
    without: Floats,
    marked: Bools | None,
) -> dict[str, float]:
    """The scores of one order of the words of one example.

    `sizes`: how many words each share of the top is. `without`: what the answer loses in log-odds
    by leaving out each word alone. `marked`: words that people gave as reasons. Where the answer
    never flips, all words count as erased.
    """
    words = len(one.order)
    lost = probability - one.said[:, :, answer]  # (share, 2)
    flipped = np.flatnonzero(one.said[:, 0].argmax(-1) != answer)
    found = {
        "comprehensiveness": float(lost[:, 0].mean()),
        "sufficiency": float(lost[:, 1].mean()),
        "erased": sizes[flipped[0]] / words if flipped.size else 1.0,
        "tau": _kendall(_as_relevance(one), without),
        "tau_size": _kendall(np.abs(_as_relevance(one)), np.abs(without)),
        "precision": np.nan,
        "f1": np.nan,
    }
    if marked is not None and 0 < marked.sum() < words:
        hits = marked[one.order]
        ranks = np.flatnonzero(hits) + 1
        found["precision"] = float((np.arange(1, ranks.size + 1) / ranks).mean())
        found["f1"] = float(hits[: ranks.size].mean())
    return found


def of_chance(words: int, marked: Bools | None) -> dict[str, float]:
    """What random orders score in the mean, where that is known without drawing any."""
    found = {"tau": 0.0, "tau_size": 0.0}
    if marked is not None and 0 < (hits := int(marked.sum())) < words:
        sooner = float((1 / np.arange(1, words + 1)).sum())  # a hit at rank k brings 1 / k itself
        others = (hits - 1) / (words - 1)  # and as much of those before it as of all
        found["precision"] = (sooner + others * (words - sooner)) / words
        found["f1"] = hits / words
    return found


def _as_relevance(one: Ordered) -> Floats:
    if one.relevance is not None:
        return one.relevance
    places = np.empty(len(one.order))
    places[one.order] = np.arange(len(one.order), 0, -1)
    return places


def _kendall(one: Floats, other: Floats) -> float:
    """Kendall's τ-b; 0 where one of them has no order, NaN for fewer than two words."""
    if len(one) < 2:
        return float("nan")
    i, j = np.triu_indices(len(one), 1)
    a, b = np.sign(_round(one)[i] - _round(one)[j]), np.sign(_round(other)[i] - _round(other)[j])
    scale = float(np.sqrt((a != 0).sum() * float((b != 0).sum())))
    return float((a * b).sum()) / scale if scale else 0.0


def _round(values: Floats) -> Floats:
    """What differs by rounding alone is the same rank."""
    largest = np.abs(values).max(initial=0.0)
    return values if largest == 0 else np.round(values / largest, 6)


def rationale_words(
    places: Sequence[tuple[int, int, int]],
    spans: Sequence[Sequence[int]],
    offsets: Sequence[Sequence[int]],
    first_length: int,
) -> Bools:
    """Which of the tokenizer's words (text, characters) lie in the words that people marked.

    `spans` are of words, `offsets` the characters of words: those of a second text count on after
    the first and one more character.
    """
    marked = [tuple(offsets[word]) for span in spans for word in range(span[0], span[1])]
    found = np.zeros(len(places), bool)
    for at, (text, start, end) in enumerate(places):
        shift = first_length + 1 if text else 0
        found[at] = any(a < end + shift and start + shift < b for a, b in marked)
    return found
