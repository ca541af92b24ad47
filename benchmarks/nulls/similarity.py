"""Nulls of layer similarity: noise in the place of fine-tuning, and models that are strangers."""

from __future__ import annotations

from collections.abc import Mapping

import planted_links
from bertology.studies.geometry.layer_similarity import LayerSimilarity
from nulls import ANY, HOLDS, Null, judged
from nulls.models import encoder, mini, pair_with_noise, random_model, texts
from planted_changes import with_noise

_STUDY = {"against": "before", "resamples": 200, "words": 4}
_CLAIMS = ("final-layers-move-most", "each-final-layer-moves-most")


def noisy_states(seed: int) -> Mapping[str, str]:
    """Weight noise moves the last layers of a random model most, by adding up."""
    before, after = pair_with_noise(seed)
    study = LayerSimilarity(**_STUDY, seed=seed)
    found = planted_links.ask(study, after, texts(seed), against=before)
    return judged("layer-similarity", found)


def noisy_trained(seed: int) -> Mapping[str, str]:
    """The same noise on the weights of a trained model."""
    noisy = encoder(with_noise(mini().model, (0.02, 0.05, 0.1, 0.2)[seed % 4], seed), "after")
    study = LayerSimilarity(**_STUDY, noise=10, seed=seed)  # twelve layers: fewer texts and copies
    found = planted_links.ask(study, noisy, texts(seed, 40), against=mini())
    return judged("layer-similarity", found)


def strangers(seed: int) -> Mapping[str, str]:
    """Two random models, of which none was trained from the other."""
    one, two = (encoder(random_model(2 * seed + i), name) for i, name in enumerate(("a", "before")))
    study = LayerSimilarity(**_STUDY, seed=seed)
    found = planted_links.ask(study, one, texts(seed), against=two)
    return judged("layer-similarity", found)


NULLS = (
    Null("states moved by weight noise", noisy_states, dict.fromkeys(_CLAIMS, HOLDS)),
    Null("trained states moved by weight noise", noisy_trained, dict.fromkeys(_CLAIMS, HOLDS)),
    Null("states of strangers", strangers, dict.fromkeys(_CLAIMS, ANY)),
)
