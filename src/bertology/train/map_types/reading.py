"""Types and measures of the attention maps of many texts, taken while a model runs.

A CPU reads each layer as soon as it is there, while its maps are still in the cache. A GPU reads
them in no time but waits for every one of the calls that ask it to. So there the maps of all
layers, and of several batches, are kept and read by the calls that one layer would need, with
nothing in between for which the host must wait. Types alone are read there in half precision,
which is half as much to read. Both ways give the same answers, but for maps on the very border
between two types.
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

AT_ONCE = 2**28  # weights read together on a GPU: 1 GiB as they come, half of that to be read
_OF_MEMORY = 64  # or this part of its bytes, where a GPU is small
_PADDING = 0.25  # batches of other widths are read together while they grow by no more than this
_LITTLE = 2**24  # or by no more weights than these, which cost less than another call
_MULTIPLE = 16  # texts, on a GPU: so the network meets few sizes
_BEHIND = 8  # batches whose answers a GPU may still owe: the host would wait for each
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
        at_once = _as_suits(encoder.device)
    on_cpu = encoder.device.type == "cpu"
    owed: list[MapReading] = []
    for reading in _readings(encoder, batches, at_once, measures=measures):
        owed.append(reading)
        if on_cpu or len(owed) >= _BEHIND:
            yield from map(_brought, owed)
            owed = []
    yield from map(_brought, owed)


def _as_suits(device: torch.device) -> int:
    if device.type == "cpu":
        return 0
    if device.type != "cuda":
        return AT_ONCE // 4
    memory = torch.cuda.get_device_properties(device).total_memory
    return min(AT_ONCE, memory // _OF_MEMORY)


def _readings(
    encoder: Encoder, batches: Iterable[Batch], at_once: int, *, measures: bool
) -> Iterator[MapReading]:
    """With answers on the device."""
    waiting: list[_BatchMaps] = []
    for batch in batches:
        segments = segments_of(batch).to(encoder.device)
        seen = _BatchMaps(batch, segments, at_once, measures=measures)
        encoder.run(batch, reduce={"layer.*.head.*.pattern": seen})
        if waiting and (seen.begun or not _fit([*waiting, seen], at_once)):
            yield from _read_together(waiting, measures=measures)
            waiting = []
        if seen.begun:  # too large to be read at once, even alone
            yield seen.reading()
        else:
            waiting.append(seen)
    if waiting:
        yield from _read_together(waiting, measures=measures)


def _brought(reading: MapReading) -> MapReading:
    """The same on the host."""
    measured = reading.measured
    return MapReading(
        reading.batch, reading.types.cpu(), None if measured is None else measured.cpu()
    )


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
        joined = _joined([self], self.segments.shape[1], exact=self._measured)
        self._found.append(self._reader.read(joined, len(self.maps)))
        self.maps = []

    def reading(self) -> MapReading:
        """What was seen in all layers."""
        if self.maps:
            self._read()
        types, measures = zip(*self._found, strict=True)
        measured = [m for m in measures if m is not None]
        return MapReading(
            self.batch,
            torch.cat(types, 1),
            torch.cat(measured, 2) if measured else None,
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
        types = classify(self._network, maps, self._cells, multiple=self._multiple)
        types = types.view(len(maps), layers, -1)
        if not self._measured:
            return types, None
        measures = map_measures(maps, self._real, self._same)
        return types, measures.view(len(measures), len(maps), layers, -1)


def _fit(waiting: Sequence[_BatchMaps], at_once: int) -> bool:
    """Whether these are few enough to be read together, and alike enough in width."""
    heads = sum(layer.shape[1] for layer in waiting[0].maps)
    own = heads * sum(len(one.segments) * one.segments.shape[1] ** 2 for one in waiting)
    padded = heads * sum(len(one.segments) for one in waiting) * _widest(waiting) ** 2
    return padded <= min(at_once, own + max(_PADDING * own, _LITTLE))


def _widest(waiting: Sequence[_BatchMaps]) -> int:
    return max(one.segments.shape[1] for one in waiting)


def _joined(waiting: Sequence[_BatchMaps], widest: int, *, exact: bool) -> Tensor:
    """(texts, layers · heads, widest, widest): layers as if they were heads of one."""
    layers = waiting[0].maps
    if len(waiting) == len(layers) == 1:
        return layers[0].float()
    rows, heads = [len(one.segments) for one in waiting], layers[0].shape[1]
    on_cpu = layers[0].device.type == "cpu"
    # Weights lie between 0 and 1, where half precision is enough to tell types apart.
    kind = torch.float32 if exact or on_cpu else torch.float16
    even = all(one.segments.shape[1] == widest for one in waiting)
    make = layers[0].new_empty if even else layers[0].new_zeros
    maps = make(sum(rows), len(layers) * heads, widest, widest, dtype=kind)
    for place, one in zip(torch.split(maps, rows), waiting, strict=True):
        size = one.segments.shape[1]
        for own, layer in zip(torch.split(place, heads, 1), one.maps, strict=True):
            own[:, :, :size, :size] = layer
    return maps


def _read_together(waiting: Sequence[_BatchMaps], *, measures: bool) -> Iterator[MapReading]:
    """All layers of all batches in one go. Padding changes no answer, so widths may differ."""
    if len(waiting) == 1:
        yield waiting[0].reading()
        return
    widest, layers = _widest(waiting), len(waiting[0].maps)
    segments = torch.cat(
        [
            functional.pad(one.segments, (0, widest - one.segments.shape[1]), value=-1)
            for one in waiting
        ]
    )
    maps = _joined(waiting, widest, exact=measures)
    for one in waiting:
        one.maps = []
    rows = [len(one.segments) for one in waiting]
    types, measured = _Reader(segments, measures=measures).read(maps, layers)
    own_types = torch.split(types, rows)
    own_measures: Sequence[Tensor | None] = [None] * len(rows)
    if measured is not None:
        own_measures = torch.split(measured, rows, 1)
    for one, found, numbers in zip(waiting, own_types, own_measures, strict=True):
        yield MapReading(one.batch, found, numbers)
