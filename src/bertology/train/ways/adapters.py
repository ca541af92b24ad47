"""Adapters: small bottlenecks between the frozen maps of a model (Houlsby et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bertology.model.added_parts import ADAPTERS, add_part
from bertology.parameters import parameter
from bertology.train.ways.way import Lesson, Way


@dataclass(frozen=True)
class Adapters(Way):
    """Trained: two adapters in each layer, all LayerNorms, and the head. All else is frozen."""

    summary: ClassVar[str] = "small bottlenecks in each layer are trained, with LayerNorms"
    order: ClassVar[int] = 3
    usual_rate: ClassVar[float | None] = 1e-3
    starts: ClassVar[frozenset[str]] = frozenset({"pretrained"})
    against: ClassVar[dict[str, str]] = {
        "bias_only": "each says which weights of the model are trained",
        "lora": "each says which weights of the model are trained",
    }

    size: int = parameter(16, "Width of the bottleneck.", minimum=1)

    def prepare(self, lesson: Lesson) -> None:
        """Add the adapters, and freeze what they stand between."""
        new = set(add_part(lesson.model, ADAPTERS, lesson.generator(self), size=self.size))
        lesson.train_only(lambda name: name in new or "norm" in name.lower())
