"""The description of a model in a result's provenance."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from bertology.errors import ModelError
from bertology.plain_files import local_path

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder


def describe_model(encoder: Encoder) -> dict[str, object]:
    """What a reader must know of the model. Only the fingerprint is part of a result's identity."""
    about = {
        "name": encoder.name,
        "fingerprint": encoder.fingerprint,
        "family": encoder.family.model_type,
        "shape": asdict(encoder.shape),
        "head": encoder.head,
        "parameters": encoder.parameters,
    }
    origin = _tuned_from(encoder.name)
    return about if origin is None else {**about, "tuned_from": origin}


def _tuned_from(name: str) -> dict[str, object] | None:
    """For a model that bertology fine-tuned: the model before fine-tuning, and the task."""
    from bertology.train.checkpoint import read_record

    try:
        record = read_record(local_path(name, error=ModelError)) or {}
    except ModelError:
        return None  # a damaged record is no reason to refuse the model
    base = record.get("base")
    if not isinstance(base, dict) or "fingerprint" not in base:
        return None
    return {
        "name": base.get("name"),
        "fingerprint": base["fingerprint"],
        "task": record.get("task"),
    }
