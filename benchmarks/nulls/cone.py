"""Nulls of the geometry of states: random models, and states whose geometry is known.

States that no model computed stand in the place of those of a model, and others in the place of
shuffled weights: Gaussians without any direction, and cones around an axis that lies evenly in all
dimensions, so that no few of them explain it. Where a cone has a known cosine, borders are moved to
the truth, and both verdicts are counted: how often intervals over texts miss it.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

import made_geometry as made
import planted_links
from bertology.studies.geometry.anisotropy import Anisotropy
from bertology.studies.geometry.self_similarity import SelfSimilarity
from nulls import BORDER, HOLDS, Null, at_the_truth, judged
from nulls.models import encoder, random_model, texts

_TEXTS = 200
_SELF, _CONE = SelfSimilarity(words=100), Anisotropy()
_EVEN = torch.ones(made.WIDTH) / made.WIDTH**0.5
_SHARES = {"self": made.falling(0.6, 0.3), "cone": made.falling(0.2, 0.4)}


def random_geometry(seed: int) -> Mapping[str, str]:
    """A random model has a geometry as shuffled weights have it."""
    reader, some = encoder(random_model(seed)), texts(seed, _TEXTS)
    own = judged("self-similarity", planted_links.ask(_SELF, reader, some))
    return own | judged("anisotropy", planted_links.ask(_CONE, reader, some))


def gaussians(seed: int) -> Mapping[str, str]:
    """Directions are uniform, in all layers and for every word; so are those of copies."""
    some = made.corpus(seed=seed)
    own = made.ask(_SELF, some, made.noise, made.noise, seed=seed)
    cone = made.ask(_CONE, some, made.noise, made.noise, seed=seed)
    return judged("self-similarity", own) | judged("anisotropy", cone)


def gaussians_beside_cones(seed: int) -> Mapping[str, str]:
    """Uniform directions where shuffled weights have a cone: all is judged, and nothing holds."""
    some, copies = made.corpus(seed=seed), made.cone(_SHARES["cone"], _EVEN)
    own = made.ask(_SELF, some, made.noise, made.own_ways(_SHARES["self"]), seed=seed)
    cone = made.ask(_CONE, some, made.noise, copies, seed=seed)
    return judged("self-similarity", own) | judged("anisotropy", cone)


def even_cone(seed: int) -> Mapping[str, str]:
    """A cone that all dimensions make alike is not explained by three of them."""
    states = made.cone(dict.fromkeys(range(made.LAYERS + 1), 0.3), _EVEN)
    return judged(
        "anisotropy", made.ask(_CONE, made.corpus(seed=seed), states, made.noise, seed=seed)
    )


def known_geometry(seed: int) -> Mapping[str, str]:
    """Cosines are known exactly: how often does an interval miss them?"""
    some = made.corpus(seed=seed)
    own = made.ask(_SELF, some, made.own_ways(_SHARES["self"]), made.noise, seed=seed)
    cone = made.ask(_CONE, some, made.cone(_SHARES["cone"], _EVEN), made.noise, seed=seed)
    truth = {"narrow_cone": 0.3, "cone_growth": 0.2}
    return at_the_truth("self-similarity", own.evidence(), {"context_growth": 0.3}) | at_the_truth(
        "anisotropy", cone.evidence(), truth
    )


_CONTEXT = "later-layers-are-more-context-specific"
_OF_CONE = ("embeddings-occupy-a-narrow-cone", "the-cone-grows-with-layers")
_EXPLAINED = "dominating-dimensions-explain-the-cone"
_ALL = (_CONTEXT, *_OF_CONE, _EXPLAINED)

NULLS = (
    Null("random model (cone)", random_geometry, dict.fromkeys(_ALL, HOLDS)),
    Null("isotropic Gaussians (cone)", gaussians, dict.fromkeys(_ALL, HOLDS)),
    Null(
        "isotropic Gaussians beside cones (cone)",
        gaussians_beside_cones,
        dict.fromkeys(_ALL, HOLDS),
    ),
    Null("a cone of all dimensions (cone)", even_cone, {_EXPLAINED: HOLDS}),
    Null(
        "cosines that are known (cone)",
        known_geometry,
        dict.fromkeys((_CONTEXT, *_OF_CONE), BORDER),
    ),
)
