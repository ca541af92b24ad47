"""Attention maps for the heads' panels: mean maps and those of a few examples, small enough."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NotRequired, TypedDict

import numpy as np

from bertology.report.atlas.compare import Side, asked_of
from bertology.report.atlas.grid import Numbers, numbers
from bertology.report.atlas.naming import Entry
from bertology.report.web import Html, element, joined
from bertology.results.measures import LayerGrid

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


# Layers of one model against layers of another: grids of results that compared the two.

_HOW = (
    "One cell for each pair of layers: those of {0} downwards, those of {1} to the right; “in” is "
    "what enters the first layer. Point at a cell for its number, or walk the grid with arrow keys."
)


class PairsRecord(TypedDict):
    """One grid, for the page's scripts."""

    id: str
    study: str
    title: str
    label: str
    unit: str
    reading: str
    rows: list[str]
    columns: list[str]
    values: Numbers
    low: NotRequired[Numbers]
    high: NotRequired[Numbers]
    level: NotRequired[float]


def layer_pairs(first: Side, second: Side) -> list[PairsRecord]:
    """Grids of every result of one side that compared it with the other; rows are of the first.

    Where both sides have such a result over the same data, with the same settings, one is shown.
    """
    found: dict[tuple[object, ...], PairsRecord] = {}
    for side, other, turned in ((first, second, False), (second, first, True)):
        for entry in side.entries:
            for grid in entry.result.layer_grids():
                model = entry.result.provenance.others.get(grid.other) if grid.other else None
                if model is not None and other.has_model(model):
                    data = (entry.result.provenance.corpus or {}).get("fingerprint")
                    key = (entry.study, grid.name, entry.task, data, asked_of(entry))
                    found.setdefault(key, _record(entry, grid, turned=turned))
    return list(found.values())


def _record(entry: Entry, grid: LayerGrid, *, turned: bool) -> PairsRecord:
    values, low, high = (
        side.T if turned and side is not None else side
        for side in (grid.values, grid.low, grid.high)
    )
    across = 0 if turned else 1
    made: PairsRecord = {
        "id": f"{entry.anchor}/{grid.name}",
        "study": entry.study,
        "title": grid.title,
        "label": entry.label,
        "unit": grid.unit,
        "reading": grid.reading,
        "rows": grid.names(1 - across),
        "columns": grid.names(across),
        "values": [] if values is None else numbers(values),
    }
    if low is not None and high is not None:
        made["low"], made["high"], made["level"] = numbers(low), numbers(high), entry.level
    return made


def layer_pairs_piece(first: Side, second: Side) -> Html:
    """Where the page's script puts the grids."""
    return joined(
        [
            element("h3", "Layers of the one and of the other"),
            element("p", _HOW.format(first.name, second.name), kind="soft"),
            element("div", id="pairs-choice", kind="choose"),
            element("div", id="pairs-grid"),
        ]
    )
