"""One number for each head, from all maps of one text that were recorded.

Maps are (layers, heads, T, T), rows attending to columns; a pruned head's are NaN, and so is its
number. Over many texts, use reducers during the pass instead of recording maps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from bertology.model.reducers.statistics import AttentionStatistics
from bertology.model.shape import Shape
from bertology.model.site_context import SiteContext
from bertology.model.sites import Kind

Maps = NDArray[np.floating]
Scores = NDArray[np.floating]


def attention_to(maps: Maps, targets: NDArray[np.bool_]) -> Scores:
    """The attention that a token gives to its targets, mean over the tokens that have some.

    `targets` is (T, T): true where the column's token is a target of the row's token.
    """
    queries = targets.any(axis=1)
    weights = (maps * targets).sum(axis=-1)[..., queries]  # (layers, heads, queries)
    found: Scores = weights.mean(axis=-1)
    return found


def attention_along(maps: Maps, links: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Scores:
    """The attention from the first to the second group of pieces of a link, mean over links.

    After Clark et al. (2019): from a group it is the mean over its pieces, to a group the sum.
    """
    weights = [maps[..., list(s), :][..., list(t)].sum(-1).mean(-1) for s, t in links]
    found: Scores = np.mean(weights, axis=0)
    return found


def attention_beyond_position(
    maps: Maps, links: Sequence[tuple[Sequence[int], Sequence[int]]]
) -> Scores:
    """`attention_along`, less what the head gives at the same distance elsewhere in the text.

    A head that always attends to the token before follows no relation, though it scores high
    wherever the two words of a link stand side by side.
    """
    length = maps.shape[-1]
    found = []
    for source, target in links:
        first, last = min(*source, *target), max(*source, *target)
        steps = np.arange(-first, length - last)[:, None]  # the link itself, and where else it fits
        rows, columns = steps + np.array(source), steps + np.array(target)
        weights = maps[..., rows[:, :, None], columns[:, None, :]]  # (..., steps, source, target)
        given = weights.sum(-1).mean(-1)
        own = given[..., first]
        usual = (given.sum(-1) - own) / max(1, len(steps) - 1)
        found.append(own - usual)
    beyond: Scores = np.mean(found, axis=0)
    return beyond


def map_statistics(maps: Maps) -> dict[str, Scores]:
    """What `AttentionStatistics` tells of each head (entropy, distance and others), by name."""
    layers, heads, length, _ = maps.shape
    statistics = AttentionStatistics(Shape(layers, heads, hidden=0, head_size=0, mlp=0))
    real = torch.ones(1, length, dtype=torch.bool)
    for layer, value in enumerate(torch.from_numpy(maps).double()):
        statistics.update(value[None], SiteContext("encoder", layer, Kind.PATTERN, real, 1))
    return dict(zip(statistics.NAMES, statistics.mean.numpy(), strict=True))


def similarity_to(maps: Maps, layer: int, head: int) -> Scores:
    """The cosine between each map and that of one head, whose own is exactly 1."""
    flat = maps.reshape(*maps.shape[:2], -1)
    own = flat[layer, head]
    lengths = np.linalg.norm(flat, axis=-1) * np.linalg.norm(own)
    cosines = np.divide(flat @ own, lengths, out=np.full_like(lengths, np.nan), where=lengths > 0)
    cosines[layer, head] = 1.0
    found: Scores = np.minimum(cosines, 1.0)
    return found
