"""All heads in the order of a score, as the page lists them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Maps = NDArray[np.floating]
"""All maps of one text: (layers, heads, T, T)."""


@dataclass(frozen=True)
class Ranking:
    """A score of every head (layers, heads), or none, and what was looked for."""

    scores: NDArray[np.floating] | None
    found: str
    unit: str = "mean weight"
    least_first: bool = False
    beyond: NDArray[np.floating] | None = None
    """Of links: the score less what the head gives at the same distance anyway."""
    source: Sequence[int] = ()
    """Of links: the pieces that the first of them goes from."""

    def as_json(self) -> dict[str, object]:
        """All heads, the best first; heads that were pruned are left out."""
        heads = [] if self.scores is None else _ordered(self.scores, least_first=self.least_first)
        return {
            "heads": heads,
            "found": self.found,
            "unit": self.unit,
            "best": self._best(),
            "from": list(self.source),
        }

    def _best(self) -> dict[str, object] | None:
        """The head to show first: what it gives must not come from the distance alone."""
        if self.scores is None or not np.isfinite(self.scores).any():
            return None
        by = self.scores if self.beyond is None else self.beyond
        order = _ordered(by, least_first=self.least_first)[0]
        layer, head = int(order["layer"]), int(order["head"])
        score = float(self.scores[layer, head])
        return {"layer": layer, "head": head, "score": score, "beyond": float(by[layer, head])}


def _ordered(scores: NDArray[np.floating], *, least_first: bool) -> list[dict[str, float]]:
    order = np.argsort(scores if least_first else -scores, axis=None, kind="stable")
    heads = (np.unravel_index(int(i), scores.shape) for i in order)
    return [
        {"layer": int(layer), "head": int(head), "score": float(scores[layer, head])}
        for layer, head in heads
        if np.isfinite(scores[layer, head])
    ]
