"""Nulls of fragments: runs with known skills, in which what a claim says is not so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import test_fragments as made

from nulls import FAILS, HOLDS, Null, judged

_ALL = (
    "inference-fails-on-fragments",
    "fragments-can-be-taught",
    "teaching-fragments-keeps-the-old-task",
    "inoculation-keeps-more",
    "accuracy-drops-with-steps",
)


def _judged(seed: int, skills: dict[str, float], **how: Any) -> Mapping[str, str]:
    """Three, four or five seeds; two labels or three."""
    sizes = {"seeds": 3 + seed % 3, "classes": 2 + seed % 2, "amounts": (0, 100), **how}
    return judged("fragments", made.made_up(skills, draw=seed, **sizes))


def nothing_learnt(seed: int) -> Mapping[str, str]:
    """Every answer to everything is drawn by chance, as with shuffled labels or a random model."""
    chance = 1 / (2 + seed % 2)
    return _judged(seed, dict.fromkeys(made.AS_PUBLISHED, chance) | {"step": 0.0})


def as_good_as_before(seed: int) -> Mapping[str, str]:
    """Fragments are told as well as the old task, and teaching adds nothing to that."""
    return _judged(seed, dict.fromkeys(made.AS_PUBLISHED, 0.75) | {"step": 0.0})


def at_the_border(seed: int) -> Mapping[str, str]:
    """Taught as published; the old task loses just 2 points either way, and steps do not matter."""
    lost = {"after-taught": 0.83, "after-inoculated": 0.83}
    return _judged(seed, {**lost, "step": 0.0}, old_size=1000, each=300)


def words_tell(seed: int) -> Mapping[str, str]:
    """What is learnt of fragments is what hypotheses alone tell."""
    return _judged(seed, {"hypothesis": 0.9})


def just_matters(seed: int) -> Mapping[str, str]:
    """Every effect is just the margin, so that none is negligible, and none is not there."""
    skills = {
        "old": 0.8, "zero": 0.75, made.TAUGHT: 0.8, made.INOCULATED: 0.8, made.HYPOTHESIS: 0.5,
        "after-taught": 0.77, "after-inoculated": 0.78, "step": -0.01,
    }  # fmt: skip
    return _judged(seed, skills, old_size=1000, each=600, luck=0.003)


_SMALLER = frozenset({"fails", "negligible"})
NULLS = (
    Null("nothing of inference is learnt", nothing_learnt, dict.fromkeys(_ALL, HOLDS)),
    Null(
        "fragments are told as well as the old task",
        as_good_as_before,
        dict.fromkeys(_ALL, HOLDS),
    ),
    Null(
        "teaching loses just 2 points",
        at_the_border,
        {
            "teaching-fragments-keeps-the-old-task": HOLDS | FAILS,
            "inoculation-keeps-more": HOLDS,
            "accuracy-drops-with-steps": HOLDS,
        },
    ),
    Null("hypotheses alone tell fragments", words_tell, {"fragments-can-be-taught": HOLDS}),
    Null(
        "fragments are lost and taught by the margin",
        just_matters,
        {
            "inference-fails-on-fragments": _SMALLER,
            "fragments-can-be-taught": _SMALLER,
            "inoculation-keeps-more": _SMALLER,
            "accuracy-drops-with-steps": _SMALLER,
        },
    ),
)
