"""Numbers of 16 bits on the disk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bertology.model.compressed.sixteen_bit import store
from bertology.model.encoder import Encoder
from bertology.parameters import parameter
from bertology.train.compress.method import STORED, Method
from bertology.train.compress.work import Work


@dataclass(frozen=True)
class Half(Method):
    """Half of the bytes on the disk; plain transformers reads it.

    `bt.load` makes 32-bit numbers of them, so memory and speed are as before; `dtype="float16"`
    computes in 16 bits, where a GPU does that well.
    """

    summary: ClassVar[str] = "weights are stored in 16 bits"

    numbers: str = parameter(
        "float16", "float16 is finer; bfloat16 has room for larger numbers.",
        choices=("float16", "bfloat16"),
    )  # fmt: skip

    @property
    def kind(self) -> str:
        """Other numbers, which are not trained."""
        return STORED

    def apply(self, work: Work) -> Encoder:
        """Round all weights."""
        return work.around(store(work.encoder.model, self.numbers))
