"""At which layers groups of tasks are told best, over resampled sentences.

A task that is easy may be told by many layers, all of them near 100 %: which of them is best then
says nothing. So a task has a first and a last of its best layers, those within NEAR of the best;
the interval of a group reaches from its first ones to its last ones: an easy task has a wide
interval, and never counts as early or late because it is easy.

Where layers are nearly alike, the bootstrap finds the best of a sample again too often. Resamples
of half as many sentences mend this (the m out of n bootstrap).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertology.stats import Estimate
from bertology.studies.designs.probe_scores import TaskScores

Floats = NDArray[np.float64]
_HELD = 4_000_000  # weights of resampled sentences that are held at a time
NEAR = 0.01
"""By how much less, as a share of right answers, a layer may tell and still count as best."""


@dataclass(frozen=True)
class Places:
    """The middle of the best layers; first and last ones (R,) in R resamples; N sentences."""

    value: float
    first: Floats
    last: Floats
    n: int

    def bounds(self, level: float) -> tuple[float, float]:
        """From the first to the last layers that may be best."""
        tail = (1 - level) / 2
        low, high = float(np.quantile(self.first, tail)), float(np.quantile(self.last, 1 - tail))
        return min(low, self.value), max(high, self.value)

    def __sub__(self, other: Places) -> Places:
        """How much later these are, over the same resamples."""
        return Places(
            self.value - other.value,
            self.first - other.last,
            self.last - other.first,
            min(self.n, other.n),
        )

    def estimate(self, level: float) -> Estimate:
        """As a quantity in layers."""
        return Estimate(self.value, *self.bounds(level), self.n, level, "sentences")

    @classmethod
    def mean(cls, of: Sequence[Places]) -> Places:
        """Of several tasks, which count alike."""
        return cls(
            float(np.mean([one.value for one in of])),
            np.mean([one.first for one in of], axis=0),
            np.mean([one.last for one in of], axis=0),
            min(one.n for one in of),
        )


def best_layers(shares: Floats) -> tuple[Floats, Floats]:
    """The first and the last of the best layers, of shares (…, L)."""
    near = shares >= shares.max(axis=-1, keepdims=True) - NEAR - 1e-9
    first = near.argmax(axis=-1).astype(np.float64)
    last = shares.shape[-1] - 1.0 - near[..., ::-1].argmax(axis=-1)
    return first, last


def places_of(scores: Mapping[str, TaskScores], *, resamples: int, seed: int) -> dict[str, Places]:
    """Best layers of tasks over the same resamples of the sentences; the input is no layer."""
    n = max(len(one.counts) for one in scores.values())
    rng, rows = np.random.default_rng([seed, 1]), max(1, _HELD // n)
    drawn: dict[str, list[tuple[Floats, Floats]]] = {name: [] for name in scores}
    for start in range(0, resamples, rows):
        size = min(rows, resamples - start)
        weights = rng.multinomial(max(n // 2, 1), np.full(n, 1 / n), size=size).astype(np.float64)
        for name, one in scores.items():
            asked = np.maximum(weights @ one.counts, 1.0)[:, None]
            drawn[name].append(best_layers((weights @ one.hits[:, 1:]) / asked))  # (rows, L)
    found = {}
    for name, one in scores.items():
        first, last = (np.concatenate(of) for of in zip(*drawn[name], strict=True))
        middle = float(np.mean(best_layers(one.share(one.hits[:, 1:]))))
        found[name] = Places(middle, first, last, int((one.counts > 0).sum()))
    return found


def least_step(steps: Sequence[Estimate]) -> Estimate:
    """The smallest of several steps: all must be above a border for it to be."""
    return Estimate(
        min(one.value for one in steps),
        min(one.low for one in steps),
        min(one.high for one in steps),
        min(one.n for one in steps),
        steps[0].level,
        steps[0].unit,
    )
