"""A model in the words of a result's provenance."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertology.errors import ModelError

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder

__all__ = ["described"]


def described(encoder: Encoder) -> dict[str, Any]:
    """A model for the reader of a result, and its fingerprint, which alone is in the identity."""
    about = {
        "name": encoder.name,
        "fingerprint": encoder.fingerprint,
        "family": encoder.family.model_type,
        "shape": asdict(encoder.shape),
        "head": encoder.head,
        "parameters": sum(p.numel() for p in encoder.model.parameters()),
    }
    origin = _tuned_from(encoder.name)
    return about if origin is None else {**about, "tuned_from": origin}


def _tuned_from(name: str) -> dict[str, Any] | None:
    """The model that one of our fine-tunings began with, and the task, as its folder records."""
    from bertology.train.checkpoint import read_record

    try:
        record = read_record(Path(name).expanduser()) or {}
    except ModelError:
        return None  # a story that cannot be read is no reason to refuse the model
    base = record.get("base")
    if not isinstance(base, dict) or "fingerprint" not in base:
        return None
    return {
        "name": base.get("name"),
        "fingerprint": base["fingerprint"],
        "task": record.get("task"),
    }
