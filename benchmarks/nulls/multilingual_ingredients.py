"""Nulls of multilingual ingredients: none matters, and training makes no model multilingual."""

from __future__ import annotations

from collections.abc import Mapping

import test_multilingual_ingredients as made

from nulls import ANY, BORDER, HOLDS, Null, judged

_STUDY = "multilingual-ingredients"
_TRAINED, _PIECES = "no-shared-piece-is-needed", "shared-pieces-do-little"
_OTHERS = (
    "shared-positions-matter",
    "shared-special-tokens-matter",
    "depth-matters",
    "next-sentences-hurt",
    "order-of-words-matters",
    "parallel-text-helps",
    "too-large-models-are-less-multilingual",
    "translations-in-one-row-help",
)


def no_ingredient(seed: int) -> Mapping[str, str]:
    """All arms are alike, but that shared pieces do just what counts no more as little."""
    lost = dict.fromkeys(made.LOST, 0.0) | {"shared-pieces": -0.1}
    found = made.planted(lost, seeds=3 + seed % 4, noise=0.03, draw=seed)
    return judged(_STUDY, found)


def nothing_learnt(seed: int) -> Mapping[str, str]:
    """Models are after training as multilingual as their random weights were, and arms differ."""
    lost = dict.fromkeys(made.LOST, 0.2) | {"tlm": 0.0}
    found = made.planted(lost, seeds=3 + seed % 4, noise=0.03, draw=seed, start=0.5)
    return judged(_STUDY, found)


NULLS = (
    Null(
        "ingredients that do not matter",
        no_ingredient,
        {**dict.fromkeys(_OTHERS, HOLDS), _PIECES: BORDER},
    ),
    Null(
        "models that are as multilingual as random ones",
        nothing_learnt,
        {**dict.fromkeys(_OTHERS, ANY), _TRAINED: HOLDS},
    ),
)
