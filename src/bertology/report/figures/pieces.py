"""What figures share: checked arrays, titles, notes, cells of a grid, colour bars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertology.arrays import Floats
from bertology.errors import ParameterError
from bertology.report.look import (
    ACCENT,
    GREY,
    ON_DARK,
    ON_LIGHT,
    PAPER,
    UNMEASURED,
    diverging,
    sequential,
    type_size,
)
from bertology.results.drawing import canvas
from bertology.results.measures import bounds_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import QuadMesh
    from matplotlib.colors import Colormap, Normalize
    from matplotlib.figure import Figure

_NOTE_SIZE, _TITLE_SIZE = 7.5, 10.5  # points
_PLAIN, _BOLD = 0.57, 0.65  # the mean width of a letter, by its size, with some room
_SMALL = 0.46  # the side of a cell that is open, where a sure one is whole
_STEPS = ((1.0, 1.2, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0), (1.0, 2.0, 5.0), (1.0, 3.0), (1.0,))
_MOST_STEPS = 6  # labels of a logarithmic axis that a narrow panel has room for
_FEW, _CROWDED = 12, 1 / 6  # marked cells, and their share, up to which outlines stand out
CONVENTION = "Layers and heads are numbered from 0."


def checked(values: ArrayLike, name: str, of: str, *, dimensions: int) -> Floats:
    """`values` as an array that is not empty, or a ParameterError."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != dimensions or array.size == 0:
        must = f"be a non-empty array of {dimensions} dimension{'s' if dimensions > 1 else ''}"
        raise ParameterError(name, of, must, array.shape)
    return array


def with_bounds(rows: pd.DataFrame, column: str, scale: float) -> list[Floats]:
    """A column and those of its bounds, each times `scale`.

    Bounds are those of `bounds_of`, or `low` and `high` where the table has only one pair of them.
    """
    named = (column, *(bounds_of(rows, column) or ("low", "high")))
    return [scale * rows[name].to_numpy(float) for name in named]


def add_title(figure: Figure, text: str) -> None:
    """What is shown, over the whole width: a title of narrow axes would run off the page."""
    asked = canvas()
    text = text if asked.title is None else asked.title
    if not text:
        return
    if asked.axes is not None:
        # A title is of the axes where they are one of several.
        inches = asked.axes.get_window_extent().width / figure.dpi
        asked.axes.set_title(_wrapped(text, _letters(inches, type_size(_TITLE_SIZE), _BOLD)))
        return
    size = type_size(_TITLE_SIZE)
    wrapped = _wrapped(text, _letters(figure.get_figwidth(), size, _BOLD))
    figure.suptitle(wrapped, x=0.01, ha="left", fontsize=size)


def add_note(figure: Figure, text: str) -> None:
    """Small lines below the axes, as long as the figure is wide; none below axes of others."""
    if text and canvas().axes is None:
        size = type_size(_NOTE_SIZE)
        told = fill(text, _letters(figure.get_figwidth(), size, _PLAIN))
        figure.supxlabel(told, fontsize=size, color=GREY, x=0.01, ha="left")


def _letters(inches: float, points: float, wide: float) -> int:
    """How many letters of a size fit into a line; `wide` is a letter's mean width by its size."""
    return max(12, int((inches - 0.15) * 72 / (wide * points)))


