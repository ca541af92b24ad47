"""What mixes of layers told of one task, and shares over all sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.studies.designs.layer_places import (
    Place,
    centre_of_gravity,
    expected_layer,
    unevenness,
)
from bertology.studies.designs.probe_scores import TaskScores
from bertology.studies.designs.shares import per_item

if TYPE_CHECKING:
    import xarray as xr

Floats = NDArray[np.float64]


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
