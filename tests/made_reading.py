"""Answers to questions by models with known skills, as the parts of `paraphrased-reading`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.studies.training.paraphrased_reading import ParaphrasedReading
from bertology.studies.training.paraphrased_reading.data import BLIND, FULL, RULES, UNASKED

AS_PUBLISHED = {
    "before": 0.53, "after": 0.36, "blind": 0.4, "unasked": 0.35, "overlap": 0.45, "broken": 0.5,
    "follows": 0.0,
}  # fmt: skip
TYPES = ("Causality", "Factual", "Temporal_order")


def made_up(
    skills: dict[str, float] | None = None,
    *,
    seeds: int = 3,
    draw: int = 0,
    texts: int = 40,
    each: int = 12,
    answers: int = 4,
    luck: float = 0.01,
    hard: float = 0.08,
    paired: bool = True,
    uneven: float = 0.0,
    failing: float = 0.0,
    kinds: Mapping[str, str] | None = None,
) -> Result:
    """Answers that are right with these probabilities; some texts are harder than others.

    `overlap` is how often the rule of word overlap is right, and `broken` how often rewording
    spoils that. The model answers as the rule does with probability `follows`, else by itself.
    Rewording makes texts harder or easier by `uneven`; a share of runs, `failing`, guesses.
    `kinds` of text as the part of rules tells them.
    """
    skill = AS_PUBLISHED | (skills or {})
    rng = np.random.default_rng(draw)
    size = texts * each
    group, kind = np.arange(size) // each, np.arange(size) % len(TYPES)
    harder = [rng.normal(0, hard, texts) for _ in range(2)]
    if paired:
        harder[1] = harder[0]
    if uneven:
        harder[1] = harder[1] + rng.normal(0, uneven, texts)

    def right(p: float, side: int, by_luck: float = 0.0) -> Any:
        level = np.clip(p + by_luck + harder[side][group], 0.001, 0.999)
        return (rng.random(size) < level) * 1.0

    rule = right(skill["overlap"], 0)
    spoilt = rng.random(size) < skill["broken"]
    ruled = rule * (1 - spoilt) if paired else right(skill["overlap"] * (1 - skill["broken"]), 1)
    guessed = [[(rng.random(size) < 1 / answers) * 1.0 for _ in range(2)] for _ in range(2)]
    if paired:
        guessed = [[one, one] for one, _ in guessed]
    about = {"fingerprint": "x"}
    parts = {
        "rules-seed-0": xr.Dataset(
            {
                "original": (("method", "question"), [guessed[0][0], guessed[1][0], rule]),
                "paraphrased": (("method", "asked"), [guessed[0][1], guessed[1][1], ruled]),
                "text": ("question", group),
                "asked_text": ("asked", group if paired else group + texts),
                "type": ("question", kind),
                "asked_type": ("asked", kind),
            },
            {"method": list(RULES), "type_name": list(TYPES)},
            {
                **about,
                **(kinds or {}),
                "paired": int(paired),
                "train_size": 1000,
                "answers": answers,
            },
        )
    }
    for seed in range(seeds):
        for method, names in (
            (FULL, ("before", "after")),
            (BLIND, ("blind", "blind")),
            (UNASKED, ("unasked", "unasked")),
        ):
            by_luck = rng.normal(0, luck)
            said = [right(skill[name], side, by_luck) for side, name in enumerate(names)]
            if failing and rng.random() < failing:
                said = [(rng.random(size) < 1 / answers) * 1.0 for _ in names]
            if method == BLIND and paired:
                said[1] = said[0]  # the same question, and no text
            if method == FULL:
                follow = rng.random(size) < skill["follows"]
                said = [np.where(follow, r, s) for r, s in zip((rule, ruled), said, strict=True)]
            parts[f"{method}-seed-{seed}"] = xr.Dataset(
                {
                    "original": (("method", "question"), said[0][None]),
                    "paraphrased": (("method", "asked"), said[1][None]),
                },
                {"method": [method]},
                about,
            )
    study = ParaphrasedReading(seeds=seeds)
    model, corpus = {"name": "m", "fingerprint": "f"}, {"name": "made-up", "fingerprint": "c"}
    return study.conclude(parts, Provenance("paraphrased-reading", 1, {}, model, corpus))
