"""How well senses are told, by layer: gains over all that must be beaten, with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats, Ints
from bertology.stats import Estimate, least_of
from bertology.stats.skewed_means import least_skewed_mean, skewed_means
from bertology.studies.designs.probe_scores import among_copies, best_layer, least_gain
from bertology.studies.designs.shares import per_item

_OF_WORDS = ("lemmas", "words")  # few, and unlike each other: see `stats.skewed_means`
_BETWEEN = (-1.0, 1.0)  # where a difference of two shares lies


@dataclass(frozen=True)
class Told:
    """Right answers by unit: of candidates (units, k, layers), input first, and of baselines.

    `plain` baselines are (units,), and may be expected numbers; `chosen` ones (units, candidates),
    whose best is picked as the model's is; `copies` have shuffled weights.
    """

    hits: Ints
    counts: Ints
    plain: Sequence[Ints | Floats]
    chosen: Sequence[Ints]
    copies: Sequence[Ints]
    unit: str

    @property
    def layers(self) -> Floats:
        """(units, k × layers), the input left out."""
        return _flat(self.hits[:, :, 1:])

    def best(self) -> tuple[int, int, Floats]:
        """The best layer and k, by number, on all; and the cross-fitted hits (units,)."""
        at, hits = best_layer(self.layers, self.counts)
        k, layer = divmod(at, self.hits.shape[2] - 1)
        return layer, k, hits

    def beaten(self) -> list[Floats]:
        """The baselines, each (units,)."""
        found = [np.asarray(base, np.float64) for base in self.plain]
        return found + [best_layer(_flat(of), self.counts)[1] for of in self.chosen]

    def of_copies(self) -> list[Floats]:
        """The cross-fitted best of each copy."""
        return [best_layer(_flat(copy[:, :, 1:]), self.counts)[1] for copy in self.copies]

    def gain(self, *, level: float) -> Estimate:
        """What the best layer has beyond the first plain baseline; the others are controls.

        The first is the most frequent answer, the second static embeddings.
        """
        own, copies = self.best()[2], self.of_copies()
        frequent, static, *chosen = (
            replace(self._least([own - base], level), unit=self.unit) for base in self.beaten()
        )
        chance = self._least([own - np.mean(copies, axis=0)], level)
        shares = [float(of.sum()) / self.counts.sum() for of in copies]
        return frequent.with_controls(
            {
                "static embeddings": static,
                "the input": least_of(chosen),
                "shuffled weights": among_copies(chance, shares),
            }
        )

    def _least(self, gains: Sequence[Floats], level: float) -> Estimate:
        """The smallest of some gains (units,) in hits."""
        if self.unit not in _OF_WORDS:
            return least_gain(gains, self.counts, level=level)
        rows = [per_item(gain[None], self.counts)[0] for gain in gains]
        return least_skewed_mean(rows, level, within=_BETWEEN, unit=self.unit)

    def beyond(self, other: Ints, *, level: float) -> Estimate:
        """What the best layer has beyond one baseline (units, candidates)."""
        gain = self.best()[2] - best_layer(_flat(other), self.counts)[1]
        return replace(self._least([gain], level), unit=self.unit)


def picked(scores: Floats) -> tuple[int, Floats]:
    """The best of layers (lemmas, layers) on all, and the values of the cross-fitted best."""
    return best_layer(scores, np.ones(len(scores), np.int64))


def word_means(
    rows: Floats, *, level: float, within: tuple[float, float] = (0.0, 1.0)
) -> tuple[Floats, Floats, Floats]:
    """Means of rows (V, words) with both bounds, each for its row alone; NaN of under five."""
    return skewed_means(rows.T, level, within=within)


def over_lemmas(
    own: Floats, copies: Sequence[Floats], *, level: float, within: tuple[float, float]
) -> Estimate:
    """What the best layer's clusters have beyond chance; the input and copies are controls.

    `own` and `copies` are scores beyond dealt senses (lemmas, layers), the input first; `within` is
    where they lie.
    """
    wide = (within[0] - within[1], within[1] - within[0])
    _, best = picked(own[:, 1:])
    of_copies = [picked(copy[:, 1:])[1] for copy in copies]

    dealt, entered = (
        least_skewed_mean([rows], level, within=wide, unit="lemmas")
        for rows in (best, best - own[:, 0])
    )
    against = [best - np.mean(of_copies, axis=0)]
    chance = least_skewed_mean(against, level, within=wide, unit="lemmas")
    return dealt.with_controls(
        {
            "the input": entered,
            "shuffled weights": among_copies(chance, [float(of.mean()) for of in of_copies]),
        }
    )


def _flat(hits: NDArray[np.generic]) -> Floats:
    return hits.reshape(len(hits), -1).astype(np.float64)
