"""Nulls of the geometry of states: random models, and states that no model computed."""

from __future__ import annotations

from collections.abc import Mapping

import planted_links
from bertology.studies.geometry.self_similarity import SelfSimilarity
from nulls import HOLDS, Null, judged
from nulls.models import encoder, random_model, texts

_TEXTS = 200
_SELF = SelfSimilarity(words=100)


def random_geometry(seed: int) -> Mapping[str, str]:
    """A random model mixes words with their context as shuffled weights do."""
    found = planted_links.ask(_SELF, encoder(random_model(seed)), texts(seed, _TEXTS))
    return judged("self-similarity", found)


_TRENDS = ("later-layers-are-more-context-specific",)

NULLS = (Null("random model (cone)", random_geometry, dict.fromkeys(_TRENDS, HOLDS)),)
