"""Types and measures of the attention maps of many texts, taken while a model runs.

Each layer is looked at as soon as it is there, so no map is kept. What was seen is small and of one
size whatever the length of a text, so that types of many maps are named together, on a GPU those
of several batches. It is asked for nothing in between for which the host would have to wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bertology.model.batch import Batch
from bertology.model.encoder import Encoder
from bertology.model.place import Place
from bertology.model.segments import segments_of
from bertology.train.map_types.looks import Cells, Look, of_all_heads, of_all_texts
from bertology.train.map_types.network import bundled_network, types_of
from bertology.train.map_types.scanning import Scanner, can_scan

__all__ = ["MapReading", "read_batches", "read_maps"]

_TOGETHER = 2**11  # maps whose types are named by one call: no more than a cache holds
_TOGETHER_ON_A_GPU = 2**18  # of several batches, for each call has its price; half a GiB within it


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
    waiting: list[_Seen] = []
    for batch in batches:
        waiting.append(_see(encoder, batch, measures=measures))
        if sum(seen.maps for seen in waiting) >= _together(encoder):
            yield from _named(encoder, waiting)
            waiting = []
    if waiting:
        yield from _named(encoder, waiting)


def _together(encoder: Encoder) -> int:
    return _TOGETHER if encoder.device.type == "cpu" else _TOGETHER_ON_A_GPU


@dataclass(frozen=True)
class _Seen:
    """A batch whose maps were looked at, and have no types yet."""

    batch: Batch
    cells: Cells
    look: Look  # all layers, as if they were heads of one

    @property
    def maps(self) -> int:
        return self.look.facts.shape[0] * self.look.facts.shape[1]


def _see(encoder: Encoder, batch: Batch, *, measures: bool) -> _Seen:
    cells = Cells(segments_of(batch).to(encoder.device))
    watcher = _Watcher(cells, encoder.shape.layers, measures=measures)
    encoder.run(batch, reduce={"layer.*.head.*.pattern": watcher})
    return _Seen(batch, cells, watcher.look())


def _named(encoder: Encoder, seen: Sequence[_Seen]) -> Iterator[MapReading]:
    """What was seen with its types, brought to the host."""
    layers, network = encoder.shape.layers, bundled_network(str(encoder.device))
    look = of_all_texts([s.look for s in seen])
    at_once = max(1, _together(encoder) // look.facts.shape[1])
    of_texts = zip(
        look.split(at_once),
        torch.split(torch.cat([s.cells.same for s in seen]), at_once),
        torch.split(torch.cat([s.cells.paired for s in seen]), at_once),
        strict=True,
    )
    types = torch.cat([types_of(network, *given) for given in of_texts]).cpu()
    measured = None if look.measures is None else look.measures.cpu()
    start = 0
    for one in seen:
        here = slice(start, start + len(one.batch))
        start = here.stop
        yield MapReading(
            one.batch,
            types[here].reshape(len(one.batch), layers, -1),
            None
            if measured is None
            else measured[:, here].reshape(len(measured), len(one.batch), layers, -1),
        )


class _Watcher:
    """A reducer: looks at each layer of one batch."""

    def __init__(self, cells: Cells, layers: int, *, measures: bool) -> None:
        self._cells, self._measured = cells, measures
        self._scanner = Scanner(cells, layers, measures=measures)
        self._scanned: bool | None = None
        self._looks: list[Look] = []  # of layers that were not scanned

    def update(self, value: Tensor, place: Place) -> None:
        """Take one layer."""
        if self._scanned is None:  # asked once a batch
            self._scanned = can_scan(value)
        if self._scanned:
            self._scanner.scan(value)
        else:
            self._looks.append(self._cells.look(value, measures=self._measured))

    def look(self) -> Look:
        """At all layers, as if they were heads of one: (B, layers · H, …)."""
        return of_all_heads(self._looks) if self._looks else self._scanner.look()
