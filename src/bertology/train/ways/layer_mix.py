"""A weighted mix of all layers in place of the last one (Su and Cheng 2019; ELMo)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from bertology.model.added_parts import READER, add_part
from bertology.parameters import parameter
from bertology.train.ways.way import Lesson, Way


@dataclass(frozen=True)
class LayerMix(Way):
    """Trained: everything, one weight for each layer, and a scale.

    The head reads the mean of all layers under these weights (a softmax), times the scale. They
    begin equal, and learn with a rate of their own: at that of the model they would stay so.
    """

    summary: ClassVar[str] = "the head reads a learnt mix of all layers"
    order: ClassVar[int] = 4
    against: ClassVar[dict[str, str]] = {"layer_choice": "each says what the head reads"}

    rate: float = parameter(0.01, "Highest learning rate of the mix's weights.", minimum=1e-9)

    def prepare(self, lesson: Lesson) -> None:
        """Add the mix."""
        add_part(lesson.model, "layer_mix", lesson.generator(self))

    def rates(self, lesson: Lesson) -> Mapping[str, float]:
        """The mix's own."""
        names = [name for name, _ in lesson.model.named_parameters() if f".{READER}." in name]
        return dict.fromkeys(names, self.rate / lesson.rate)
