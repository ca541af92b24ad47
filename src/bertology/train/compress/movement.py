"""Movement pruning: weights that a training moves towards zero become zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bertology.model.encoder import Encoder
from bertology.model.weight_masks import prunable_in_layers
from bertology.parameters import parameter
from bertology.train.compress.magnitude import thin_out
from bertology.train.compress.method import ONE_EPOCH, ZEROS, Method
from bertology.train.compress.work import Work
from bertology.train.movement import Movement as Moving


@dataclass(frozen=True)
class Movement(Method):
    """Weights whose size a training makes smaller go, even if they are large."""

    summary: ClassVar[str] = "weights that a training moves towards zero become zero"
    source: ClassVar[str] = "Sanh et al. 2020"

    weights: float = parameter(
        0.3, "The share of weights that stays in each matrix.", minimum=0.001, maximum=1
    )
    epochs: int | None = parameter(None, ONE_EPOCH, minimum=1)

    @property
    def kind(self) -> str:
        """Zeros, which another training would fill."""
        return ZEROS

    def apply(self, work: Work) -> Encoder:
        """Train, and leave zeros."""
        return thin_out(work, Moving(prunable_in_layers(work.encoder), self.weights), self.epochs)
