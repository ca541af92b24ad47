"""Types and measures of the attention maps of many texts, taken while a model runs.

Each layer is looked at as soon as it is there, so no map is kept. What was seen is small and of one
size whatever the length of a text, and the types of a whole batch are named together. A GPU is
asked for nothing in between for which the host would have to wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from bertology.model.batch import Batch
from bertology.model.encoder import Encoder
from bertology.model.place import Place
from bertology.model.segments import segments_of
from bertology.train.map_types.looks import Cells, Look, of_all_heads
from bertology.train.map_types.network import bundled_network, types_of
from bertology.train.map_types.scanning import Scanner, can_scan

__all__ = ["MapReading", "read_batches", "read_maps"]

_TOGETHER = {"cpu": 2**11}  # maps whose types are named by one call: no more than a cache holds
_TOGETHER_ON_A_GPU = 2**17  # about half a GiB within the network
_MULTIPLE = 16  # texts, on a GPU: so the network meets few sizes
_BEHIND = 8  # batches whose answers a GPU may still owe: the host would wait for each


@dataclass(frozen=True)
class MapReading:
    """What was seen in one batch."""

    batch: Batch
    types: Tensor  # (B, layers, H), indices into MAP_TYPES
    measured: Tensor | None

    @property
    def measures(self) -> Tensor:
        """(measures, B, layers, H)"""
        if self.measured is None:
            raise ValueError("measures were not asked for: read with measures=True")
        return self.measured


def read_maps(encoder: Encoder, batch: Batch, *, measures: bool = False) -> MapReading:
    """Run a batch once and classify the attention maps of all its heads."""
    return next(read_batches(encoder, [batch], measures=measures))


def read_batches(
    encoder: Encoder, batches: Iterable[Batch], *, measures: bool = False
) -> Iterator[MapReading]:
    """What `read_maps` gives for each batch, in order.

    Args:
        encoder: The model whose maps are read.
        batches: From `encoder.batches`.
        measures: Also take the measures of every map.
    """
    on_cpu = encoder.device.type == "cpu"
    owed: list[MapReading] = []
    for batch in batches:
        owed.append(_reading(encoder, batch, measures=measures))
        if on_cpu or len(owed) >= _BEHIND:
            yield from map(_brought, owed)
            owed = []
    yield from map(_brought, owed)


def _reading(encoder: Encoder, batch: Batch, *, measures: bool) -> MapReading:
    """With answers on the device."""
    layers, kind = encoder.shape.layers, encoder.device.type
    cells = Cells(segments_of(batch).to(encoder.device))
    watcher = _Watcher(cells, layers, measures=measures)
    encoder.run(batch, reduce={"layer.*.head.*.pattern": watcher})
    look = watcher.look()
    network = bundled_network(str(encoder.device))
    texts = max(1, _TOGETHER.get(kind, _TOGETHER_ON_A_GPU) // look.facts.shape[1])
    multiple = 1 if kind == "cpu" else _MULTIPLE
    of_texts = zip(
        look.split(texts),
        torch.split(cells.same, texts),
        torch.split(cells.paired, texts),
        strict=True,
    )
    types = torch.cat([types_of(network, *given, multiple=multiple) for given in of_texts])
    measured = look.measures
    if measured is not None:
        measured = measured.view(*measured.shape[:2], layers, -1)
    return MapReading(batch, types.view(len(types), layers, -1), measured)


def _brought(reading: MapReading) -> MapReading:
    """The same on the host."""
    measured = reading.measured
    return MapReading(
        reading.batch, reading.types.cpu(), None if measured is None else measured.cpu()
    )


class _Watcher:
    """A reducer: looks at each layer of one batch."""

    def __init__(self, cells: Cells, layers: int, *, measures: bool) -> None:
        self._cells, self._measured = cells, measures
        self._scanner = Scanner(cells, layers, measures=measures)
        self._looks: list[Look] = []  # of layers that were not scanned

    def update(self, value: Tensor, place: Place) -> None:
        """Take one layer."""
        if can_scan(value):
            self._scanner.scan(value)
        else:
            self._looks.append(self._cells.look(value, measures=self._measured))

    def look(self) -> Look:
        """At all layers, as if they were heads of one: (B, layers · H, …)."""
        return of_all_heads(self._looks) if self._looks else self._scanner.look()
