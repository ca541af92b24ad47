"""The highest layers drawn anew before fine-tuning (Zhang et al. 2021)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from bertology.errors import ParameterError
from bertology.parameters import parameter
from bertology.train.starts import draw_weights
from bertology.train.ways.way import Lesson, Way

_FROZEN = "layers that are drawn anew must be trained"


@dataclass(frozen=True)
class TopAgain(Way):
    """Trained: everything; the highest `layers` layers and the pooler begin with new weights.

    So does a norm after the last layer. They are drawn as before pre-training: matrices with the
    spread that the config names, biases 0, scales of LayerNorms 1.
    """

    summary: ClassVar[str] = "the highest layers begin with new weights"
    order: ClassVar[int] = 2
    starts: ClassVar[frozenset[str]] = frozenset({"pretrained"})
    against: ClassVar[dict[str, str]] = {
        "adapters": _FROZEN,
        "bias_only": _FROZEN,
        "lora": _FROZEN,
        "mixout": "it would pull them back to the weights that were just drawn",
    }

    layers: int = parameter(1, "How many layers.", minimum=1)

    def check(self, lesson: Lesson, ways: Sequence[Way]) -> None:
        """There must be so many layers."""
        if self.layers > lesson.layers:
            must = f"be at most {lesson.layers}, the layers of the model"
            raise ParameterError("layers", "top_again", must, self.layers)

    def lowest(self, layers: int) -> int:
        """The lowest layer that is new, of so many, counted from 1."""
        return layers - self.layers + 1

    def prepare(self, lesson: Lesson) -> None:
        """Draw the new weights."""
        lowest = self.lowest(lesson.layers)
        names = [n for n, d in lesson.depths().items() if d >= lowest and n not in lesson.head]
        draw_weights(lesson.model, names, seed=lesson.seed_of(self))
