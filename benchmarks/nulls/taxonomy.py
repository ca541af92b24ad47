"""Nulls of the classes of heads: random models, layers and heads of a real one dealt anew."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np

import planted_links
from bertology.studies.attention.head_taxonomy import HeadTaxonomy
from nulls import HOLDS, Null, judged
from nulls.models import Stored, encoder, random_model, texts

_BEST_EFFORT = {"resamples": 200}


def random_heads(seed: int) -> Mapping[str, str]:
    """In a random model layers differ in how broadly they attend, and in nothing else."""
    found = planted_links.ask(
        HeadTaxonomy(**_BEST_EFFORT), encoder(random_model(seed)), texts(seed, 40)
    )
    return judged("head-taxonomy", found)


@cache
def heads_of_mini() -> Stored:
    return Stored(HeadTaxonomy(**_BEST_EFFORT), texts(0, 60))


def shuffled_layers(seed: int) -> Mapping[str, str]:
    """Layers of `bertology-mini` in another order: none comes early."""
    stored = heads_of_mini()
    order = np.random.default_rng(seed).permutation(stored.part.sizes["layer"])
    return judged("head-taxonomy", stored.concluded(stored.part.isel(layer=order)))


def dealt_heads(seed: int) -> Mapping[str, str]:
    """Heads of `bertology-mini` dealt to layers at random."""
    stored = heads_of_mini()
    part, (layers, heads) = stored.part, (stored.part.sizes[d] for d in ("layer", "head"))
    order = np.random.default_rng(seed).permutation(layers * heads)
    dealt = part.assign(total=part["total"].isel(one=order, other=order))
    for name in ("share", "hit", "type"):
        values = part[name].to_numpy()
        flat = values.reshape(*values.shape[:-2], -1)[..., order]
        dealt[name] = (part[name].dims, flat.reshape(values.shape))
    return judged("head-taxonomy", stored.concluded(dealt))


_EARLY = ("positional-heads-are-in-early-layers", "broad-heads-are-in-early-layers")
_ALIKE, _SPECIAL = "heads-of-a-layer-are-alike", "many-heads-attend-to-special-tokens"

NULLS = (
    Null(
        "random model (classes of heads)",
        random_heads,
        dict.fromkeys((*_EARLY, _ALIKE, _SPECIAL), HOLDS),
    ),
    Null("shuffled layers (classes of heads)", shuffled_layers, dict.fromkeys(_EARLY, HOLDS)),
    Null("heads dealt anew", dealt_heads, dict.fromkeys((*_EARLY, _ALIKE), HOLDS)),
)
