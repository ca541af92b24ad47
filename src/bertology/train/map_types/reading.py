"""Types and measures of all heads of a batch, taken while the model runs."""

from __future__ import annotations

import torch
from torch import Tensor

from bertology.model.batch import Batch
from bertology.model.encoder import Encoder
from bertology.model.map_measures import map_measures, own_segment
from bertology.model.place import Place
from bertology.model.segments import segments_of
from bertology.train.map_types.network import Cells, bundled_network, classify

__all__ = ["MapReading", "read_maps"]


class MapReading:
    """A reducer for one batch: the type of every map and, if asked, its measures."""

    def __init__(self, batch: Batch, layers: int, *, measures: bool = False) -> None:
        segments = segments_of(batch)
        self._cells = Cells(segments)
        self._same = own_segment(segments) if measures and self._cells.paired.any() else None
        self._network = bundled_network(str(segments.device))
        self._types: list[Tensor | None] = [None] * layers
        self._measures: list[Tensor | None] = [None] * layers
        self._measured = measures

    def update(self, value: Tensor, place: Place) -> None:
        """Take one layer: (B, H, T, T)."""
        self._types[place.layer] = classify(self._network, value, self._cells)
        if self._measured:
            self._measures[place.layer] = map_measures(value, place.real, self._same)

    @property
    def types(self) -> Tensor:
        """(B, layers, H), indices into MAP_TYPES."""
        return torch.stack([t for t in self._types if t is not None], 1).cpu()

    @property
    def measures(self) -> Tensor:
        """(measures, B, layers, H)"""
        return torch.stack([m for m in self._measures if m is not None], 2).cpu()


def read_maps(encoder: Encoder, batch: Batch, *, measures: bool = False) -> MapReading:
    """Run a batch once and classify the attention maps of all its heads."""
    reading = MapReading(batch, encoder.shape.layers, measures=measures)
    encoder.run(batch, reduce={"layer.*.head.*.pattern": reading})
    return reading
