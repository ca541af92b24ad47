"""Nulls of baselines and subnetworks: methods of the same skill, whatever their names."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import test_subnetwork_overlap as overlaps
import test_task_baselines as simple

import made_subnetworks as subnetworks
from nulls import FAILS, HOLDS, Null, judged


def same_skill(seed: int) -> Mapping[str, str]:
    """No method is better than another; which examples are hard is drawn, as is a seed's luck."""
    result = simple.made_up(dict.fromkeys(simple.METHODS, 0.7), draw=seed)
    return judged("task-baselines", result)


def same_subnetworks(seed: int) -> Mapping[str, str]:
    """Good, random and bad subnetworks, the whole model and simple ones have the same skill."""
    result = subnetworks.made_up(dict.fromkeys(subnetworks.METHODS, 0.75), draw=seed)
    return judged("subnetworks", result)


def just_unlike(seed: int) -> Mapping[str, str]:
    """Good heads and MLPs are three points better than random ones: just no longer alike."""
    skills = dict.fromkeys(subnetworks.METHODS, 0.75) | {"good-importance": 0.78}
    return judged("subnetworks", subnetworks.made_up(skills, draw=seed, n=2000))


def collapsing_runs(seed: int) -> Mapping[str, str]:
    """Every method has the same skill, and each training of a model fails one time in seven."""
    rng = np.random.default_rng((seed, 3))
    trained = [m for m in subnetworks.METHODS if m not in ("majority", "bag-of-words")]
    failed = [(m, k) for m in trained for k in range(5) if rng.random() < 1 / 7]
    skills = dict.fromkeys(subnetworks.METHODS, 0.75)
    return judged("subnetworks", subnetworks.made_up(skills, draw=seed, constant=failed))


def heads_alike(seed: int) -> Mapping[str, str]:
    """Three tasks keep the same heads, as far as two seeds of one task do: by little, or much."""
    return judged("subnetwork-overlap", overlaps.joined((0.05, 0.41, 0.8)[seed % 3], seed))


NULLS = (
    Null(
        "methods of the same skill",
        same_skill,
        {
            "fine-tuned-above-simple-baselines": HOLDS,
            "bilstm-above-majority": HOLDS,
            "bilstm-above-cbow": HOLDS,
        },
    ),
    Null(
        "subnetworks of the same skill",
        same_subnetworks,
        {
            "good-weights-above-random-ones": HOLDS,
            "random-weights-above-bad-ones": HOLDS,
            "good-parts-like-random-ones": FAILS,
            "random-parts-above-bad-ones": HOLDS,
            "bad-parts-above-a-random-start": HOLDS,
            "bad-parts-above-simple-baselines": HOLDS,
        },
    ),
    Null("subnetworks just unlike", just_unlike, {"good-parts-like-random-ones": HOLDS}),
    Null(
        "trainings that fail",
        collapsing_runs,
        {
            "good-weights-above-random-ones": HOLDS,
            "random-weights-above-bad-ones": HOLDS,
            "good-parts-like-random-ones": FAILS,
            "random-parts-above-bad-ones": HOLDS,
            "bad-parts-above-a-random-start": HOLDS,
            "bad-parts-above-simple-baselines": HOLDS,
        },
    ),
    Null("tasks keep the same heads", heads_alike, {"heads-differ-between-tasks": HOLDS}),
)
