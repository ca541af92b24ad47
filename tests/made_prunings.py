"""What made-up results of pruning studies share."""

from __future__ import annotations

import numpy as np

from bertology.model.nested_masks import NestedWeights
from bertology.model.weight_masks import WeightMask
from bertology.results.provenance import Provenance

FACTS = {
    "task": "t", "metric": "accuracy", "constant": 0.5, "train_size": 9, "train_fingerprint": "x",
}  # fmt: skip


def provenance(study: str) -> Provenance:
    return Provenance(
        study=study,
        study_version=1,
        parameters={},
        model={"name": "m", "fingerprint": "f"},
        corpus={"name": "made-up", "fingerprint": "c"},
    )


def deciding(kept: int, steps: int = 4, *, n: int = 200) -> dict[str, object]:
    """Answers to examples that decide: 90 % are right in the steps that are kept, then 60 %."""
    labels = (np.arange(n) % 2).astype(float)
    right = np.where(np.arange(steps) < kept, 0.9, 0.6)
    said = np.stack([np.where(np.arange(n) < share * n, labels, 1 - labels) for share in right])
    return {
        "decided": (("step", "deciding"), said),
        "deciding_labels": ("deciding", labels),
        "constant_answer": 0.0,
        "kept_steps": kept,
    }


def planes_of(steps: list[np.ndarray]) -> np.ndarray:
    """Masks of all steps (matrices × weights) as they are stored; all weights come first."""
    masks = [WeightMask.of({str(i): row for i, row in enumerate(step)}) for step in steps]
    found = NestedWeights.begin(masks[0])
    for mask in masks[1:]:
        found = found.then(mask)
    return np.stack([plane.joined() for plane in found.planes])
