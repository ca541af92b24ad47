"""Fine-tuned models with layers set back, made up: how often each is right is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import ndtri

from bertology.data.corpus import Corpus, Example, Field, Task
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.studies.designs.scored_runs import answered
from bertology.studies.training.layer_restoring import WHOLE, LayerRestoring, asked_changes
from bertology.train.restoring import Change

TASK = Task("made-up", "classification", ("no", "yes"), ("accuracy",))
LAYERS = 6
WHOLE_SKILL = 0.85


def made_up(
    loss: Callable[[Change], float],
    *,
    seeds: int = 4,
    examples: int = 400,
    luck: float = 0.01,
    skill: float = WHOLE_SKILL,
    draw: int = 0,
) -> Result:
    """`loss` says how much a change costs in the long run; `luck` is the spread over seeds."""
    rng = np.random.default_rng([draw, 8])
    labels = rng.integers(0, 2, examples)
    corpus = Corpus(
        "made-up",
        [Example(str(i), "x", label=int(label)) for i, label in enumerate(labels)],
        frozenset({Field.TEXT, Field.LABEL}),
        TASK,
    )
    study, hard, parts = LayerRestoring(seeds=seeds), rng.normal(size=examples), {}
    for seed in range(seeds):
        # What a model answers stays mostly the same when a layer changes.
        own = (hard + rng.normal(size=examples)) / np.sqrt(2)
        shift, said = rng.normal(0, luck), {}
        for name, lost in ((WHOLE, 0.0), *((c.name, loss(c)) for c in asked_changes(LAYERS))):
            odds = 0.9 * own + np.sqrt(1 - 0.9**2) * rng.normal(size=examples)
            right = odds < ndtri(
                np.clip(skill + shift - lost + rng.normal(0, luck / 4), 0.01, 0.99)
            )
            said[name] = np.where(right, labels, 1 - labels)
        parts[f"fine-tuned-seed-{seed}"] = answered(said, corpus, corpus, classes=1).assign(
            moved=("layer", np.linspace(0.1, 0.2, LAYERS))
        )
    return study.conclude(
        parts,
        Provenance("layer-restoring", 1, {}, {"name": "m", "fingerprint": "f"},
                   {"name": "made-up", "fingerprint": "c"}),
    )  # fmt: skip


def upper_only(change: Change) -> float:
    """Each layer of the upper half loses four points, lower ones nothing."""
    share = (1 - change.kept) * (2 if change.fresh else 1)
    return 0.04 * share * sum(layer >= LAYERS // 2 for layer in change.layers)
