"""Bias terms only (BitFit, Ben Zaken et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bertology.errors import CapabilityError
from bertology.train.ways.way import Lesson, Way


@dataclass(frozen=True)
class BiasOnly(Way):
    """Trained: every bias of the model, those of LayerNorms too, and the head."""

    summary: ClassVar[str] = "only bias terms are trained"
    order: ClassVar[int] = 5
    usual_rate: ClassVar[float | None] = 1e-3
    starts: ClassVar[frozenset[str]] = frozenset({"pretrained"})
    against: ClassVar[dict[str, str]] = {
        "lora": "each says which weights of the model are trained",
    }

    def prepare(self, lesson: Lesson) -> None:
        """Freeze all else."""
        named = [name for name, _ in lesson.model.named_parameters() if _is_bias(name)]
        if not set(named) - set(lesson.head):
            raise CapabilityError(
                "The model has no bias terms, so bias_only would train its head alone.",
                hint="Use --start frozen-features for that.",
            )
        lesson.train_only(_is_bias)


def _is_bias(name: str) -> bool:
    return name.endswith("bias")
