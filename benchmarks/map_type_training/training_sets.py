"""What the network is shown of some labelled maps: themselves and variants of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from map_type_training.training import Sample, join, sample_of
from map_type_training.variation import SeenMap, vary
from numpy.typing import NDArray

from bertology.data.map_labels import MAP_TYPES, MapKey, MapLabel

VARIANTS = 5  # of each labelled map


def seen_by(labels: Iterable[MapLabel]) -> dict[MapKey, tuple[float, ...]]:
    """For each map the share of its labellers that saw each type; their first pass counts."""
    first: dict[MapKey, dict[str, MapLabel]] = {}
    for label in labels:
        own = first.setdefault(label.recipe.key, {})
        if label.annotator not in own or label.turn < own[label.annotator].turn:
            own[label.annotator] = label
    return {
        key: tuple(sum(x.label == t for x in own.values()) / len(own) for t in MAP_TYPES)
        for key, own in first.items()
    }


class TrainingSets:
    """Variants are made once; which of them may be learned from depends on the maps chosen."""

    def __init__(self, maps: Sequence[SeenMap], *, seed: int) -> None:
        chance = np.random.default_rng(seed)
        self.plain = sample_of(maps)
        self._variants = [sample_of([vary(m, chance) for m in maps]) for _ in range(VARIANTS)]

    def learned_from(self, chosen: NDArray[np.int64]) -> Sample:
        """All that may be learned from these maps, and nothing of the others."""
        where = torch.from_numpy(chosen)
        return join(self.plain.of(where), *(v.of(where) for v in self._variants))
