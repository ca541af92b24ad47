"""Rows of an array that is too large for memory: a few rows at a time, as often as needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_HELD = 1 << 17  # numbers in one block of an array: 1 MB


@dataclass(frozen=True)
class RowBlocks:
    """Rows by examples, (v, N, …) at a time; `make` starts again for every iteration."""

    make: Callable[[], Iterable[NDArray[Any]]]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return iter(self.make())


def in_blocks(rows: NDArray[Any] | RowBlocks) -> RowBlocks:
    """An array as blocks of a few rows, so that copies of a block are small."""
    if isinstance(rows, RowBlocks):
        return rows
    step = max(1, _HELD // max(1, int(np.prod(rows.shape[1:]))))
    return RowBlocks(lambda: (rows[at : at + step] for at in range(0, len(rows), step)))
