"""Nulls of sentence position: random models, neighbours alone, parities by chance, equal models."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import test_nsp_positions as trained
import test_sentence_position as made

from nulls import BORDER, HOLDS, Null, judged

_STUDY = "sentence-position"
_PARITY, _SEGMENTS = (claim.partition(".")[2] for claim in (made.PARITY, made.SEGMENTS))


def random_model(seed: int) -> Mapping[str, str]:
    """A random model with places and segments of any size: its input moves words, it knows none."""
    rng = np.random.default_rng(seed)
    places, segments = rng.uniform(0, 2, 2)
    found = made.run(
        made.model(places=places, segments=segments, seed=seed),
        corpus=made.corpus(60 + 60 * (seed % 3), seed=seed),
        seed=seed,
    )
    return judged(_STUDY, found)


def neighbours_only(seed: int) -> Mapping[str, str]:
    """States that neighbours move, rarely by much, and sentence positions do not."""
    rng = np.random.default_rng(seed)
    words = (40, 80, 200)[seed % 3]
    states = rng.normal(size=(1, 1, 1, 3, words, 12)) + 0.3 * rng.standard_t(
        (3, 30)[seed % 2], size=(2, 2, 2, 3, words, 12)
    )
    parities = made.repeated(0.0, seed, kinds=(4, 12)[seed % 2], depths=3)
    return judged(_STUDY, made.concluded(states, seed=seed, parities=parities))


def segments_as_places(seed: int) -> Mapping[str, str]:
    """Segments and places move words as far, each word in its own way."""
    rng = np.random.default_rng(seed)
    words = (40, 80, 200)[seed % 3]
    states = rng.normal(size=(1, 1, 1, 3, words, 12)) + 0.1 * rng.normal(
        size=(2, 2, 2, 3, words, 12)
    )
    one, other = 0.3 * rng.normal(size=(2, 3, words, 12))
    states[1] += one
    states[:, 1] += other
    return judged(_STUDY, made.concluded(states, seed=seed))


def equal_objectives(seed: int) -> Mapping[str, str]:
    """The loss of next sentences does nothing to the shift."""
    found = trained.planted(0.0, seeds=3 + seed % 4, noise=0.03, draw=seed)
    return judged("nsp-positions", found)


NULLS = (
    Null(
        "sentences moved in a random model",
        random_model,
        dict.fromkeys((_PARITY, _SEGMENTS), HOLDS),
    ),
    Null(
        "neighbours move words, positions do not",
        neighbours_only,
        dict.fromkeys((_PARITY, _SEGMENTS), HOLDS),
    ),
    Null("segments move words as far as places", segments_as_places, {_SEGMENTS: BORDER}),
    Null(
        "next-sentence loss without an effect on shifts",
        equal_objectives,
        {trained.CLAIM.partition(".")[2]: HOLDS},
    ),
)
