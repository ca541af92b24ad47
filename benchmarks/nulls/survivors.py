"""Nulls of super-survivors: which heads survive is chance, or tells no more than their layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import made_survivors as made
from bertology.studies.joins.super_survivors import NOTICED
from nulls import FAILS, HOLDS, Null, judged

SHAPE = (made.LAYERS, made.HEADS)
SLOPE = np.linspace(-3, 3, made.LAYERS)[:, None] * np.ones(SHAPE)
HETEROGENEOUS = "super-survivors-are-not-more-heterogeneous"
LINGUISTIC = "super-survivors-are-not-the-linguistic-heads"
BOTH = {HETEROGENEOUS: HOLDS | FAILS, LINGUISTIC: HOLDS | FAILS}


def _others(odds: np.ndarray, rng: np.random.Generator) -> list[made.Result]:
    """Heads that are heterogeneous, or follow a relation, with these probabilities."""
    yes = rng.random(SHAPE) < odds
    mixed = np.where(yes, rng.beta(20, 1, SHAPE), rng.beta(1, 20, SHAPE))
    return [made.types(mixed, rng), made.followers(rng.random(SHAPE) < odds)]


def _judged(strength: np.ndarray, odds: np.ndarray, seed: int, **how: Any) -> Mapping[str, str]:
    rng = np.random.default_rng([seed, 2])
    result = made.joined(strength, _others(odds, rng), seed, **how)
    return judged("super-survivors", result)


def random_survivors(seed: int) -> Mapping[str, str]:
    """Which heads are left is chance in every run, and runs end with different steps."""
    kept = np.random.default_rng([seed, 4]).integers(1, 6, 5)
    return _judged(np.zeros(SHAPE), np.full(SHAPE, 0.4), seed, kept=kept.tolist())


def survivors_by_task(seed: int) -> Mapping[str, str]:
    """Seeds of a task agree on heads, and tasks do not."""
    return _judged(np.zeros(SHAPE), np.full(SHAPE, 0.4), seed, by_task=3.0)


def survivors_by_layer(seed: int) -> Mapping[str, str]:
    """Upper layers survive, and have more heterogeneous heads; within layers all is chance."""
    return _judged(SLOPE, 0.4 + SLOPE / 8, seed)


def layers_and_heads(seed: int) -> Mapping[str, str]:
    """Some heads survive in all runs, more of them above; heads of a layer are alike else."""
    rng = np.random.default_rng([seed, 3])
    strong = rng.random(SHAPE) < 0.4 + SLOPE / 12
    return _judged(3.0 * strong, 0.4 + SLOPE / 8, seed)


def just_more(seed: int) -> Mapping[str, str]:
    """Super-survivors are heterogeneous, and follow relations, by just so much more often."""
    rng = np.random.default_rng([seed, 3])
    strong = rng.random(SHAPE) < 0.4
    # A map of such a head is heterogeneous with 20/21, of another with 1/21.
    return _judged(6.0 * strong, 0.3 + NOTICED * 21 / 19 * strong, seed)


NULLS = (
    Null("heads survive by chance", random_survivors, BOTH),
    Null("heads survive by task", survivors_by_task, BOTH),
    Null("heads survive by layer", survivors_by_layer, BOTH),
    Null(
        "heads survive, more in some layers",
        layers_and_heads,
        {HETEROGENEOUS: FAILS, LINGUISTIC: FAILS},
    ),
    Null("survivors just more linguistic", just_more, {HETEROGENEOUS: HOLDS, LINGUISTIC: HOLDS}),
)
