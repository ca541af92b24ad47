"""Attention maps: of all heads on one sheet, of one head with its links, examples with tokens."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from bertology.arrays import Floats
from bertology.errors import ParameterError
from bertology.report.figures.pieces import add_note, add_title, checked, colour_bar
from bertology.report.look import ACCENT, look, new_figure, new_panels, sequential, type_size
from bertology.results.drawing import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

_READING = (
    "Above a map: layer.head, numbered from 0. Rows attend to columns; darker is more attention, "
    "each map scaled by its own largest weight."
)
_LINES = " Lines: here the second sentence begins."
_POINTS = 72  # in an inch
_FINE = 30  # cells of a map on a sheet, or a few more
_SMALLEST, _LEAST_IN_PRINT, _LARGEST = 4.0, 6.0, 6.5  # points, of a token


def map_sheet(maps: ArrayLike, *, title: str, note: str, tokens: Sequence[str] = ()) -> Figure:
    """Attention maps of all heads on one sheet: layers downwards, heads to the right.

    `maps` is layers × heads × queries × keys. Darker is more attention; every map has its own
    scale, because heads that spread their attention would all look empty on a common one. With
    `tokens`, three of the maps stand below in large, with their tokens.
    """
    sheet = checked(maps, "maps", "map_sheet", dimensions=4)
    layers, heads = sheet.shape[:2]
    cell = min(0.62, 8.0 / max(layers, heads, 1))
    width, height = max(4.6, heads * cell + 0.8), max(3.2, layers * cell + 1.2)
    large = _telling(sheet) if len(tokens) > 2 else {}
    side = 0.8 * width / 3
    below = side + 0.9 if large else 0.0
    with look():
        figure, (axes,) = new_panels(width, height + below, 1, 1)
        axes.remove()
        part: Figure | SubFigure = figure
        if large:
            ratios = (height, below)
            part, lower = figure.subfigures(2, 1, squeeze=False, height_ratios=ratios).ravel()
            scaled = side * figure.get_figwidth() / width
            spots = lower.subplots(1, len(large))
            for spot, (words, (layer, head)) in zip(spots, large.items(), strict=True):
                name = f"{layer}.{head}: {words}"
                _draw(spot, TitledMap(name, sheet[layer, head], tokens), scaled)
        _lay_out(part.subplots(), sheet)
        add_title(figure, title)
        add_note(figure, f"Rows: layers, columns: heads, from 0. {note}")
    return figure


def _lay_out(axes: Axes, sheet: Floats) -> None:
    """All maps as one picture with gaps; an own panel for each of 144 takes many seconds."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    layers, heads, rows, columns = sheet.shape
    fine = math.ceil(_FINE / max(rows, columns, 1))  # short texts would have gaps that are too wide
    gap = max(1, round(max(rows, columns) * fine / 10))
    high, wide = rows * fine, columns * fine
    picture = np.full((layers * (high + gap) - gap, heads * (wide + gap) - gap), -1.0)
    frames = []
    for layer, head in np.ndindex(layers, heads):
        top, left = layer * (high + gap), head * (wide + gap)
        own = np.repeat(np.repeat(sheet[layer, head], fine, axis=0), fine, axis=1)
        most = np.nanmax(own, initial=0.0)
        picture[top : top + high, left : left + wide] = own / (most or 1.0)
        frames.append(Rectangle((left - 0.5, top - 0.5), wide, high))
    colours = sequential().with_extremes(under="none")  # gaps are no attention, and no cell
    axes.imshow(picture, cmap=colours, vmin=0, vmax=1, interpolation="nearest")
    axes.add_collection(PatchCollection(frames, facecolor="none", edgecolor="#cccccc", lw=0.8))
    axes.set_xticks(np.arange(heads) * (wide + gap) + (wide - 1) / 2, map(str, range(heads)))
    axes.set_yticks(np.arange(layers) * (high + gap) + (high - 1) / 2, map(str, range(layers)))
    axes.tick_params(length=0, pad=2)
    axes.spines[:].set_visible(False)


def _telling(sheet: Floats) -> dict[str, tuple[int, int]]:
    """Of three things that heads do, the layer and head that does most of it."""
    count = sheet.shape[-1]
    ends = np.isin(np.arange(count), (0, count - 1))[None, :]
    apart = np.abs(np.subtract.outer(np.arange(count), np.arange(count)))
    kinds = {
        "both ends": ends,
        "neighbours": (apart == 1) & ~ends,
        "farther": (apart > 1) & ~ends,
    }
    found = {}
    for words, mask in kinds.items():
        # Only tokens inside of the text: the ends have nothing else to do.
        given = (np.nan_to_num(sheet) * mask)[:, :, 1:-1].sum(axis=(2, 3))
        layer, head = np.unravel_index(int(given.argmax()), given.shape)
        found[words] = int(layer), int(head)
    return found


