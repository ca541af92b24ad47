"""Looking at the maps of all layers of one batch on a GPU, each map read once.

Plain torch would read each of them a dozen times. Here one kernel reads a layer's maps as they
come, and leaves little; a second one sums up what was left of all layers.
"""

from __future__ import annotations

import warnings
from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

from bertology.annotated.map_types.facts import FACTS
from bertology.annotated.map_types.looks import GRID, Cells, Look
from bertology.model.reducers.map_measures import MAP_MEASURES

_ROWS = 16  # of a map held at a time: the fewest that the kernel can multiply
_PER_WARP = 128  # columns: sums within one warp are many times as quick as sums over several
_SUMMED = 256  # numbers of one vector that are summed up together, of several maps if need be
_BYTES = 136  # of a multiprocessor's own memory that the kernel takes for each column, at most
_COMMON = 48 * 1024  # what every GPU has of it


def can_scan(maps: Tensor) -> bool:
    """Whether the kernels can read these: on a GPU where Triton works, and with rows that fit."""
    if not maps.is_cuda or not _triton_works(maps.device.index):
        return False
    known = torch.cuda.get_device_properties(maps.device)
    return _width(maps.shape[-1]) * _BYTES <= getattr(
        known, "shared_memory_per_block_optin", _COMMON
    )


@cache
def _triton_works(device: int) -> bool:
    """Tried once: it may be there without the compiler that it needs, or for newer GPUs only."""
    if find_spec("triton") is None:
        return False
    try:
        maps = torch.full((1, 1, 2, 2), 0.5, device=torch.device("cuda", device))
        scanner = Scanner(Cells(torch.zeros_like(maps[0, 0, :1]).long()), 1, measures=False)
        scanner.scan(maps)
        return bool(scanner.look().facts.isfinite().all())
    except Exception as error:  # whatever it is, torch can do the same
        warnings.warn(
            f"Triton does not work here, so that attention maps are read more slowly: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
        return False


class Scanner:
    """Takes the maps of one layer after another; then `look` gives what was seen in all."""

    def __init__(self, cells: Cells, layers: int, *, measures: bool) -> None:
        self._cells, self._layers, self._measured = cells, layers, measures
        self._small: Tensor | None = None  # (layers, B, H, GRID, GRID)
        self._vectors: Tensor
        self._seen = 0

    def scan(self, maps: Tensor) -> None:
        """Take maps (B, H, T, T) of any precision."""
        from bertology.annotated.map_types import scan_kernels as kernels

        batch, heads, size, _ = maps.shape
        cells = self._cells
        if self._small is None:
            empty = cells.same.new_empty
            self._small = empty(self._layers, batch, heads, GRID, GRID)
            self._vectors = empty(self._layers, kernels.VECTORS, batch * heads, size)
        width = _width(size)
        with torch.cuda.device_of(maps):  # type: ignore[no-untyped-call]
            kernels.scan[(batch * heads,)](
                maps, cells.segments, cells.rows, cells.columns,
                self._small[self._seen], self._vectors[self._seen],
                *maps.stride(), heads, size, batch * heads * size,
                side=GRID, width=width, block=_ROWS, measured=self._measured,
                num_warps=max(1, width // _PER_WARP),
            )  # fmt: skip
        self._seen += 1

    def look(self) -> Look:
        """At all layers, as if they were heads of one: (B, layers · H, …)."""
        from bertology.annotated.map_types import scan_kernels as kernels

        assert self._small is not None
        layers, batch, heads = self._small.shape[:3]
        size, maps = self._vectors.shape[-1], batch * heads
        facts = self._small.new_empty(layers, batch, heads, FACTS)
        numbers = self._small.new_empty(
            len(MAP_MEASURES) if self._measured else 0, layers, batch, heads
        )
        width = _width(size)
        many = max(1, _SUMMED // width)
        with torch.cuda.device_of(facts):  # type: ignore[no-untyped-call]
            kernels.sum_up[(-(-maps // many), layers)](
                self._vectors, self._cells.segments, facts, numbers,
                heads, size, maps, maps * size, kernels.VECTORS * maps * size,
                width=width, many=many, count=FACTS, measured=self._measured,
                num_warps=max(1, width // _SUMMED),
            )  # fmt: skip
        return Look(
            self._small.transpose(0, 1).flatten(1, 2),
            facts.transpose(0, 1).flatten(1, 2),
            numbers.transpose(1, 2).flatten(2, 3) if self._measured else None,
        )


def _width(size: int) -> int:
    return max(16, 1 << (size - 1).bit_length())