def ticks(axis: Axis, count: int, most: int = 16) -> None:
    """Label 0, 1, 2 …, or every few when they would not fit."""
    step = max(1, -(-count // most))
    axis.set_ticks(range(0, count, step), [str(i) for i in range(0, count, step)])


def times_axis(axes: Axes) -> None:
    """A logarithmic x axis for numbers of times: labels are round, and few enough to be read."""
    from matplotlib.ticker import FixedLocator, NullLocator

    axes.set_xscale("log")
    low, high = axes.get_xlim()
    powers = 10.0 ** np.arange(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    choices = [np.outer(powers, steps).ravel() for steps in _STEPS]
    seen = [marks[(marks >= low) & (marks <= high)] for marks in choices]
    marks = next((found for found in seen if found.size <= _MOST_STEPS), seen[-1])
    axes.xaxis.set_major_locator(FixedLocator(marks.tolist()))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter("{x:g}")


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
        edgecolors=PAPER,
        linewidth=0.8 if canvas().width is None else 0.4,
    )
    axes.set_ylim(rows - 0.5, -0.5)
    axes.set_aspect("equal")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return mesh


def crowded(marks: Sequence[ArrayLike | None]) -> bool:
    """Whether so many cells of some grid are marked that outlines would cover it.

    Then marked cells are drawn whole and the others small.
    """
    given = [np.asarray(one, dtype=bool) for one in marks if one is not None]
    return any(one.sum() > max(_FEW, _CROWDED * one.size) for one in given)


def shrink(axes: Axes, mesh: QuadMesh, grid: Floats, marked: NDArray[np.bool_]) -> None:
    """Draw what is not marked as small squares in their cells' colours."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    mesh.set_array(np.ma.masked_array(grid, ~marked | ~np.isfinite(grid)))
    mesh.set_cmap(mesh.get_cmap().with_extremes(bad=ON_DARK))  # white also on dark pages
    places, side = np.argwhere(~marked), _SMALL
    squares = PatchCollection(
        [Rectangle((c - side / 2, r - side / 2), side, side) for r, c in places],
        cmap=mesh.get_cmap().with_extremes(bad=UNMEASURED),
        norm=mesh.norm,
        linewidth=0,
    )
    squares.set_array(np.ma.masked_invalid(grid[~marked]))
    axes.add_collection(squares)


def one_scale(grids: Sequence[Floats], center: float | None) -> bool:
    """Whether all of several grids can be read on one scale: none would be pale all over."""
    reaches = []
    for grid in grids:
        finite = np.abs(grid[np.isfinite(grid)] - (center or 0.0))
        reaches.append(float(finite.max()) if finite.size else np.nan)
    known = [reach for reach in reaches if np.isfinite(reach)]
    return not known or min(known) >= 0.5 * max(known)


def outline(axes: Axes, marked: NDArray[np.bool_] | None) -> None:
    """A frame around the cells that are marked."""
    from matplotlib.patches import Rectangle

    for row, column in [] if marked is None else np.argwhere(marked):
        # A light line within a dark one: seen on light cells and on dark ones.
        for inset, colour, width in ((0.04, ON_LIGHT, 1.3), (0.11, ON_DARK, 1.1)):
            corner, side = (column - 0.5 + inset, row - 0.5 + inset), 1 - 2 * inset
            axes.add_patch(Rectangle(corner, side, side, fill=False, ec=colour, lw=width))


def letter(axes: Axes, mesh: QuadMesh, grid: Floats, words: ArrayLike, size: float) -> None:
    """A letter or two in every cell, light on dark colours and dark on light ones."""
    for (row, column), word in np.ndenumerate(np.asarray(words)):
        red, green, blue, _ = mesh.get_cmap()(mesh.norm(grid[row, column]))
        light = 0.299 * red + 0.587 * green + 0.114 * blue > 0.55
        ink = ON_LIGHT if light else ON_DARK
        axes.text(column, row, str(word), color=ink, fontsize=size, ha="center", va="center")


def colour_bar(
    figure: Figure,
    axes: list[Axes],
    shown: ScalarMappable,
    label: str,
    *,
    shrink: float = 0.86,
    level: float | None = None,
) -> None:
    """What the colours mean, to the right of all `axes`; a line at `level`."""
    bar = figure.colorbar(shown, ax=axes, shrink=shrink, aspect=22, pad=0.03)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=2.5, labelsize=type_size(8))
    if level is not None:
        bar.ax.axhline(level, -0.5, 1.5, color=ACCENT, linewidth=2.2, clip_on=False)
    bar.set_label(_wrapped(label, 34))  # a small grid is lower than a long label
    if bar.solids is not None:
        bar.solids.set_edgecolor("face")  # or viewers of vector files show hairlines


def _wrapped(text: str, width: int) -> str:
    return "\n".join(fill(line, width) for line in text.split("\n"))
