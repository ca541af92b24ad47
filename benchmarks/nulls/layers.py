"""Nulls of layer scores: random models, labels of chance, and tasks that the same layers tell."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import test_layer_scores as simulated

import planted_links
from bertology.studies.probing.layer_scores import LayerScores
from nulls import BORDER, HOLDS, Null, judged
from nulls.models import encoder, mini, random_model, texts
from nulls.probes import moved

_SENTENCES = 150
_STUDY = LayerScores(resamples=200, halves=3)


def random_scores(seed: int) -> Mapping[str, str]:
    """Layers of a random model tell no more than those of its shuffled weights."""
    found = planted_links.ask(_STUDY, encoder(random_model(seed)), texts(seed, _SENTENCES))
    return judged("layer-scores", found)


def moved_scores(seed: int) -> Mapping[str, str]:
    """Labels of chance have no layer, and no order."""
    study = LayerScores(resamples=200, halves=2, tasks=("pos", "relation"))
    found = planted_links.ask(study, mini(), moved(texts(seed, _SENTENCES), seed))
    return judged("layer-scores", found)


def easy_and_hard(seed: int) -> Mapping[str, str]:
    """The same layers tell both tasks, one clearly and one dimly: neither comes first."""
    with pytest.MonkeyPatch.context() as patch:
        found = simulated.simulated(
            patch,
            {"pos": 0, "relations": 0},
            kept=True,
            sharp=3.0 if seed % 2 else 1.0,
            of_relations=1.0 if seed % 2 else 3.0,
            seed=seed,
        )
    return judged("layer-scores", found)


def same_layers(seed: int) -> Mapping[str, str]:
    """Both tasks are told a little by each of three layers: neither comes first."""
    with pytest.MonkeyPatch.context() as patch:
        found = simulated.simulated(
            patch, {"pos": 0, "relations": 0}, kept=True, sharp=1.0, seed=seed
        )
    return judged("layer-scores", found)


_ORDER = (
    "parts-of-speech-before-relations",
    "relations-before-roles",
    "parts-of-speech-before-roles",
)
_PLACES = tuple(
    f"{what}-in-{where}-layers"
    for what in ("parts-of-speech", "chunks")
    for where in ("lower", "middle")
)
_ALL = (*_ORDER, *_PLACES, "middle-layers-are-most-transferable", "semantics-is-spread")

NULLS = (
    Null("random model (layer scores)", random_scores, dict.fromkeys(_ALL, HOLDS)),
    Null("labels of chance (layer scores)", moved_scores, dict.fromkeys(_ALL, HOLDS)),
    Null("the same layers tell two tasks", same_layers, {_ORDER[0]: BORDER}),
    Null("easy and hard tasks of the same layers", easy_and_hard, {_ORDER[0]: BORDER}),
)
