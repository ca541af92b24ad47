"""Nulls of paraphrased reading: answers of known skill, in which what a claim says is not so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import made_reading as made
from nulls import FAILS, HOLDS, Null, judged

_DROP, _BLIND, _WHERE = (
    "paraphrase-hurts-reading",
    "reading-by-shallow-heuristics",
    "reading-drops-where-overlap-breaks",
)
_SMALLER = frozenset({"fails", "negligible"})


def _judged(seed: int, skills: dict[str, float], **how: Any) -> Mapping[str, str]:
    """Three, four or five seeds; the same questions twice, or others; few texts or more."""
    sizes = {"seeds": 3 + seed % 3, "paired": bool(seed % 2), "texts": 20 + 20 * (seed % 3), **how}
    return judged("paraphrased-reading", made.made_up(skills, draw=seed, **sizes))


def nothing_learnt(seed: int) -> Mapping[str, str]:
    """Every answer is a guess, as with shuffled labels."""
    skills = dict.fromkeys(("before", "after", "blind", "unasked", "overlap"), 0.25)
    return _judged(seed, skills, hard=0.0, luck=0.0)


def reads(seed: int) -> Mapping[str, str]:
    """Rewording changes nothing for who reads; without the text there is guessing."""
    return _judged(seed, {"before": 0.7, "after": 0.7, "blind": 0.25}, luck=0.02)


def drops_everywhere(seed: int) -> Mapping[str, str]:
    """Rewording makes texts harder, but no more where it breaks word overlap."""
    return _judged(seed, {"before": 0.7, "after": 0.5}, paired=True)


def just_matters(seed: int) -> Mapping[str, str]:
    """Drop and gain without the text are just the margin: neither negligible nor not there."""
    skills = {"before": 0.6, "after": 0.55, "blind": 0.3, "overlap": 0.6, "follows": 0.05}
    return _judged(seed, skills, texts=60, luck=0.003)


def uneven_rewording(seed: int) -> Mapping[str, str]:
    """Rewording makes some texts harder and others easier, by 20 points, and none on the whole."""
    return _judged(seed, {"before": 0.5, "after": 0.5, "blind": 0.25}, uneven=0.2, hard=0.05)


def some_guess(seed: int) -> Mapping[str, str]:
    """One run in five guesses; the others read, and rewording changes nothing."""
    skills = {"before": 0.8, "after": 0.8, "blind": 0.25}
    return _judged(seed, skills, failing=0.2, hard=0.05)


NULLS = (
    Null("questions are guessed", nothing_learnt, dict.fromkeys((_DROP, _BLIND, _WHERE), HOLDS)),
    Null("the text is read", reads, dict.fromkeys((_DROP, _BLIND, _WHERE), HOLDS)),
    Null("rewording hurts everywhere", drops_everywhere, {_WHERE: HOLDS, _DROP: FAILS}),
    Null(
        "rewording costs just the margin",
        just_matters,
        {_DROP: _SMALLER, _BLIND: _SMALLER, _WHERE: _SMALLER},
    ),
    Null("rewording helps as many texts as it hurts", uneven_rewording, {_DROP: HOLDS}),
    Null("runs of reading guess", some_guess, dict.fromkeys((_DROP, _BLIND, _WHERE), HOLDS)),
)
