"""What figures share: checked arrays, titles, notes, cells of a grid, colour bars."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertology.errors import ParameterError
from bertology.report.look import GREY, INK, diverging, sequential

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import QuadMesh
    from matplotlib.colors import Colormap, Normalize
    from matplotlib.figure import Figure

__all__ = [
    "CONVENTION",
    "Floats",
    "add_note",
    "add_title",
    "cells",
    "checked",
    "colour_bar",
    "colours",
    "outline",
    "scale",
    "ticks",
]

Floats = NDArray[np.float64]
_NOTE_SIZE = 7.5  # points
_LETTERS_PER_INCH = 16.5  # of that size, on average, with some room
CONVENTION = "Layers and heads are numbered from 0."


def checked(values: ArrayLike, name: str, of: str, *, dimensions: int) -> Floats:
    """`values` as an array that is not empty, or a ParameterError."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != dimensions or array.size == 0:
        must = f"be a non-empty array of {dimensions} dimension{'s' if dimensions > 1 else ''}"
        raise ParameterError(name, of, must, array.shape)
    return array


def add_title(figure: Figure, text: str, width: int = 200) -> None:
    """What is shown, over the whole width: a title of narrow axes would run off the page."""
    figure.suptitle(_wrapped(text, width), x=0.01, ha="left")


def add_note(figure: Figure, text: str) -> None:
    """Small lines below the axes, as long as the figure is wide."""
    if text:
        told = fill(text, int(_LETTERS_PER_INCH * figure.get_figwidth()))
        figure.supxlabel(told, fontsize=_NOTE_SIZE, color=GREY, x=0.01, ha="left")


def ticks(axis: Axis, count: int, most: int = 16) -> None:
    """Label 0, 1, 2 …, or every few when they would not fit."""
    step = max(1, -(-count // most))
    axis.set_ticks(range(0, count, step), [str(i) for i in range(0, count, step)])


def colours(center: float | None) -> Colormap:
    """From less to more, or to either side of a centre."""
    return sequential() if center is None else diverging()


def scale(shown: Floats, center: float | None, *, least: float | None = None) -> Normalize:
    """The range of the values; even to both sides of a centre, or from `least` on."""
    from matplotlib.colors import Normalize

    finite = shown[np.isfinite(shown)]
    if center is not None:
        reach = float(np.abs(finite - center).max()) if finite.size else 0.0
        reach = reach or 1e-3  # all equal to the centre: any range will do
        return Normalize(center - reach, center + reach)
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    low = low if least is None else least
    margin = 1e-3 * max(abs(low), 1.0) if low == high else 0.0
    return Normalize(low - margin, high + margin)


def cells(axes: Axes, grid: NDArray[np.generic], cmap: Colormap, norm: Normalize) -> QuadMesh:
    """One cell for each number, rows downwards; what was not measured is grey."""
    rows, columns = grid.shape
    mesh = axes.pcolormesh(
        np.arange(columns + 1) - 0.5,
        np.arange(rows + 1) - 0.5,
        np.ma.masked_invalid(grid),
        cmap=cmap,
        norm=norm,
        edgecolors="white",
        linewidth=0.8,
    )
    axes.set_ylim(rows - 0.5, -0.5)
    axes.set_aspect("equal")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return mesh


def outline(axes: Axes, marked: NDArray[np.bool_] | None) -> None:
    """A frame around the cells that are marked."""
    from matplotlib.patches import Rectangle

    for row, column in [] if marked is None else np.argwhere(marked):
        # A light line within a dark one: seen on light cells and on dark ones.
        for inset, colour, width in ((0.04, INK, 1.3), (0.11, "white", 1.1)):
            corner, side = (column - 0.5 + inset, row - 0.5 + inset), 1 - 2 * inset
            axes.add_patch(Rectangle(corner, side, side, fill=False, ec=colour, lw=width))


def colour_bar(
    figure: Figure, axes: list[Axes], shown: ScalarMappable, label: str, *, shrink: float = 0.86
) -> None:
    """What the colours mean, to the right of all `axes`."""
    bar = figure.colorbar(shown, ax=axes, shrink=shrink, aspect=22, pad=0.03)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=2.5, labelsize=8)
    bar.set_label(_wrapped(label, 34))  # a small grid is lower than a long label
    if bar.solids is not None:
        bar.solids.set_edgecolor("face")  # or viewers of vector files show hairlines


def _wrapped(text: str, width: int) -> str:
    return "\n".join(fill(line, width) for line in text.split("\n"))
