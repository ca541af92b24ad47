"""Types and measures of the attention maps of many texts, taken while a model runs.

Each layer is looked at as soon as it is there, so no map is kept. What was seen is small and of one
size whatever the length of a text, so that types of many maps are named together, on a GPU those
of several batches. A GPU is asked for nothing in between for which the host would have to wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from bertology.annotated.map_types.looks import Cells, Look, of_all_heads, of_all_texts
from bertology.annotated.map_types.network import bundled_network, types_of
from bertology.annotated.map_types.scanning import Scanner, can_scan
from bertology.model.batch import Batch
from bertology.model.encoder import Encoder
from bertology.model.reducers.class_attention import Several
from bertology.model.segments import segments_of
from bertology.model.site_context import SiteContext

if TYPE_CHECKING:
    from bertology.model.hooks.instrument import Reducer

_TOGETHER = 2**11  # maps whose types are named by one call: no more than a cache holds
_TOGETHER_ON_A_GPU = 2**18  # of several batches, for each call has its price; they take about a GiB
_WAITING = 8  # batches at most, whatever the number of their maps


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
    beside: Callable[[Batch], Reducer] | None = None,
) -> Iterator[MapReading]:
    """What `read_maps` gives for each batch, in order.

    Args:
        encoder: The model whose maps are read.
        batches: From `encoder.batches`.
        measures: Also take the measures of every map.
        beside: Makes a reducer that sees the same maps, so that no second pass is needed.
    """
    waiting: list[_Seen] = []
    for batch in batches:
        waiting.append(_see(encoder, batch, beside and beside(batch), measures=measures))
        maps = sum(seen.look.facts.shape[:2].numel() for seen in waiting)
        if maps >= _together(encoder) or len(waiting) == _WAITING:
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
    look: Look  # all layers, as if they were heads of one
    same: Tensor  # of `Cells`
    paired: Tensor


def _see(encoder: Encoder, batch: Batch, beside: Reducer | None, *, measures: bool) -> _Seen:
    cells = Cells(segments_of(batch).to(encoder.device))
    watcher = _Watcher(cells, encoder.shape.layers, measures=measures)
    reducer = watcher if beside is None else Several([watcher, beside])
    encoder.run(batch, reduce={"layer.*.head.*.pattern": reducer})
    return _Seen(batch, watcher.look(), cells.same, cells.paired)


def _named(encoder: Encoder, seen: Sequence[_Seen]) -> Iterator[MapReading]:
    """What was seen with its types."""
    layers = encoder.shape.layers
    types, measured = _types_and_measures(encoder, seen)
    rows = [len(one.look.facts) for one in seen]  # of a multiple choice, one for each
    parts = torch.split(types, rows)
    numbers = torch.split(measured, rows, 1) if measured is not None else [None] * len(rows)
    for one, own, values in zip(seen, parts, numbers, strict=True):
        shape = (len(own), layers, own.shape[1] // layers)
        yield MapReading(
            one.batch, own.view(shape), None if values is None else values.reshape(-1, *shape)
        )


def _types_and_measures(encoder: Encoder, seen: Sequence[_Seen]) -> tuple[Tensor, Tensor | None]:
    """Of all that was seen, on the host: (B, layers · H) and (measures, B, layers · H)."""
    network = bundled_network(str(encoder.device))
    look = of_all_texts([one.look for one in seen])
    at_once = max(1, _together(encoder) // look.facts.shape[1])
    of_texts = zip(
        look.split(at_once),
        torch.split(torch.cat([one.same for one in seen]), at_once),
        torch.split(torch.cat([one.paired for one in seen]), at_once),
        strict=True,
    )
    types = torch.cat([types_of(network, *given) for given in of_texts]).cpu()
    return types, None if look.measures is None else look.measures.cpu()


class _Watcher:
    """A reducer: looks at each layer of one batch."""

    def __init__(self, cells: Cells, layers: int, *, measures: bool) -> None:
        self._cells, self._measured = cells, measures
        self._scanner = Scanner(cells, layers, measures=measures)
        self._scanned: bool | None = None
        self._looks: list[Look] = []  # of layers that were not scanned

    def update(self, value: Tensor, at: SiteContext) -> None:
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
