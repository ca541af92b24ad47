"""Batches cut so that the maps of all their heads can be held at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bertology.model.batch import Batch
    from bertology.model.shape import Shape

_HELD = 2**26  # weights of one model's maps held at a time: 256 MiB


def held_together(batch: Batch, shape: Shape) -> Iterator[Batch]:
    """Pieces of the batch whose maps, of all layers and heads, fit into 256 MiB."""
    length = batch.inputs["input_ids"].shape[-1]
    rows = max(1, _HELD // (shape.layers * shape.heads * length * length))
    for start in range(0, len(batch), rows):
        yield batch.only(range(start, min(start + rows, len(batch))))
