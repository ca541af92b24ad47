"""Numbers of 16 bits on the disk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from bertology.errors import ModelError
from bertology.model.encoder import Encoder
from bertology.parameters import parameter
from bertology.train.compress.method import STORED, Method
from bertology.train.compress.work import Work

__all__ = ["Half"]


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
        kind: torch.dtype = getattr(torch, self.numbers)
        largest = max(float(w.detach().abs().max()) for w in work.encoder.model.parameters())
        if largest > torch.finfo(kind).max:
            raise ModelError(
                f"A weight of {largest:.3g} does not fit into {self.numbers}.",
                hint="Take half:numbers=bfloat16.",
            )
        return work.around(work.encoder.model.to(kind))
