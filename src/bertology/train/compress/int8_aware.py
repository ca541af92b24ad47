"""Q8BERT: trained with rounded weights and inputs, and then stored so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bertology.model.compressed.integer_product import Range
from bertology.model.compressed.quantised import quantise
from bertology.model.compressed.rehearsal import rehearsed
from bertology.model.encoder import Encoder
from bertology.parameters import parameter
from bertology.train.compress.method import ONE_EPOCH, STORED, Method
from bertology.train.compress.work import Work

_FILLED = "its training would fill the zeros again; int8 does not train"
_NO_MAPS = "a BiLSTM has no maps to be trained in few bits; int8 stores its table of vectors"


@dataclass(frozen=True)
class Int8Aware(Method):
    """Every pass of a training rounds weights and inputs, as the stored model will.

    Gradients pass through the rounding as if it was not there, so that weights learn to be rounded.
    Ranges of inputs are running means over the batches of the training (their furthest real
    tokens), and are stored. Unlike Q8BERT's they lie around zero unevenly where the inputs do, and
    their mean reaches back over 100 batches, not 10,000, as small tasks have no more.
    """

    summary: ClassVar[str] = "trained with 8-bit weights and inputs, and stored so"
    source: ClassVar[str] = "Zafrir et al. 2019"
    against: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("magnitude", "movement", "rewound"), _FILLED),
        "bilstm": _NO_MAPS,
        "early_exit": "exits are trained for the model as it is; put them after it, or take int8",
    }

    bits: int = parameter(8, "Bits of the weights; inputs have 8.", minimum=2, maximum=8)
    epochs: int | None = parameter(None, ONE_EPOCH, minimum=1)

    @property
    def kind(self) -> str:
        """Other numbers, which are not trained any more."""
        return STORED

    def apply(self, work: Work) -> Encoder:
        """Rehearse, then store."""
        ranges: dict[str, Range] = {}
        work.train_on(
            work.encoder,
            epochs=self.epochs,
            held=lambda model: rehearsed(model, self.bits, activations=8, ranges=ranges),
            recordable=False,
        )
        found = quantise(work.encoder.model, self.bits, activations=8, ranges=ranges)
        return work.around(found)
