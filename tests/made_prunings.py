"""What made-up results of pruning studies share."""

from __future__ import annotations

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
