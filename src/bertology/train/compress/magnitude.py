"""Gradual magnitude pruning: while a model is trained, its smallest weights become zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bertology.model.encoder import Encoder
from bertology.model.weight_masks import prunable_in_layers
from bertology.parameters import parameter
from bertology.train.compress.method import ONE_EPOCH, ZEROS, Method
from bertology.train.compress.work import Work
from bertology.train.movement import GradualMagnitude, Movement
from bertology.train.prune_weights import weights_text


@dataclass(frozen=True)
class Magnitude(Method):
    """The smallest weights of each matrix of the layers go, first fast, then slowly.

    Zeros take as much room as other numbers, and as much time, unless the file is packed or other
    software multiplies sparse matrices.
    """

    summary: ClassVar[str] = "in a training, the smallest weights become zero, more and more"
    source: ClassVar[str] = "Zhu and Gupta 2017; Gordon et al. 2020"

    weights: float = parameter(
        0.5, "The share of weights that stays in each matrix.", minimum=0.001, maximum=1
    )
    epochs: int | None = parameter(None, ONE_EPOCH, minimum=1)

    @property
    def kind(self) -> str:
        """Zeros, which another training would fill."""
        return ZEROS

    def apply(self, work: Work) -> Encoder:
        """Train, and leave zeros."""
        going = GradualMagnitude(prunable_in_layers(work.encoder), self.weights)
        return thin_out(work, going, self.epochs)


def thin_out(work: Work, going: Movement, epochs: int | None) -> Encoder:
    """Train the model of the work while its weights go."""
    work.train_on(work.encoder, epochs=epochs, movement=going)
    work.say(f"{weights_text(going.chosen.share)} in the layers' matrices are zero")
    return work.encoder
