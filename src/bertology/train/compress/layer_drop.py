"""LayerDrop: trained while layers are left out at random, so that any depth can be cut from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bertology.model.encoder import Encoder
from bertology.parameters import parameter
from bertology.train.compress.layer_choice import check_layers, chosen_layers, keep_layers
from bertology.train.compress.method import ONE_EPOCH, Method
from bertology.train.compress.work import Work
from bertology.train.ways.layer_drop import LayerDrop as Dropping


@dataclass(frozen=True)
class LayerDrop(Method):
    """One training for all depths; nothing is trained after the cut.

    With as many `layers` as there are, the trained model stays whole, for
    `layer_choice:epochs=0` to cut it to any depth.
    """

    summary: ClassVar[str] = "trained with layers left out at random, then cut without training"
    source: ClassVar[str] = "Fan et al. 2019"

    layers: int | None = parameter(
        None, "How many layers stay; half of them if not given.", minimum=1
    )
    share: float = parameter(
        0.2, "How often each layer is left out in training.", minimum=0, maximum=0.9
    )
    which: str = parameter("even", "even, bottom, top, measured, or layers from 1, as in 1+3+5.")
    epochs: int | None = parameter(None, ONE_EPOCH, minimum=1)

    def check_fit(self, encoder: Encoder) -> None:
        """Only layers that are there can stay."""
        check_layers(encoder, self.which, self.layers)

    def apply(self, work: Work) -> Encoder:
        """Train the whole model, and cut it."""
        self.check_fit(work.encoder)
        work.train_on(work.encoder, ways=(Dropping(self.share),), epochs=self.epochs)
        kept = chosen_layers(work, self.which, self.layers)
        return keep_layers(work, work.encoder, kept)
