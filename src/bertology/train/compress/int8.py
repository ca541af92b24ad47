"""Whole numbers of 8 bits, made of a model as it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from bertology.errors import ParameterError
from bertology.model.compressed.input_ranges import watched_ranges
from bertology.model.compressed.integer_product import Range
from bertology.model.compressed.quantised import DYNAMIC, FIXED, RANGES, quantise
from bertology.model.compressed.written import named_maps
from bertology.model.encoder import Encoder
from bertology.parameters import parameter
from bertology.train.compress.method import STORED, Method
from bertology.train.compress.work import Work
from bertology.train.encoded import encode
from bertology.train.fit import row_limit

_TABLE_ALONE = "the table of vectors is stored in 8 bits, all other weights are as they were"
_TEXTS = 256  # after some tens of texts, the furthest inputs hardly move
_ROWS = 32  # in one pass


@dataclass(frozen=True)
class Int8(Method):
    """Weights of all maps and tables but the head's are whole numbers with a step for each row.

    With `inputs=int8`, inputs of maps are rounded, too, and a CPU multiplies whole numbers. Their
    ranges are learnt from training examples and stored, so that the answer to a text does not
    depend on those that are asked about with it; nothing is trained. `ranges=dynamic` takes the
    range of each batch instead, padding included.
    """

    summary: ClassVar[str] = "weights, and inputs of maps, are whole numbers of 8 bits"
    source: ClassVar[str] = "quantisation after training"

    inputs: str = parameter("int8", "int8: inputs of maps are rounded, too. float: they are not.",
                            choices=("int8", "float"))  # fmt: skip
    ranges: str = parameter(FIXED, "Ranges of inputs. fixed: learnt, and stored. dynamic: those of "
                            "each batch, so that company changes an answer.",
                            choices=RANGES)  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.inputs == "float" and self.ranges == DYNAMIC:
            must = "be left out where inputs are not rounded"
            raise ParameterError("ranges", self.name, must, self.ranges)

    @property
    def kind(self) -> str:
        """Other numbers, which are not trained."""
        return STORED

    def apply(self, work: Work) -> Encoder:
        """Store whole numbers."""
        if not any(isinstance(module, nn.Linear) for _, module in named_maps(work.encoder.model)):
            work.say(f"{_TABLE_ALONE}; no inputs are rounded")
            return work.around(quantise(work.encoder.model, 8))
        if self.inputs == "float":
            return work.around(quantise(work.encoder.model, 8))
        ranges = learn_ranges(work) if self.ranges == FIXED else None
        return work.around(quantise(work.encoder.model, 8, activations=8, ranges=ranges))


def learn_ranges(work: Work) -> dict[str, Range]:
    """For each map, between which numbers its inputs lie; no text that scores the model is read."""
    encoder, examples = work.encoder, work.choosing[:_TEXTS]
    limit = row_limit(encoder.model, encoder.tokenizer, work.settings.max_length)
    rows = encode(examples, encoder.tokenizer, limit)

    def batches() -> Iterator[dict[str, Tensor]]:
        for start in range(0, len(rows), _ROWS):
            chosen = range(start, min(start + _ROWS, len(rows)))
            yield rows.batch(list(chosen), encoder.device)[0]

    work.say(f"ranges of inputs learnt from {len(rows):,} training examples")
    return watched_ranges(encoder.model, batches())
