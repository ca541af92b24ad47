"""ALBERT from a BERT: a narrow table of embeddings, and layers that share their weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bertology.model.compressed.low_rank import factorise
from bertology.model.compressed.shared_layers import share
from bertology.model.compressed.written import named_maps
from bertology.model.encoder import Encoder
from bertology.parameters import parameter
from bertology.train.compress.method import EPOCHS, FORM, Method
from bertology.train.compress.work import Work


@dataclass(frozen=True)
class Factorised(Method):
    """The table of pieces becomes a product of low rank, layers of a group become one; trained on.

    ALBERT is pre-trained like that; here a BERT is turned into one, and has only the task's data to
    mend it. With as many groups as layers, layers keep weights of their own.
    """

    summary: ClassVar[str] = "a table of low rank and layers that share weights, trained on"
    source: ClassVar[str] = "Lan et al. 2019"
    against: ClassVar[dict[str, str]] = {
        "low_rank": "layers of low rank are not shared",
        "heads_and_mlps": "layers that differ in size cannot be one",
        "factorised": "it was done already",
        "token_elimination": "tokens are chosen by layers of their own",
    }

    rank: int = parameter(128, "Columns of the table; those that it has, at most.", minimum=1)
    groups: int = parameter(1, "How many layers have weights of their own.", minimum=1)
    how: str = parameter("mean", "Shared weights begin as the mean of the layers', or the first's.",
                         choices=("mean", "first"))  # fmt: skip
    epochs: int | None = parameter(None, EPOCHS, minimum=0)

    @property
    def kind(self) -> str:
        """Other parts."""
        return FORM

    def apply(self, work: Work) -> Encoder:
        """Factorise, share, and train on."""
        model, layers = work.encoder.model, work.encoder.shape.layers
        tables = dict(named_maps(model, "embeddings"))
        words = max(tables, key=lambda name: tables[name].weight.shape[0])
        rows, columns = tables[words].weight.shape
        rank = min(self.rank, columns, rows)
        if rank < columns:
            model = factorise(model, ranks={words: rank})
        groups = min(self.groups, layers)
        if groups < layers:
            model = share(model, groups=groups, how=self.how)
        work.say(f"the table of pieces has {rank} columns, {layers} layers have {groups} weights")
        found = work.around(model)
        work.train_on(found, epochs=self.epochs)
        return found
