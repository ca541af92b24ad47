"""Attention maps in a small file, so that maps which were labelled outlive their models.

A Parquet table with one row for each map: `model`, `corpus`, `split`, `example`, `layer`, `head`
(as in the file of labels), `second` (the first token of a pair's second sentence; the number of
tokens if there is one sentence) and `weights`. A cell is one of 1024 steps on the scale of the
square root, so steps are fine where attention is faint: step s stands for (s / 1023)². Cells stand
row after row, first the lower bytes of all of them, then the upper ones, which takes less space.
Rows are brought to the sum 1 when they are read.

Labels of these maps are a Parquet table, too: its columns are the keys of a line of the file of
labels, and what many labels of one map share takes no space again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats
from bertology.data.map_labels import MapKey, MapLabel, MapRecipe
from bertology.errors import DataError

_STEPS = 1023
_KEYS = ("model", "corpus", "split", "example", "layer", "head")


@dataclass(frozen=True)
class StoredMap:
    """One map and the sentence of each of its tokens."""

    key: MapKey
    weights: Floats  # (L, L), rows sum to 1
    segments: NDArray[np.int64]  # (L,): 0 and 1 in a pair's sentences, all 0 for one


def write_maps(path: str | Path, maps: Iterable[StoredMap]) -> None:
    """Write these maps to a new file."""
    import pyarrow as pa
    from pyarrow import parquet

    # Maps of one head beside each other: they are alike, which saves space.
    rows = sorted(maps, key=lambda m: (m.key[0], *m.key[4:], *m.key[1:4]))
    columns: dict[str, list[object]] = {
        name: [m.key[i] for m in rows] for i, name in enumerate(_KEYS)
    }
    columns["second"] = [int((m.segments == 0).sum()) for m in rows]
    columns["weights"] = [_pack(m.weights) for m in rows]
    small = {name: pa.int16() for name in ("layer", "head", "second")}
    table = pa.table({k: pa.array(v, small.get(k)) for k, v in columns.items()})
    # A dictionary of values that hardly ever repeat would only take space.
    parquet.write_table(
        table, path, compression="zstd", compression_level=22, use_dictionary=list(_KEYS)
    )


def read_maps(path: str | Path) -> Iterator[StoredMap]:
    """The maps of a file, one after the other."""
    for row in _rows(path):
        weights = _unpack(row["weights"])
        segments = (np.arange(len(weights)) >= row["second"]).astype(np.int64)
        key = tuple(row[name] for name in _KEYS)
        yield StoredMap(key, weights, segments)


def write_labels(path: str | Path, labels: Iterable[MapLabel]) -> None:
    """Write these labels to a new file, in their order."""
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.Table.from_pylist([json.loads(label.line()) for label in labels])
    parquet.write_table(table, path, compression="zstd", compression_level=22)


def read_stored_labels(path: str | Path) -> list[MapLabel]:
    """The labels of a file that `write_labels` wrote, in their order."""
    names = [f.name for f in fields(MapRecipe)]
    return [
        MapLabel(
            MapRecipe(**{name: row[name] for name in names}),
            row["label"],
            row["annotator"],
            row["pass"],
        )
        for row in _rows(path)
    ]


def _rows(path: str | Path) -> list[dict[str, Any]]:
    from pyarrow import ArrowException, parquet

    try:
        found: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    except (OSError, ArrowException) as error:
        raise DataError(f"The table {path} cannot be read: {error}") from None
    return found


def _pack(weights: Floats) -> bytes:
    steps = np.rint(_STEPS * np.sqrt(np.clip(weights, 0, 1))).astype("<u2").ravel()
    return bytes(steps.view(np.uint8).reshape(-1, 2).T.tobytes())


def _unpack(packed: bytes) -> Floats:
    halves = np.frombuffer(packed, np.uint8).reshape(2, -1)
    steps = np.ascontiguousarray(halves.T).view("<u2").astype(np.float64) / _STEPS
    size = int(np.sqrt(len(steps)))
    weights = np.square(steps).reshape(size, size)
    return np.asarray(weights / np.maximum(weights.sum(-1, keepdims=True), 1e-9))
