"""Rows that are too many to be looked at together: a few at a time, as often as needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["RowBlocks", "in_blocks"]

_HELD = 1 << 17  # numbers in one block of an array: 1 MB


@dataclass(frozen=True)
class RowBlocks:
    """Rows by examples, (v, N, …) at a time; `make` begins anew whenever they are gone through."""

    make: Callable[[], Iterable[NDArray[Any]]]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return iter(self.make())


def in_blocks(rows: NDArray[Any] | RowBlocks) -> RowBlocks:
    """An array few rows at a time, so that the copies made of them are small."""
    if isinstance(rows, RowBlocks):
        return rows
    step = max(1, _HELD // max(1, int(np.prod(rows.shape[1:]))))
    return RowBlocks(lambda: (rows[at : at + step] for at in range(0, len(rows), step)))
