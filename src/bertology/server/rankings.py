"""All heads in the order of a score, as the page lists them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Maps", "Ranking"]

Maps = NDArray[np.floating]
"""All maps of one text: (layers, heads, T, T)."""


@dataclass(frozen=True)
class Ranking:
    """A score of every head (layers, heads), or none, and what was looked for."""

    scores: NDArray[np.floating] | None
    found: str
    unit: str = "mean weight"
    least_first: bool = False

    def as_json(self) -> dict[str, object]:
        """All heads, the best first; heads that were pruned are left out."""
        heads = [] if self.scores is None else _ordered(self.scores, least_first=self.least_first)
        return {"heads": heads, "found": self.found, "unit": self.unit}


def _ordered(scores: NDArray[np.floating], *, least_first: bool) -> list[dict[str, object]]:
    order = np.argsort(scores if least_first else -scores, axis=None, kind="stable")
    heads = (np.unravel_index(int(i), scores.shape) for i in order)
    return [
        {"layer": int(layer), "head": int(head), "score": float(scores[layer, head])}
        for layer, head in heads
        if np.isfinite(scores[layer, head])
    ]
