"""Types and measures of the attention maps of many texts, taken while a model runs.

A CPU reads each layer as soon as it is there, while its maps are still in the cache. A GPU reads
them in no time but waits for every one of the calls that ask it to. So there the maps of all
layers, and of several batches, are kept and read by the calls that one layer would need, with
nothing in between for which the host must wait. Both ways give the same answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from bertology.model.batch import Batch
from bertology.model.encoder import Encoder
from bertology.model.map_measures import map_measures, own_segment
from bertology.model.place import Place
from bertology.model.segments import segments_of
from bertology.train.map_types.network import Cells, bundled_network, classify

__all__ = ["AT_ONCE", "MapReading", "read_batches", "read_maps"]

AT_ONCE = 2**27  # weights read together on a GPU: 512 MiB, and a few times that to work with
_MULTIPLE = 16  # texts, on a GPU: so the network meets few sizes
_Found = tuple[Tensor, Tensor | None]  # types (B, layers, H), measures (measures, B, layers, H)


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
    encoder: Encoder,
    batches: Iterable[Batch],
    *,
    measures: bool = False,
    at_once: int | None = None,
) -> Iterator[MapReading]:
    """What `read_maps` gives for each batch, in order.

    Args:
        encoder: The model whose maps are read.
        batches: From `encoder.batches`; those of similar length are best kept together.
        measures: Also take the measures of every map.
        at_once: Read at most so many attention weights together, and at least one layer; as suits
            the device, if not given.
    """
    if at_once is None:
        at_once = 0 if encoder.device.type == "cpu" else AT_ONCE
    waiting: list[_BatchMaps] = []
    for batch in batches:
        segments = segments_of(batch).to(encoder.device)
        seen = _BatchMaps(batch, segments, at_once, measures=measures)
        encoder.run(batch, reduce={"layer.*.head.*.pattern": seen})
        if waiting and (seen.begun or _size([*waiting, seen]) > at_once):
            yield from _read_together(waiting, measures=measures)
            waiting = []
        if seen.begun:  # too large to be read at once, even alone
            yield seen.reading()
        else:
            waiting.append(seen)
    if waiting:
        yield from _read_together(waiting, measures=measures)


class _BatchMaps:
    """A reducer: keeps the maps of one batch, and reads them where they grow too many."""

    def __init__(self, batch: Batch, segments: Tensor, at_once: int, *, measures: bool) -> None:
        self.batch, self.segments = batch, segments
        self.maps: list[Tensor] = []  # of each layer that waits, (B, H, T, T)
        self._at_once, self._measured = at_once, measures
        self._reader: _Reader | None = None
        self._found: list[_Found] = []

    @property
    def begun(self) -> bool:
        """Whether some layers were read already."""
        return bool(self._found)

    def update(self, value: Tensor, place: Place) -> None:
        """Take one layer."""
        self.maps.append(value)
        if (len(self.maps) + 1) * value.numel() > self._at_once:
            self._read()

    def _read(self) -> None:
        self._reader = self._reader or _Reader(self.segments, measures=self._measured)
        self._found.append(self._reader.read(_side_by_side(self.maps), len(self.maps)))
        self.maps = []

    def reading(self) -> MapReading:
        """What was seen in all layers."""
        if self.maps:
            self._read()
        types, measures = zip(*self._found, strict=True)
        measured = [m for m in measures if m is not None]
        return MapReading(
            self.batch,
            torch.cat(types, 1).cpu(),
            torch.cat(measured, 2).cpu() if measured else None,
        )


class _Reader:
    """Reads maps over some texts; what depends on the texts alone is made once."""

    def __init__(self, segments: Tensor, *, measures: bool) -> None:
        self._cells, self._real = Cells(segments), segments >= 0
        self._network = bundled_network(str(segments.device))
        on_cpu = segments.device.type == "cpu"
        self._multiple = 1 if on_cpu else _MULTIPLE
        # Without pairs this can be left out; but to know that, the host would wait for a GPU.
        paired = measures and (not on_cpu or bool(self._cells.paired.any()))
        self._same = own_segment(segments) if paired else None
        self._measured = measures

    def read(self, maps: Tensor, layers: int) -> _Found:
        """Of maps (B, layers · H, T, T)."""
        maps = maps.float()
        types = classify(self._network, maps, self._cells, multiple=self._multiple)
        types = types.view(len(maps), layers, -1)
        if not self._measured:
            return types, None
        measures = map_measures(maps, self._real, self._same)
        return types, measures.view(len(measures), len(maps), layers, -1)


def _side_by_side(maps: Sequence[Tensor]) -> Tensor:
    """The maps of several layers as if they were heads of one."""
    return maps[0] if len(maps) == 1 else torch.cat(list(maps), 1)


def _size(waiting: Sequence[_BatchMaps]) -> int:
    """Weights in all, padded to the widest."""
    widest = max(one.segments.shape[1] for one in waiting)
    heads = sum(layer.shape[1] for layer in waiting[0].maps)
    return sum(len(one.segments) for one in waiting) * heads * widest**2


def _read_together(waiting: Sequence[_BatchMaps], *, measures: bool) -> Iterator[MapReading]:
    """All layers of all batches in one go. Padding changes no answer, so widths may differ."""
    if len(waiting) == 1:
        yield waiting[0].reading()
        return
    widest = max(one.segments.shape[1] for one in waiting)
    rows, layers = [len(one.segments) for one in waiting], len(waiting[0].maps)
    segments = torch.cat(
        [
            functional.pad(one.segments, (0, widest - one.segments.shape[1]), value=-1)
            for one in waiting
        ]
    )
    heads = sum(layer.shape[1] for layer in waiting[0].maps)
    maps = waiting[0].maps[0].new_zeros(sum(rows), heads, widest, widest)
    for place, one in zip(torch.split(maps, rows), waiting, strict=True):
        size = one.segments.shape[1]
        place[:, :, :size, :size] = _side_by_side(one.maps)
        one.maps = []
    types, measured = _Reader(segments, measures=measures).read(maps, layers)
    own_types = torch.split(types.cpu(), rows)
    own_measures: Sequence[Tensor | None] = [None] * len(rows)
    if measured is not None:
        own_measures = torch.split(measured.cpu(), rows, 1)
    for one, found, numbers in zip(waiting, own_types, own_measures, strict=True):
        yield MapReading(one.batch, found, numbers)
