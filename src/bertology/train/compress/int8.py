"""Whole numbers of 8 bits, made of a model as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bertology.model.compressed.quantised import quantise
from bertology.model.encoder import Encoder
from bertology.parameters import parameter
from bertology.train.compress.method import STORED, Method
from bertology.train.compress.work import Work

__all__ = ["Int8"]


@dataclass(frozen=True)
class Int8(Method):
    """Weights of all maps and tables but the head's are whole numbers with a step for each row.

    With `inputs=int8`, inputs of maps are rounded on the fly, and a CPU multiplies whole numbers.
    """

    summary: ClassVar[str] = "weights, and inputs on the fly, are whole numbers of 8 bits"
    source: ClassVar[str] = "dynamic quantisation"

    inputs: str = parameter("int8", "int8: inputs of maps are rounded, too. float: they are not.",
                            choices=("int8", "float"))  # fmt: skip

    @property
    def kind(self) -> str:
        """Other numbers, which are not trained."""
        return STORED

    def apply(self, work: Work) -> Encoder:
        """Store whole numbers."""
        inputs = 8 if self.inputs == "int8" else None
        return work.around(quantise(work.encoder.model, 8, activations=inputs))
