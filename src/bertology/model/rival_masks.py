"""Masks to compare a good subnetwork with: of the same size, drawn at random or of what was pruned.

As Prasanna, Rogers and Rumshisky (2020) have them: a bad subnetwork holds the elements that did not
survive, and a few of the others where these are too few to match its size. Where more were pruned
than survived, as many as survived are drawn from what was pruned.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bertology.model.part_masks import PartMask
from bertology.model.weight_masks import WeightMask, random_mask

Truths = NDArray[np.bool_]
_BAD, _RANDOM = 0, 1  # draws of one seed are not the same ones


def random_weights(good: WeightMask, *, seed: int) -> WeightMask:
    """As many weights of the whole model, drawn at random."""
    return random_mask(good, seed=_number(seed, _RANDOM), by_matrix=False)


def bad_weights(good: WeightMask, *, seed: int) -> WeightMask:
    """As many weights as in `good`, of those that it removes as far as they go."""
    rng, gone = np.random.default_rng([seed, _BAD]), good.removed()
    few = min(good.kept, gone.kept)
    own = _drawn_from(gone, few, rng)
    if few == good.kept:
        return own
    rest = _drawn_from(good, good.kept - few, rng)
    both = {name: own.bits[name] | rest.bits[name] for name in good.bits}
    return WeightMask(good.shapes, both)


def _drawn_from(mask: WeightMask, count: int, rng: np.random.Generator) -> WeightMask:
    """So many of the weights that a mask keeps, each set of them equally likely."""
    names = list(mask.shapes)
    there = [mask.kept_in(name) for name in names]
    # How many fall into each matrix, then which.
    counts = rng.multivariate_hypergeometric(there, count, method="marginals")
    kept = {}
    for name, k in zip(names, counts, strict=True):
        flat = np.zeros(mask.keeps(name).size, bool)
        places = np.flatnonzero(mask.keeps(name))
        flat[places[rng.choice(places.size, int(k), replace=False, shuffle=False)]] = True
        kept[name] = flat.reshape(mask.shapes[name])
    return WeightMask.of(kept)


def random_parts(good: PartMask, full: PartMask, *, seed: int) -> PartMask:
    """As many heads and as many MLPs of those that the whole model has, drawn at random."""
    rng = np.random.default_rng([seed, _RANDOM])
    return PartMask(
        _chosen(full.heads, int(good.heads.sum()), rng),
        _chosen(full.mlps, int(good.mlps.sum()), rng),
    )


def bad_parts(good: PartMask, full: PartMask, *, seed: int) -> PartMask:
    """As many heads and MLPs as in `good`, of those that it removes as far as they go."""
    rng = np.random.default_rng([seed, _BAD])
    return PartMask(_rivals(good.heads, full.heads, rng), _rivals(good.mlps, full.mlps, rng))


def _rivals(good: Truths, full: Truths, rng: np.random.Generator) -> Truths:
    size, gone = int(good.sum()), full & ~good
    few = min(size, int(gone.sum()))
    found: Truths = _chosen(gone, few, rng) | _chosen(good, size - few, rng)
    return found


def _chosen(among: Truths, count: int, rng: np.random.Generator) -> Truths:
    found = np.zeros(among.shape, bool)
    found.ravel()[rng.choice(np.flatnonzero(among), count, replace=False)] = True
    return found


def _number(seed: int, kind: int) -> int:
    return int(np.random.default_rng([seed, kind]).integers(2**31))
