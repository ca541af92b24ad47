"""Layer-wise learning rates: the lower a layer, the smaller its steps (Howard and Ruder 2018)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from bertology.parameters import parameter
from bertology.train.ways.way import Lesson, Way


@dataclass(frozen=True)
class LayerRates(Way):
    """Trained: everything; the rate is multiplied by `decay` from layer to layer, downwards.

    The head, the pooler and a norm after the last layer have the full rate, layer l of L has it
    times decay ^ (L + 1 - l), and the embeddings (with tables of relative positions, which all
    layers look into) come below layer 1.
    """

    summary: ClassVar[str] = "lower layers learn with smaller rates"
    order: ClassVar[int] = 7
    starts: ClassVar[frozenset[str]] = frozenset({"pretrained", "random"})

    decay: float = parameter(0.9, "What the rate is multiplied by.", minimum=1e-6, maximum=1.0)

    def rates(self, lesson: Lesson) -> Mapping[str, float]:
        """Factors by the depth of a weight."""
        top = lesson.layers + 1
        return {name: self.decay ** (top - depth) for name, depth in lesson.depths().items()}
