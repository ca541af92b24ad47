"""Maps of low rank: each linear map of the layers becomes the product of two smaller ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bertology.errors import CapabilityError, ParameterError
from bertology.model.compressed.low_rank import factorise
from bertology.model.compressed.written import named_maps
from bertology.model.encoder import Encoder
from bertology.parameters import parameter
from bertology.train.compress.method import EPOCHS, FORM, Method
from bertology.train.compress.work import Work


@dataclass(frozen=True)
class LowRank(Method):
    """The product that is nearest to each map (singular values), and what is left is trained on."""

    summary: ClassVar[str] = "maps of the layers become products of two smaller ones, trained on"
    source: ClassVar[str] = "Noach and Goldberg 2020"
    against: ClassVar[dict[str, str]] = {
        "low_rank": "it was done already",
        "factorised": "layers that share their weights are as small as they can be",
    }

    share: float | None = parameter(
        None, "The share of the maps' weights that stays; 0.5 if nothing is given.",
        minimum=0.001, maximum=1,
    )  # fmt: skip
    rank: int | None = parameter(None, "In place of it: the rank of all maps.", minimum=1)
    epochs: int | None = parameter(None, EPOCHS, minimum=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.share is not None and self.rank is not None:
            must = "be left out where share is given"
            raise ParameterError("rank", self.name, must, self.rank)

    @property
    def kind(self) -> str:
        """Other parts."""
        return FORM

    def apply(self, work: Work) -> Encoder:
        """Factorise, and train on."""
        model, share = work.encoder.model, 0.5 if self.share is None else self.share
        ranks = {}
        for name, module in named_maps(model, "layers"):
            rows, columns = module.weight.shape
            full = min(rows, columns)
            if not full:
                continue  # a map that was cut out
            wanted = self.rank or round(share * rows * columns / (rows + columns))
            ranks[name] = max(1, min(full, wanted))
        if not ranks:
            raise CapabilityError(
                f"{work.encoder.name!r} has no maps that low_rank could make smaller: all are of "
                "another form already.",
                hint="Compress the model that it was made of.",
            )
        work.say(
            f"{len(ranks)} maps have ranks from {min(ranks.values())} to {max(ranks.values())}"
        )
        found = work.around(factorise(model, ranks=ranks))
        work.train_on(found, epochs=self.epochs)
        return found
