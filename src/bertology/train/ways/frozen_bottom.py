"""The lowest layers frozen: they stay as pre-training left them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from bertology.errors import ParameterError
from bertology.parameters import parameter
from bertology.train.ways.layer_choice import LayerChoice
from bertology.train.ways.top_again import TopAgain
from bertology.train.ways.way import Lesson, Way


@dataclass(frozen=True)
class FrozenBottom(Way):
    """Trained: all but the embeddings and the lowest `layers` layers, adapters there included.

    Tables of relative positions, which all layers look into, count as embeddings.
    """

    summary: ClassVar[str] = "embeddings and the lowest layers stay as they are"
    order: ClassVar[int] = 6
    starts: ClassVar[frozenset[str]] = frozenset({"pretrained"})

    layers: int = parameter(1, "How many layers; 0 freezes the embeddings alone.", minimum=0)

    def check(self, lesson: Lesson, ways: Sequence[Way]) -> None:
        """Some layers that are read must be left to train, and all that are new."""
        layers = lesson.layers
        read, which = layers, "the layers of the model"
        for way in ways:
            if isinstance(way, LayerChoice):
                read, which = way.highest(layers), "the highest layer that layer_choice reads"
        if self.layers >= read:
            self._refuse(f"be below {read}, {which} (--start frozen-features)")
        for way in ways:
            if isinstance(way, TopAgain) and (lowest := way.lowest(layers)) <= self.layers:
                drawn = f"top_again draws the layers from {lowest} on anew"
                self._refuse(f"be below {lowest}: {drawn}, and what is new must be trained")

    def _refuse(self, must: str) -> None:
        raise ParameterError("layers", "frozen_bottom", must, self.layers)

    def prepare(self, lesson: Lesson) -> None:
        """Freeze them."""
        depths = lesson.depths()
        lesson.train_only(lambda name: depths[name] > self.layers)
