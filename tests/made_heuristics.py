"""Runs of a study of heuristics with known habits, without any model."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.studies.training.heuristics import Heuristics

Numbers = np.ndarray[Any, np.dtype[np.float64]]
GROUPS = ("lexical_overlap", "subsequence", "constituent")
WAYS = ("siamese-frozen", "siamese", "adapters", "hex")

# Shares of "entailed": of pairs that are entailed, of those that are not, of their controls; and
# the share of right answers on the task.
AS_PUBLISHED: dict[str, tuple[float, float, float, float]] = {
    "vanilla": (0.95, 0.85, 0.05, 0.9),
    **dict.fromkeys(WAYS, (0.94, 0.84, 0.06, 0.85)),
    "hypothesis-only": (0.5, 0.5, 0.5, 0.6),
    "overlap-only": (1.0, 1.0, 0.0, 0.7),
    **{f"taught-{name}": (0.9, 0.3, 0.05, 0.9) for name in GROUPS},
}


def made_up(
    habits: dict[str, tuple[float, float, float, float]] | None = None,
    *,
    seeds: int = 3,
    draw: int = 0,
    each: int = 20,
    cases: int = 4,
    task_size: int = 400,
    luck: float = 0.01,
    spread: float = 0.05,
    groups: tuple[str, ...] = GROUPS,
    failing: float = 0.0,
    without: tuple[str, ...] = (),
) -> Result:
    """`each` pairs of every subcase, `cases` of every heuristic and label.

    Subcases, but not controls, are harder or easier by `spread` (of the share of "entailed"), for
    all methods alike by half; runs differ by `luck`. A share of runs, `failing`, says the same of
    everything.
    """
    known = AS_PUBLISHED | (habits or {})
    rng = np.random.default_rng(draw)
    kinds = [(g, y, c) for g in range(len(groups)) for y in (0, 1) for c in range(cases)]
    rows = np.repeat(np.arange(len(kinds)), each)
    group, labels = np.array([k[0] for k in kinds])[rows], np.array([k[1] for k in kinds])[rows]
    places = np.flatnonzero(labels == 1)
    task_labels = np.arange(task_size) % 2
    shared = rng.normal(0, spread / np.sqrt(2), len(kinds))
    methods = [m for m in known if m not in without and (not m.startswith("taught-") or
               m.removeprefix("taught-") in groups)]  # fmt: skip
    study = Heuristics(seeds=seeds)
    parts = {}
    for method in methods:
        hit, alarm, control, skill = known[method]
        own = shared + rng.normal(0, spread / np.sqrt(2), len(kinds))
        for seed in range(1 if method == "overlap-only" else seeds):
            turn = rng.normal(0, luck)
            share = np.where(labels == 0, hit, alarm) + own[rows] + turn
            apart = np.full(len(places), control + turn)
            if method.startswith("taught-"):  # other heuristics are as they were
                was = known["vanilla"]
                usual = np.where(labels == 0, was[0], was[1]) + own[rows] + turn
                share = np.where(
                    group == groups.index(method.removeprefix("taught-")), share, usual
                )
            said = 1.0 - (rng.random(len(rows)) < np.clip(share, 0, 1))
            beside = 1.0 - (rng.random(len(places)) < np.clip(apart, 0, 1))
            right = rng.random(task_size) < np.clip(skill + rng.normal(0, luck), 0, 1)
            answers = np.where(right, task_labels, 1 - task_labels) * 1.0
            if failing and rng.random() < failing:
                one = float(rng.integers(2))
                said, beside, answers = (np.full(len(x), one) for x in (
                    said, beside, answers))  # fmt: skip
            parts[f"{method}-seed-{seed}"] = xr.Dataset(
                {
                    "said": ("example", said),
                    "control": ("place", beside),
                    "task": ("task_example", answers),
                    "labels": ("example", labels * 1.0),
                    "task_labels": ("task_example", task_labels * 1.0),
                    "group": ("example", group),
                    "subcase": ("example", rows),
                    "controlled": ("place", places),
                },
                {"heuristic": list(groups), "case": [f"case {c}" for _, _, c in kinds]},
                {"task": "made-up", "train_size": 1000, "scored_fingerprint": "x"},
            )
    about = {"name": "m", "fingerprint": "f"}
    corpus = {"name": "made-up", "fingerprint": "c"}
    return study.conclude(parts, Provenance("heuristics", 1, {}, about, corpus))