def link_map(
    weights: ArrayLike,
    tokens: Sequence[str],
    pairs: Sequence[tuple[int, int]],
    *,
    title: str,
    note: str = "",
) -> Figure:
    """The map of one head: rows attend to columns, linked pairs (row, column) are framed."""
    from matplotlib.patches import Rectangle

    grid = np.asarray(weights, dtype=np.float64)
    if grid.shape != (len(tokens), len(tokens)):
        raise ParameterError(
            "weights", "link_map", f"be {len(tokens)} by {len(tokens)}", grid.shape
        )
    side = max(2.6, 0.24 * len(tokens))
    places = np.arange(len(tokens))
    with look():
        figure, axes = new_figure(side + 2.4, side + 1.6)
        shown = axes.imshow(grid, cmap=sequential(), vmin=0, interpolation="nearest")
        axes.set_xticks(places, list(tokens), rotation=90)
        axes.set_yticks(places, list(tokens))
        axes.set(xlabel="attended token", ylabel="attending token")
        size = 7.5 if canvas().width is None else min(7.5, 72 * side / len(tokens))
        axes.tick_params(length=0, labelsize=type_size(size))
        axes.spines[:].set_visible(False)
        for query, key in pairs:
            frame = Rectangle((key - 0.5, query - 0.5), 1, 1, fill=False, ec=ACCENT, lw=1.6)
            axes.add_patch(frame)
        colour_bar(figure, [axes], shown, "attention weight", shrink=0.8)
        add_title(figure, title)
        add_note(figure, f"Framed: linked pairs. {note}".strip())
    return figure


@dataclass(frozen=True)
class TitledMap:
    """A map with its tokens: rows attend to columns."""

    name: str
    weights: ArrayLike
    tokens: Sequence[str]
    second: int | None = None  # the token that begins the second sentence


def example_sheet(rows: Mapping[str, Sequence[TitledMap]], *, title: str, note: str) -> Figure:
    """Maps side by side, a row for each name; darker is more, each map by its own largest weight.

    A line shows where the second sentence of a pair begins.
    """
    maps = [one for row in rows.values() for one in row]
    if not maps:
        raise ParameterError("rows", "example_sheet", "hold at least one map", 0)
    columns = max(len(row) for row in rows.values())
    longest = max(len(one.tokens) for one in maps)
    side = min(3.0, max(1.9, 0.085 * longest))  # inches
    paired = any(one.second is not None for one in maps)
    told = f"{_READING}{_LINES if paired else ''} {note}"
    with look():
        width = max(5.0, columns * (side + 0.75) + 0.5)
        figure, spots = new_panels(width, len(rows) * (side + 0.85) + 1.0, len(rows), columns)
        scaled = side * figure.get_figwidth() / width
        for i, (name, row) in enumerate(rows.items()):
            line = spots[i * columns : (i + 1) * columns]
            for one, shown in zip(line, row, strict=False):
                _draw(one, shown, scaled)
            for empty in line[len(row) :]:
                empty.axis("off")
            fitting = max(6.0, min(type_size(10), scaled * _POINTS / (0.65 * len(name) + 1)))
            line[0].set_ylabel(name, fontweight="bold", fontsize=fitting, labelpad=8)
        add_title(figure, title)
        add_note(figure, told)
    return figure


def _draw(axes: Axes, shown: TitledMap, side: float) -> None:
    grid, count = np.asarray(shown.weights, dtype=float), len(shown.tokens)
    if grid.shape != (count, count):
        raise ParameterError("weights", "example_sheet", f"be {count} by {count}", grid.shape)
    axes.imshow(grid, cmap=sequential(), vmin=0, interpolation="nearest")
    room = 0.85 * side * _POINTS / max(count, 1)  # of one row
    least = _SMALLEST if canvas().width is None else _LEAST_IN_PRINT
    size = max(least, min(_LARGEST, room))
    # Of a long text every few tokens are named.
    places = range(0, count, max(1, math.ceil(size / room)))
    named = [str(shown.tokens[at]) for at in places]
    axes.set_xticks(places, named, rotation=90, fontsize=size)
    axes.set_yticks(places, named, fontsize=size)
    axes.tick_params(length=0, pad=1.5)
    axes.spines[:].set(visible=True, color="#cccccc")
    axes.set_title(shown.name, fontsize=type_size(8), fontweight="normal", pad=4)
    if shown.second is not None:
        for draw in (axes.axvline, axes.axhline):
            draw(shown.second - 0.5, color=ACCENT, linewidth=0.8)
