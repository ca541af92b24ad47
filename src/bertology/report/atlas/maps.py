"""Attention maps for the heads' panels: mean maps and those of a few examples, small enough."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from bertology.report.atlas.grid import Numbers, numbers
from bertology.report.atlas.naming import Entry

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MEAN = "mean_map"
_EXAMPLES_AT_MOST = 1 << 20  # bytes of example maps on a page, before base64


class PackedMaps(TypedDict):
    """The maps of all heads, one byte for each weight."""

    size: int
    peaks: Numbers
    weights: str


class MeanMaps(PackedMaps):
    """Mean maps of one result."""

    entry: str
    label: str
    study: str
    examples: int


class ExampleMaps(PackedMaps):
    """Maps of one example."""

    entry: str
    label: str
    tokens: list[str]


def mean_maps(entries: Iterable[Entry], shape: tuple[int, int]) -> list[MeanMaps]:
    """The mean maps of every result that has them."""
    return [
        {
            "entry": entry.anchor,
            "label": entry.label,
            "study": entry.study,
            "examples": int(entry.result.arrays.attrs.get("examples", 0)),
            **_packed(entry.result.arrays[_MEAN].to_numpy()),
        }
        for entry in entries
        if _fits(entry, _MEAN, shape)
    ]


def example_maps(
    entries: Iterable[Entry], shape: tuple[int, int], at_most: int = _EXAMPLES_AT_MOST
) -> list[ExampleMaps]:
    """Whole maps of examples with their tokens, as long as they are small enough together."""
    found, spent = list[ExampleMaps](), 0
    for entry, name in _kept(entries, shape):
        array = entry.result.arrays[name]
        if spent + array.size > at_most:
            continue
        spent += array.size
        tokens = [str(t) for t in np.atleast_1d(array.attrs.get("tokens", []))]
        found.append(
            {
                "entry": entry.anchor,
                "label": entry.label,
                "tokens": tokens,
                **_packed(array.to_numpy()),
            }
        )
    return found


def _kept(entries: Iterable[Entry], shape: tuple[int, int]) -> Iterator[tuple[Entry, str]]:
    for entry in entries:
        for name in map(str, entry.result.arrays.data_vars):
            if name.startswith("map_") and _fits(entry, name, shape):
                yield entry, name


def _fits(entry: Entry, name: str, shape: tuple[int, int]) -> bool:
    arrays = entry.result.arrays
    return name in arrays and arrays[name].ndim == 4 and arrays[name].shape[:2] == shape


def _packed(maps: NDArray[np.generic]) -> PackedMaps:
    """One byte for each weight, scaled by its map's largest."""
    wide = np.nan_to_num(np.asarray(maps, dtype=np.float64))
    peaks = wide.max(axis=(2, 3))
    scaled = wide / np.maximum(peaks, 1e-12)[:, :, None, None]
    weights = np.rint(255 * np.clip(scaled, 0, 1)).astype(np.uint8)
    return {
        "size": int(wide.shape[2]),
        "peaks": numbers(peaks),
        "weights": b64encode(weights.tobytes()).decode(),
    }
