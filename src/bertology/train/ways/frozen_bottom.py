"""The lowest layers frozen: they stay as pre-training left them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bertology.errors import ParameterError
from bertology.parameters import parameter
from bertology.train.ways.way import Lesson, Way

__all__ = ["FrozenBottom"]


@dataclass(frozen=True)
class FrozenBottom(Way):
    """Trained: all but the embeddings and the lowest `layers` layers, adapters there included."""

    summary: ClassVar[str] = "embeddings and the lowest layers stay as they are"
    order: ClassVar[int] = 6
    starts: ClassVar[frozenset[str]] = frozenset({"pretrained"})

    layers: int = parameter(1, "How many layers; 0 freezes the embeddings alone.", minimum=0)

    def prepare(self, lesson: Lesson) -> None:
        """Freeze them."""
        if self.layers >= lesson.layers:
            must = f"be below {lesson.layers}, the layers of the model (--start frozen-features)"
            raise ParameterError("layers", "frozen_bottom", must, self.layers)
        depths = lesson.depths()
        lesson.train_only(lambda name: depths[name] > self.layers)
