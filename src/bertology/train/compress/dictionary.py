"""GOBO: a small dictionary of values for most weights, and the few far ones as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bertology.model.compressed.quantised import quantise
from bertology.model.compressed.written import named_maps
from bertology.model.encoder import Encoder
from bertology.parameters import parameter
from bertology.train.compress.method import STORED, Method
from bertology.train.compress.work import Work


@dataclass(frozen=True)
class Dictionary(Method):
    """Each matrix has 2^bits values, found by grouping its weights; nothing is trained.

    Weights that a normal distribution would hardly have are outliers, and are kept in full.
    """

    summary: ClassVar[str] = "weights are numbers of a small dictionary, outliers are kept"
    source: ClassVar[str] = "Zadeh et al. 2020"

    bits: int = parameter(3, "Bits of the weights of maps.", minimum=1, maximum=8)
    embeddings: int = parameter(4, "Bits of the tables of embeddings.", minimum=1, maximum=8)
    outliers: float = parameter(
        -4.0, "Weights are kept in full whose log density is below this.", maximum=0
    )

    @property
    def kind(self) -> str:
        """Other numbers, which are not trained."""
        return STORED

    def apply(self, work: Work) -> Encoder:
        """Store numbers of dictionaries."""
        model = work.encoder.model
        tables: dict[int | str, int] = {
            name: self.embeddings for name, _ in named_maps(model, "embeddings")
        }
        found = quantise(
            model,
            self.bits,
            scheme="dictionary",
            groups="tensor",
            bits_of=tables,
            outlier_limit=self.outliers,
        )
        return work.around(found)
