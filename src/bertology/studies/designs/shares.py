"""Shares of items (arcs, mentions) that are found, whose intervals are over what holds the items.

A share of items is a ratio of two means: a long sentence has more arcs. What varies from sentence
to sentence, or from document to document, is its distance from that ratio.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats
from bertology.stats.best_of_many import picked_on_other_half


def per_item(hits: NDArray[Any], items: NDArray[Any]) -> Floats:
    """Hits (…, N) as values of examples whose mean is the share of all items; NaN without.

    `items` are how many each example has: (N,), or of each row (…, N).
    """
    there, counts = items > 0, items.astype(np.float64)
    total = np.maximum(counts.sum(axis=-1, keepdims=True), 1)
    share = np.where(there, hits, 0.0).sum(axis=-1, keepdims=True, dtype=np.float64) / total
    values = share + (hits - share * counts) * (there.sum(axis=-1, keepdims=True) / total)
    return np.asarray(np.where(there, values, np.nan), np.float64)


def ratio_values(tops: Floats, bottoms: Floats) -> Floats:
    """Values of examples (N,) whose mean is Σ tops / Σ bottoms, and scatters as the ratio does."""
    whole = bottoms.sum()
    ratio = tops.sum() / whole
    found: Floats = ratio + (tops - ratio * bottoms) * (len(tops) / whole)
    return found


def best_of_other_half(
    hits: NDArray[Any],
    items: NDArray[Any],
    *,
    told: NDArray[Any] | None = None,
    together: int = 1,
) -> tuple[int, Floats]:
    """The best of candidates (N, C) on all examples, and the cross-fitted best's values (N,).

    `told`: the values (N, C) that are asked of the candidate with the most hits, if not these.
    `together`: so many neighbours are in one half, see `stats.best_of_many`.
    """
    present = np.where((items > 0)[:, None], hits, np.nan)
    picked = picked_on_other_half(present[:, None], together=together)
    values = np.take_along_axis(hits if told is None else told, picked, axis=1)[:, 0]
    best = int(np.nansum(present, axis=0).argmax())
    return best, per_item(values.astype(np.float64), items)
