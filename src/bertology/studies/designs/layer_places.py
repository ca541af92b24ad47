"""Where in a model something is told: places of layers, each with two sources of error.

A place (an expected layer, a centre of gravity, how uneven weights are) depends on the sentences
that are scored and on those that probes were trained on. For the first each test sentence has its
influence on the value (the delta method). For the second, probes are trained again on random halves
of the training sentences: values on halves, drawn without replacement, scatter as much around that
of all sentences as the latter would around the truth, since 1 / (n / 2) · (1 - 1 / 2) = 1 / n.
`MixScores` holds what mixes of layers told of one task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtrit

from bertology.arrays import Floats
from bertology.stats import Estimate
from bertology.studies.designs.probe_scores import TaskScores
from bertology.studies.designs.shares import per_item

if TYPE_CHECKING:
    import xarray as xr


def first_upper(layers: int) -> int:
    """A third of the depth: the fifth of twelve layers, which is number 4 (Clark et al. 2019)."""
    return round(layers / 3)


_CLEAR = 4.0  # standard errors that a gain must be above 0, for a ratio with it to be nearly normal


@dataclass(frozen=True)
class Place:
    """A value, the influence of each test sentence (N,), and the values on halves (H,).

    Without influence it is one of training sentences alone, `n` of them.
    """

    value: float
    influence: Floats
    halves: Floats
    n: int

    def __sub__(self, other: Place) -> Place:
        """How much later this one is, both over the same sentences and the same halves."""
        return Place(
            self.value - other.value,
            self.influence - other.influence,
            self.halves - other.halves,
            min(self.n, other.n),
        )

    def estimate(self, *, level: float, families: int = 1) -> Estimate:
        """With an interval over test sentences and halves; bounds hold for `families` together.

        Degrees of freedom are those of Welch and Satterthwaite.
        """
        n, unit = len(self.influence), "sentences" if len(self.influence) else "training sentences"
        of_sentences = float((self.influence**2).sum()) / max(n * (n - 1), 1)
        of_halves = float(np.var(self.halves, ddof=1))
        total = of_sentences + of_halves
        if not np.isfinite(total):
            return Estimate(self.value, np.nan, np.nan, self.n, level, unit)
        parts = of_sentences**2 / max(n - 1, 1) + of_halves**2 / (len(self.halves) - 1)
        freedom = total**2 / parts if parts > 0 else float(len(self.halves) - 1)
        tail = (1 - level) / families / 2
        half = float(stdtrit(freedom, 1 - tail)) * np.sqrt(total)
        low, high = self.value - half, self.value + half
        return Estimate(self.value, low, high, self.n, level, unit, freedom=freedom)


def expected_layer(hits: Floats, halves: Floats, layers: Sequence[int]) -> Place:
    """Σ l Δ_l / Σ Δ_l, where Δ_l is what layer l adds to all before it.

    `hits` (N, L) are right answers of probes on the first layers, in each test sentence; `halves`
    (H, L) their sums where a half of the sentences trained. Where all layers together do not surely
    add something, nothing is known of where.
    """
    places = np.array(layers[1:], dtype=np.float64)
    gains = np.diff(hits, axis=1)  # (N, L - 1)
    total = gains.sum()
    spread = gains.sum(1).std(ddof=1) * np.sqrt(len(gains))
    nothing = np.full(len(halves), np.nan)
    if total <= _CLEAR * spread:
        return Place(np.nan, np.zeros(len(hits)), nothing, len(hits))
    value = float((gains @ places).sum() / total)
    influence = (gains @ places - value * gains.sum(1)) / (total / len(gains))
    of_halves = np.diff(halves, axis=1)
    sums = of_halves.sum(1)
    known = np.where(sums > 0, of_halves @ places / np.where(sums > 0, sums, 1.0), np.nan)
    return Place(value, influence, known, len(hits))


def centre_of_gravity(weights: Floats, layers: Sequence[int], trained: int) -> Place:
    """Σ l s_l of weights (1 + H, L) whose first row is that of all training sentences."""
    found = weights @ np.array(layers, dtype=np.float64)
    return Place(float(found[0]), np.zeros(0), found[1:], trained)


def unevenness(weights: Floats, trained: int) -> Place:
    """K(s), the divergence of weights (1 + H, L) from even ones in nats: 0 if all are alike."""
    logs = np.log(np.maximum(weights * weights.shape[1], 1e-300))
    found = (weights * logs).sum(1)
    return Place(float(found[0]), np.zeros(0), found[1:], trained)


def mean_place(places: Sequence[Place]) -> Place:
    """Of several tasks, which count alike."""
    return Place(
        float(np.mean([place.value for place in places])),
        np.mean([place.influence for place in places], axis=0),
        np.mean([place.halves for place in places], axis=0),
        min(place.n for place in places),
    )


@dataclass(frozen=True)
class MixScores:
    """What mixes found of one task: right answers from the first layers (N, L), and weights."""

    first: Floats
    weights: Floats  # (1 + H, L)
    expected: Place
    centre: Place
    unevenness: Place

    @classmethod
    def of(cls, part: xr.Dataset, task: int, layers: Sequence[int]) -> MixScores:
        first = part["first"].to_numpy()[:, task].astype(np.float64)
        halves = part["first_of_halves"].to_numpy()[task].astype(np.float64)
        weights, trained = part["weights"].to_numpy()[task], int(part["sentences"])
        return cls(
            first,
            weights,
            expected_layer(first, halves, layers),
            centre_of_gravity(weights, layers, trained),
            unevenness(weights, trained),
        )

    @property
    def gains(self) -> Floats:
        """(N, L): what each layer adds; 0 for the input, before which there is nothing."""
        return np.diff(self.first, axis=1, prepend=self.first[:, :1])

    def weightbounds_of(self, level: float, families: int) -> Floats:
        """(3, L): weights with bounds over training sentences."""
        found = []
        for value, *halves in self.weights.T:
            place = Place(float(value), np.zeros(0), np.array(halves), 1)
            bounds = place.estimate(level=level, families=families)
            found.append((value, max(bounds.low, 0.0), min(bounds.high, 1.0)))
        return np.array(found).T


def share_of_sentences(one: TaskScores, hits: Floats) -> Floats:
    """(N,): values of all sentences whose mean is the share, and scatters as the share does.

    Sentences without a question are at the mean; so others count for them.
    """
    values = per_item(hits[None], one.counts)[0]
    there, mean = np.isfinite(values), np.nanmean(values)
    found: Floats = np.where(there, mean + (values - mean) * (len(there) / there.sum()), mean)
    return found


def bounds_of(name: str) -> tuple[str, str, str]:
    """The columns of a value and its bounds."""
    return name, f"{name}_low", f"{name}_high"
