"""Labelled maps in other clothes: changes after which an eye would still say the same.

A few hundred labels are not many. A map keeps its type when it is read backwards, when tokens
that nobody attends to are left out, when it is a little sharper, flatter or noisier.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_SHORTEST = 6  # tokens; shorter maps have no form
_UNSEEN = 0.12  # attention that tokens may receive in all and yet be left out


@dataclass(frozen=True)
class SeenMap:
    """A map, its sentences, and how many of its labellers saw each type in it."""

    weights: Floats  # (L, L)
    segments: NDArray[np.int64]  # (L,)
    seen: tuple[float, ...]  # a share for each type, in the order of MAP_TYPES


def vary(seen: SeenMap, chance: np.random.Generator) -> SeenMap:
    """The map changed by chance, with the same label."""
    weights, segments = _leave_out(seen.weights, seen.segments, chance)
    if chance.random() < 0.5:
        weights = weights[::-1, ::-1]
        segments = np.asarray(segments.max() - segments[::-1])
    weights = np.maximum(weights, 1e-9) ** np.exp(chance.normal(0, 0.12))
    weights = weights * np.exp(chance.normal(0, chance.uniform(0, 0.3), weights.shape))
    weights = weights / weights.sum(-1, keepdims=True)
    even = chance.uniform(0, 0.08)
    return SeenMap((1 - even) * weights + even / len(weights), segments, seen.seen)


def _leave_out(
    weights: Floats, segments: NDArray[np.int64], chance: np.random.Generator
) -> tuple[Floats, NDArray[np.int64]]:
    """Without a run of tokens within a sentence, if little attention goes there."""
    length = len(segments)
    if length < 2 * _SHORTEST or chance.random() < 0.3:
        return weights, segments
    run = int(chance.integers(1, max(2, length // 4)))
    start = int(chance.integers(1, length - run))
    gone = np.arange(start, start + run)
    if weights[:, gone].sum(-1).mean() > max(_UNSEEN, 1.5 * run / length):
        return weights, segments
    kept = np.delete(np.arange(length), gone)
    left = segments[kept]
    if min((left == s).sum() for s in np.unique(segments)) < 3:
        return weights, segments
    small = weights[np.ix_(kept, kept)]
    return small / np.maximum(small.sum(-1, keepdims=True), 1e-9), left
