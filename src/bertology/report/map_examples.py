"""A sheet of example maps: a row for each type, every map with its own tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from bertology.errors import ParameterError
from bertology.report.look import ACCENT, GREY, look, new_figure, sequential

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["LabelledMap", "example_sheet"]

_READING = (
    "Above a map: layer.head, numbered from 0. Rows attend to columns; darker is more attention, "
    "each map scaled by its own largest weight."
)
_LINES = " Lines: here the second sentence begins."
_POINTS = 72  # in an inch
_SMALLEST, _LARGEST = 4.0, 6.5  # points, of a token


@dataclass(frozen=True)
class LabelledMap:
    """A map with its tokens: rows attend to columns."""

    name: str
    weights: ArrayLike
    tokens: Sequence[str]
    second: int | None = None  # the token that begins the second sentence


def example_sheet(rows: Mapping[str, Sequence[LabelledMap]], *, title: str, note: str) -> Figure:
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
        figure, axes = new_figure(
            max(5.0, columns * (side + 0.75) + 0.5), len(rows) * (side + 0.85) + 1.0
        )
        axes.remove()
        grid = figure.subplots(len(rows), columns, squeeze=False)
        for line, (name, row) in zip(grid, rows.items(), strict=True):
            for one, shown in zip(line, row, strict=False):
                _draw(one, shown, side)
            for empty in line[len(row) :]:
                empty.axis("off")
            line[0].set_ylabel(name, fontweight="bold", fontsize=10, labelpad=8)
        figure.suptitle(title, x=0.01, ha="left")
        width = int(16 * figure.get_figwidth())
        figure.supxlabel(fill(told, width), x=0.01, ha="left", fontsize=7.5, color=GREY)
    return figure


def _draw(axes: Axes, shown: LabelledMap, side: float) -> None:
    grid, count = np.asarray(shown.weights, dtype=float), len(shown.tokens)
    if grid.shape != (count, count):
        raise ParameterError("weights", "example_sheet", f"be {count} by {count}", grid.shape)
    axes.imshow(grid, cmap=sequential(), vmin=0, interpolation="nearest")
    size = min(_LARGEST, 0.85 * side * _POINTS / max(count, 1))
    if size >= _SMALLEST:
        axes.set_xticks(range(count), list(shown.tokens), rotation=90, fontsize=size)
        axes.set_yticks(range(count), list(shown.tokens), fontsize=size)
    else:
        axes.set(xticks=[], yticks=[])
    axes.tick_params(length=0, pad=1.5)
    axes.spines[:].set(visible=True, color="#cccccc")
    axes.set_title(shown.name, fontsize=8, fontweight="normal", pad=4)
    if shown.second is not None:
        for draw in (axes.axvline, axes.axhline):
            draw(shown.second - 0.5, color=ACCENT, linewidth=0.8)
