"""Chosen layers for the head to read, by themselves, as their mean, or side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from bertology.errors import ParameterError
from bertology.model.added_parts import add_part
from bertology.parameters import parameter
from bertology.train.ways.top_again import TopAgain
from bertology.train.ways.way import Lesson, Way


@dataclass(frozen=True)
class LayerChoice(Way):
    """Trained: all that is read; with `how=joined` also the map from joined layers to one state.

    Layers are counted from 1; `9-12` are four of them, `3+6` two. Joined layers stand side by
    side, and a map that is learnt, and begins as their mean, makes one state of them. Layers above
    the highest chosen one are not read, and stay as they are.
    """

    summary: ClassVar[str] = "the head reads chosen layers, their mean or joined"
    order: ClassVar[int] = 4

    which: str = parameter("last-4", "Layers from 1: 6, 9-12, 3+6; or the last: last-4.")
    how: str = parameter("joined", "mean, or joined.", choices=("mean", "joined"))

    def check(self, lesson: Lesson, ways: Sequence[Way]) -> None:
        """There must be such layers, and new ones must be read."""
        layers = lesson.layers
        highest = self.highest(layers)
        for way in ways:
            if isinstance(way, TopAgain) and highest < layers:
                must = (
                    f"name layer {layers} too: top_again draws the layers from {way.lowest(layers)}"
                    " on anew, and those above the highest that is named are never read"
                )
                raise ParameterError("which", "layer_choice", must, self.which)

    def highest(self, layers: int) -> int:
        """The highest layer that is read, of so many, counted from 1."""
        return self._layers(layers)[-1] + 1

    def prepare(self, lesson: Lesson) -> None:
        """Let the head read them; what is above them has nothing to learn."""
        count = lesson.layers
        layers, highest = self._layers(count), self.highest(count)
        generator = lesson.generator(self)
        add_part(lesson.model, "layer_choice", generator, layers=layers, how=self.how)
        if highest < count:
            depths = lesson.depths()
            lesson.train_only(lambda name: not highest < depths[name] <= count)

    def _layers(self, count: int) -> list[int]:
        """The chosen layers, counted from 0."""
        found: set[int] = set()
        try:
            for piece in self.which.split("+"):
                first, dash, last = piece.partition("-")
                if first == "last":
                    found |= set(range(max(0, count - int(last)), count))
                else:
                    found |= set(range(int(first) - 1, int(last if dash else first)))
        except ValueError:
            found = set()
        if not found or not found <= set(range(count)):
            must = f"name layers from 1 to {count}, as in 6, 2-4, 1+3 or last-2"
            raise ParameterError("which", "layer_choice", must, self.which)
        return sorted(found)
