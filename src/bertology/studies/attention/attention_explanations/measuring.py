"""What is measured of a batch: scores of every order of words, and what other attention does."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.model.attributions.method_names import METHODS
from bertology.studies.attention.attention_explanations.scores import (
    RANDOM,
    SCORES,
    Ordered,
    example_scores,
    of_chance,
    rationale_words,
)

if TYPE_CHECKING:
    from bertology.data.corpus import Example
    from bertology.model.attributions.methods import Attributed
    from bertology.model.batch import Batch
    from bertology.model.encoder import Encoder

Floats = NDArray[np.float64]
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
