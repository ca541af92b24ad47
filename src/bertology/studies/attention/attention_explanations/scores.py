"""Scores of explanations: how faithful an order of words is, and whether people would give it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Bools, Floats, Ints
from bertology.model.attributions.method_names import METHODS

if TYPE_CHECKING:
    from bertology.data.corpus import Example
    from bertology.model.attributions.methods import Attributed
    from bertology.model.batch import Batch
    from bertology.model.encoder import Encoder


RANDOM = "random"
NAMES = (*METHODS, RANDOM)
SHARES = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75)
"""Of the words, from the top, that are left out or left alone; up to half as in ERASER."""
PLACES = ("permuted-last", "permuted-all")
"""Where attention is permuted: for the first token in the last layer, or everywhere."""


@dataclass(frozen=True)
class Explaining:
    """A classifier, and how its answers are explained; numbers are those of the whole corpus."""

    encoder: Encoder
    erase: str
    orders: int
    path_steps: int
    permutations: int
    search_steps: int
    tolerance: float
    seed: int
    tokens: int

    def scores(
        self, batch: Batch, texts: Sequence[Example], numbers: Sequence[int]
    ) -> tuple[Floats, Attributed]:
        """(example, method, score), and what was attributed; NaN of methods that do not fit."""
        from bertology.model.attributions.answering import Eraser
        from bertology.model.attributions.faithfulness import (
            answers_without,
            orders_of,
            random_orders,
            top,
        )
        from bertology.model.attributions.methods import attribute, methods_of

        asked = methods_of(self.encoder)
        known = attribute(
            self.encoder,
            batch,
            asked,
            steps=self.path_steps,
            how=self.erase,
            tokens=self.tokens,
        )
        counts = known.units.counts
        relevance = {n: v.double().cpu().numpy() for n, v in known.relevance.items()}
        orders = []
        for row, (words, number) in enumerate(zip(counts, numbers, strict=True)):
            seed = (self.seed, number)
            own = [orders_of(of[row, :words], seed=seed) for of in relevance.values()]
            orders.append([*own, *random_orders(words, self.orders, seed=seed)])
        eraser = Eraser(self.encoder, self.erase, self.tokens)
        said = answers_without(eraser, batch, known.units, orders, SHARES)
        sure = known.logits.softmax(-1).double().cpu().numpy()
        answers = known.answers.tolist()
        found = np.full((len(texts), len(NAMES), len(SCORES)), np.nan)
        for row, words in enumerate(counts):
            if words < 2:
                continue
            marked = _marked(texts[row], known.units.places[row])
            by_order = [
                example_scores(
                    Ordered(
                        order,
                        relevance[asked[k]][row, :words] if k < len(asked) else None,
                        said[row][k],
                    ),
                    answer=answers[row],
                    probability=float(sure[row, answers[row]]),
                    sizes=[top(share, words) for share in SHARES],
                    without=relevance["left-out"][row, :words],
                    marked=marked,
                )
                for k, order in enumerate(orders[row])
            ]
            table = np.array([[one[s] for s in SCORES] for one in by_order])
            found[row, [NAMES.index(name) for name in asked]] = table[: len(asked)]
            chance = dict(zip(SCORES, table[len(asked) :].mean(0), strict=True))
            # What is known of random orders has no noise of those that were drawn.
            chance |= of_chance(words, marked)
            found[row, -1] = [chance[score] for score in SCORES]
        # Leaving out agrees with itself.
        itself = [list(SCORES).index(score) for score in ("tau", "tau_size")]
        found[:, NAMES.index("left-out"), itself] = np.nan
        return found, known

    def permuted(self, batch: Batch, known: Attributed, numbers: Sequence[int]) -> Floats:
        """(example, place, [divergence, variation, changed]): medians over permutations."""
        from bertology.model.attributions.last_layer import last_layer_only
        from bertology.model.attributions.other_attention import (
            PermutedAttention,
            divergence,
            total_variation,
        )

        last = self.encoder.shape.layers - 1
        site = f"layer.{last}.head.*.pattern"
        own = self.encoder.run(batch, record=site)[site][:, :, 0].float().mean(1)
        before = known.logits.softmax(-1)
        found = np.zeros((self.permutations, len(batch), len(PLACES), 3))
        for at, place in enumerate(PLACES):
            lone = place == "permuted-last"
            layers = [last] if lone else list(range(last + 1))
            with last_layer_only(self.encoder, batch) if lone else nullcontext():
                for turn in range(self.permutations):
                    seeds = [(self.seed * 10**6 + number) * 100 + turn for number in numbers]
                    change = PermutedAttention(layers, seeds, first_only=lone)
                    trace = self.encoder.run(batch, record=site, do=change)
                    said = trace.logits.float()
                    told = (
                        divergence(trace[site][:, :, 0].float().mean(1), own),
                        total_variation(said.softmax(-1), before),
                        said.argmax(-1) != known.answers,
                    )
                    for k, values in enumerate(told):
                        found[turn, :, at, k] = values.double().cpu().numpy()
        middle: Floats = np.median(found, axis=0)
        middle[..., 2] = found[..., 2].mean(0)
        return middle

    def single(self, batch: Batch, known: Attributed, numbers: Sequence[int]) -> dict[str, Floats]:
        """The answer, how sure it is, what is left without any word, and attention looked for."""
        import torch

        from bertology.model.attributions.answering import Eraser
        from bertology.model.attributions.other_attention import find_attention

        units, rows = known.units, torch.arange(len(batch), device=known.answers.device)
        nothing = Eraser(self.encoder, self.erase, self.tokens).logits(batch, rows, units.ids >= 0)
        found = find_attention(
            self.encoder,
            batch,
            steps=self.search_steps,
            tolerance=self.tolerance,
            seeds=[self.seed * 10**6 + number for number in numbers],
        )
        own, other = known.relevance["attention"], units.summed(found.weights)
        values = {
            "answer": known.answers,
            "probability": known.logits.softmax(-1).gather(1, known.answers[:, None])[:, 0],
            "words": torch.tensor(units.counts),
            "flips": nothing.argmax(-1) != known.answers,
            "found": found.divergence,
            "moved": found.variation,
            "found_changed": found.changed,
            "other_top": own.argmax(-1) != other.argmax(-1),
        }
        return {name: value.double().cpu().numpy() for name, value in values.items()}


def _marked(example: Example, places: Sequence[tuple[int, int, int]]) -> NDArray[np.bool_] | None:
    """The words that people marked; None where none are known."""
    spans, offsets = (example.annotations.get(name) for name in ("rationales", "offsets"))
    if not spans or offsets is None or not places:
        return None
    return rationale_words(places, spans, offsets, len(example.text))


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
