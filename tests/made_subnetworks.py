"""Answers of subnetworks that are made up, with masks: results without any training."""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np

from bertology.data.corpus import Corpus, Example, Field, Task
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.studies.designs.scored_runs import answered
from bertology.studies.pruning.subnetworks import _SEEDLESS, METHODS, Subnetworks

TEXTS = frozenset({Field.TEXT, Field.LABEL})
TWO = Task("planted", "classification", ("no", "yes"), ("accuracy",))


def made_up(
    right: dict[str, float], *, seeds: int = 5, draw: int = 0, learnt: bool = True, n: int = 400,
    left: float = 0.5, masks: dict[str, np.ndarray] | None = None, task: Task = TWO,
    constant: Collection[tuple[str, int]] = (),
) -> Result:  # fmt: skip
    """Answers that are right with this probability; examples are easy or hard for all alike.

    Runs that are named in `constant`, by method and seed, give one answer only.
    """
    rng = np.random.default_rng(draw)
    study, hard = Subnetworks(seeds=seeds), rng.normal(size=n)
    labels = rng.integers(0, 2, n)
    examples = [Example(str(i), "x", label=int(label)) for i, label in enumerate(labels)]
    corpus, parts = Corpus("made-up", examples, TEXTS, task), {}

    def said(name: str) -> np.ndarray:
        luck = 0.0 if name in _SEEDLESS else rng.normal(0, 0.02)
        border = np.quantile(rng.normal(size=4000) * math.sqrt(1.5), right[name]) + luck
        fine = hard + rng.normal(size=n) * math.sqrt(0.5) < border
        return np.where(fine, labels, 1 - labels)

    groups = {
        "whole": [*METHODS[:4], "fine-tuned"],
        "magnitude": [m for m in METHODS if m.endswith("magnitude")],
        "importance": [m for m in METHODS if m.endswith("importance")],
    }
    for seed in range(seeds):
        for group, names in groups.items():
            own = {m: said(m) for m in names if m in right and (not seed or m not in _SEEDLESS)}
            own |= {m: np.zeros(n) for m in own if (m, seed) in constant}
            part = answered(own, corpus, corpus)
            if group == "importance":
                heads = masks["heads"][seed] if masks else _drawn(rng, 3, 4)
                mlps = masks["mlps"][seed] if masks else _drawn(rng, 3)
                part = part.assign(
                    heads=(("step", "layer", "head"), np.stack([np.ones_like(heads), heads])),
                    mlps=(("step", "layer"), np.stack([np.ones_like(mlps), mlps])),
                    kept_steps=2, left=left, shared=0.1, learnt=int(learnt), memory=0.6,
                    speed=1.5 + 0.01 * seed, reloaded=1,
                )  # fmt: skip
            elif group == "magnitude":
                bits = masks["weights"][seed] if masks else rng.integers(0, 256, 50)
                part = part.assign(
                    weights=(("plane", "byte"), bits.astype(np.uint8)[None]), weights_size=400,
                    kept_steps=2, left=left, shared=0.1, learnt=int(learnt),
                )  # fmt: skip
            parts[f"{group}-seed-{seed}"] = part
    about = Provenance(
        "subnetworks", 1, {}, {"name": "m", "fingerprint": "f"},
        {"name": task.name, "fingerprint": task.name},
    )  # fmt: skip
    return study.conclude(parts, about)


def _drawn(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return (rng.random(shape) < 0.5).astype(np.int8)
