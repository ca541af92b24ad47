"""Nulls of ways to fine-tune: variants of the same skill, and variants just at a claim's border."""

from __future__ import annotations

from collections.abc import Mapping

import made_variants as variants
from nulls import FAILS, HOLDS, Null, judged

_STUDY = "finetuning-variants"
_SEEDS = (3, 4, 5)


def same_skill(seed: int) -> Mapping[str, str]:
    """No way is better than another, on plain and on noisy texts; which texts are hard is drawn."""
    found = variants.made_up(0.75, 0.65, seeds=_SEEDS[seed % 3], draw=seed)
    return judged(_STUDY, found)


def just_behind(seed: int) -> Mapping[str, str]:
    """Adapters are two points behind: just no longer nearly as good."""
    skills = {"adapters": 0.73}
    found = variants.made_up(skills, 0.65, seeds=_SEEDS[seed % 3], draw=seed, n=2000)
    return judged(_STUDY, found)


def lucky_seeds(seed: int) -> Mapping[str, str]:
    """Every run has much luck of its own; no way is better than another on average."""
    found = variants.made_up(0.75, 0.65, seeds=4, draw=seed, luck=0.02)
    return judged(_STUDY, found)


def unlike_seeds(seed: int) -> Mapping[str, str]:
    """Runs of some ways spread ten times as far as those of others; none is better on average."""
    luck = dict.fromkeys(("adapters", "joined-layers", "adversarial"), 0.05)
    found = variants.made_up(0.75, 0.65, seeds=_SEEDS[seed % 3], draw=seed, luck=luck, n=277)
    return judged(_STUDY, found)


def failing_seeds(seed: int) -> Mapping[str, str]:
    """One run in five fails, of plain fine-tuning as of all ways: none is better on average."""
    found = variants.made_up(0.75, 0.65, seeds=_SEEDS[seed % 3], draw=seed, failing=0.2)
    return judged(_STUDY, found)


def just_matters(seed: int) -> Mapping[str, str]:
    """Every way gains, or loses, just the margin of one point, so that none is negligible."""
    gains = dict.fromkeys(("layer-mix", "joined-layers", "intermediate"), 0.76)
    noisy = {"adversarial": 0.76}
    found = variants.made_up(gains | {"features": 0.74}, noisy, seeds=4, draw=seed, n=2000)
    return judged(_STUDY, found)


_GAINS = ("more-layers-weighted", "more-layers-combined", "two-stages", "adversarial-robustness")
_ABOVE = (*_GAINS, "fine-tuning-above-features")
_SMALLER = frozenset({"fails", "negligible"})

NULLS = (
    Null(
        "ways to fine-tune of the same skill",
        same_skill,
        {**dict.fromkeys(_ABOVE, HOLDS), "adapters-nearly-as-good": FAILS},
    ),
    Null("adapters just behind", just_behind, {"adapters-nearly-as-good": HOLDS}),
    Null(
        "ways to fine-tune with lucky seeds",
        lucky_seeds,
        {**dict.fromkeys(_ABOVE, HOLDS), "adapters-nearly-as-good": FAILS},
    ),
    Null(
        "ways to fine-tune whose seeds spread unequally",
        unlike_seeds,
        {**dict.fromkeys(_ABOVE, HOLDS), "adapters-nearly-as-good": FAILS},
    ),
    Null(
        "ways to fine-tune that fail alike",
        failing_seeds,
        {**dict.fromkeys(_ABOVE, HOLDS), "adapters-nearly-as-good": FAILS},
    ),
    Null("ways to fine-tune that just matter", just_matters, dict.fromkeys(_ABOVE, _SMALLER)),
)
