"""Grids of cells: one for each head, or for each class and layer, or kinds in colours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertology.arrays import Floats
from bertology.errors import ParameterError
from bertology.report.figures.pieces import (
    CONVENTION,
    add_note,
    add_title,
    cells,
    checked,
    colour_bar,
    colours,
    crowded,
    letter,
    one_scale,
    outline,
    scale,
    shrink,
    ticks,
)
from bertology.report.look import ON_DARK, ON_LIGHT, look, new_figure, new_panels, type_size
from bertology.results.drawing import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

# Of Okabe and Ito, ordered so that neighbours in a bar differ in lightness as well.
TYPE_COLOURS = ("#0072b2", "#56b4e9", "#009e73", "#e69f00", "#d9d9d9")


@dataclass(frozen=True)
class GridPanel:
    """One grid of `head_grids`: its name, layers × heads, and which cells to outline.

    `letters`: a word of a letter or two to write in each cell.
    """

    name: str
    values: ArrayLike
    marks: ArrayLike | None = None
    letters: ArrayLike | None = None


def head_grid(
    values: ArrayLike,
    *,
    title: str,
    label: str,
    marks: ArrayLike | None = None,
    center: float | None = None,
) -> Figure:
    """One cell for each head: layers downwards, heads to the right.

    Args:
        values: Layers × heads; NaN where a head was not measured.
        title: What is shown.
        label: What the colours mean, with the unit.
        marks: Layers × heads; cells that are true are outlined; if they are many, others shrink.
        center: For differences: the value, usually 0, around which colours diverge.
    """
    some = f"{marked_as([marks])} are significant after correction."
    none = "No head is significant after correction."
    told = "" if marks is None else some if np.any(marks) else none
    panel = GridPanel("", values, marks)
    return head_grids([panel], title=title, label=label, center=center, note=told)


def marked_as(marks: Sequence[ArrayLike | None]) -> str:
    """How marked heads are drawn, as words to begin a note with."""
    return "Heads with large cells" if crowded(marks) else "Outlined heads"


def on_one_scale(panels: Sequence[ArrayLike], center: float | None) -> bool:
    """Whether grids beside each other share a scale; else each has its own, and says so."""
    return one_scale([np.asarray(panel, dtype=np.float64) for panel in panels], center)


def head_grids(
    panels: Sequence[GridPanel],
    *,
    title: str,
    label: str,
    center: float | None = None,
    note: str = "",
    level: tuple[str, float] | None = None,
    shared: bool | None = None,
) -> Figure:
    """Grids of heads beside each other, layers downwards, heads to the right.

    They have one scale, but for grids that would be pale all over on it: then each has its own.
    `shared` decides it otherwise. `note` says what is true of marked cells, `level` a line in
    the scale, with its name.
    """
    if not panels:
        raise ParameterError("panels", "head_grids", "hold at least one", 0)
    grids = [checked(panel.values, "values", "head_grid", dimensions=2) for panel in panels]
    marks = [_checked_marks(panel, grid) for panel, grid in zip(panels, grids, strict=True)]
    together = one_scale(grids, center) if shared is None else shared
    reached = [] if level is None else [level[1]]  # a line outside of the scale is not seen
    whole = scale(np.concatenate([*(grid.ravel() for grid in grids), reached]), center)
    norms = [whole if together else scale(grid.ravel(), center) for grid in grids]
    alone, width = len(panels) == 1, canvas().width
    most = 3 if width is None else max(1, int(width // (1.5 if together else 1.6)))
    columns = min(3, most, len(panels))
    rows, small = -(-len(panels) // columns), crowded(marks)
    with look():
        figure, spots = _spots(grids, rows, columns, together=together)
        for i, (spot, panel, grid) in enumerate(zip(spots, panels, grids, strict=True)):
            mesh = cells(spot, grid, colours(center), norms[i])
            marked = marks[i]
            if small and marked is not None:
                shrink(spot, mesh, grid, marked)
            else:
                outline(spot, marked)
            if panel.letters is not None:
                letter(spot, mesh, grid, panel.letters, type_size(18 * _cell(*grid.shape)))
            if panel.name:
                name = fill(panel.name, 30 if width is None else 20)
                spot.set_title(name, fontsize=type_size(9.5), pad=5)
            below = i + columns >= len(panels)
            spot.set(xlabel="head" if below else "", ylabel="layer" if i % columns == 0 else "")
            for axis, count in ((spot.xaxis, grid.shape[1]), (spot.yaxis, grid.shape[0])):
                ticks(axis, count, 16 if alone and (width is None or width > 5) else 6)
            if not together:
                colour_bar(figure, [spot], mesh, "", shrink=0.9)
        if together:
            part = 0.86 if rows == 1 else 0.5
            colour_bar(figure, spots, mesh, label, shrink=part, level=level and level[1])
        add_title(figure, title)
        own = "" if together else f"Each grid has its own scale: {label}."
        line = "" if level is None else f"Line in the scale: {level[0]}."
        add_note(figure, " ".join(filter(None, (CONVENTION, own, line, note))))
    return figure


def _checked_marks(panel: GridPanel, grid: Floats) -> NDArray[np.bool_] | None:
    if panel.marks is None:
        return None
    marked = np.asarray(panel.marks, dtype=bool)
    if marked.shape != grid.shape:
        raise ParameterError("marks", "head_grid", f"have the shape {grid.shape}", marked.shape)
    return marked


def _spots(
    grids: Sequence[Floats], rows: int, columns: int, *, together: bool
) -> tuple[Figure, list[Axes]]:
    """Axes for each grid; those that were given to `plot` where it is one."""
    if len(grids) == 1:
        figure, axes = new_figure(*_size(*grids[0].shape))
        return figure, [axes]
    each = 2.7 if together else 3.3
    figure, spots = new_panels(each * columns + 1.4 * together, 2.75 * rows + 0.9, rows, columns)
    for spot in spots[len(grids) :]:
        spot.remove()
    return figure, spots[: len(grids)]


def row_grid(
    values: ArrayLike, names: Sequence[str], *, title: str, label: str, xlabel: str
) -> Figure:
    """One row for each name, one cell for each layer (or head)."""
    grid = np.asarray(values, dtype=np.float64)
    if grid.ndim != 2 or grid.shape[0] != len(names):
        raise ParameterError("values", "row_grid", f"have {len(names)} rows", grid.shape)
    with look():
        figure, axes = new_figure(max(5.4, 0.42 * grid.shape[1] + 2.6), 0.36 * len(names) + 1.7)
        mesh = cells(axes, grid, colours(None), scale(grid, None, least=0.0))
        axes.set_yticks(range(len(names)), names)
        axes.set_xlabel(xlabel)
        ticks(axes.xaxis, grid.shape[1])
        colour_bar(figure, [axes], mesh, label)
        add_title(figure, title)
        gaps = " Grey: not measured." if np.isnan(grid).any() else ""
        add_note(figure, f"{CONVENTION}{gaps}")
    return figure


def type_grid(
    majority: ArrayLike, shares: ArrayLike, *, types: Sequence[str], title: str, note: str
) -> Figure:
    """The most frequent type of each head (layers × heads), with its share in per cent."""
    from matplotlib.colors import ListedColormap, Normalize

    kinds, share = np.asarray(majority, dtype=int), np.asarray(shares, dtype=float)
    if kinds.ndim != 2 or share.shape != kinds.shape:
        raise ParameterError("shares", "type_grid", f"have the shape {kinds.shape}", share.shape)
    width, height = _size(*kinds.shape)
    with look():
        figure, axes = new_figure(max(6.4, width), height + 0.3)
        norm = Normalize(-0.5, len(TYPE_COLOURS) - 0.5)
        cells(axes, kinds, ListedColormap(TYPE_COLOURS), norm)
        put = partial(axes.text, ha="center", va="center")
        for (layer, head), value in np.ndenumerate(100 * share):
            ink = ON_DARK if kinds[layer, head] == 0 else ON_LIGHT
            put(
                head, layer, f"{value:.0f}", color=ink, fontsize=type_size(16 * _cell(*kinds.shape))
            )
        axes.set(xlabel="head", ylabel="layer")
        for axis, count in ((axes.xaxis, kinds.shape[1]), (axes.yaxis, kinds.shape[0])):
            ticks(axis, count, count)
        type_legend(axes, types)
        add_title(figure, title)
        add_note(figure, note)
    return figure


def type_legend(axes: Axes, types: Sequence[str]) -> None:
    """The colours of the types, above the axes."""
    from matplotlib.patches import Patch

    handles: list[Patch] = [
        Patch(color=colour, label=name) for colour, name in zip(TYPE_COLOURS, types, strict=False)
    ]
    narrow = (canvas().width or 6.4) < 5
    axes.legend(
        handles=handles, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3 if narrow else 5,
        frameon=False, fontsize=type_size(7.5), columnspacing=1.2, handlelength=1.0,
        handletextpad=0.4, borderaxespad=0.1,
    )  # fmt: skip


def _cell(layers: int, heads: int) -> float:
    """The side of a cell, in inches."""
    return min(0.42, 6.0 / max(heads, layers, 1))


def _size(layers: int, heads: int) -> tuple[float, float]:
    """Of a figure with one grid, in inches."""
    cell = _cell(layers, heads)
    return max(5.4, heads * cell + 1.9), max(3.5, layers * cell + 1.6)


# Layers of one model against layers of another: one cell for each pair.

_NUMBERED = 14  # rows or columns up to which a number fits into a cell
_NOTE = "Layers are numbered from 0; “in” is what enters the first one."


def layer_grids(
    panels: Sequence[tuple[str, ArrayLike]],
    *,
    names: tuple[Sequence[str], Sequence[str]],
    models: tuple[str, str],
    title: str,
    label: str,
) -> Figure:
    """Grids (name, rows × columns) beside each other, on one scale from 0 (or below) to 1.

    `names` are those of rows and columns, `models` what they are layers of. A grid that stands
    alone has hundredths written into its cells, where they fit.
    """
    from matplotlib.colors import Normalize

    if not panels:
        raise ParameterError("panels", "layer_grids", "hold at least one", 0)
    grids = [checked(values, "values", "layer_grids", dimensions=2) for _, values in panels]
    shape = len(names[0]), len(names[1])
    for grid in grids:
        if grid.shape != shape:
            raise ParameterError("values", "layer_grids", f"have the shape {shape}", grid.shape)
    lowest = min(float(grid[grid == grid].min(initial=0.0)) for grid in grids)
    norm, alone = Normalize(lowest, 1.0), len(grids) == 1
    side = min(0.42, 6.0 / max(shape))
    with look():
        if alone:
            figure, axes = new_figure(
                max(5.0, shape[1] * side + 2.4), max(3.6, shape[0] * side + 1.9)
            )
            spots = [axes]
        else:
            figure, spots = new_panels(2.9 * len(grids) + 1.2, 3.9, 1, len(grids))
        for i, (spot, (name, _), grid) in enumerate(zip(spots, panels, grids, strict=True)):
            mesh = cells(spot, grid, colours(None), norm)
            if alone and max(shape) <= _NUMBERED and canvas().width is None:
                words = [[f"{100 * v:.0f}" if v == v else "" for v in row] for row in grid]
                letter(spot, mesh, grid, words, type_size(18 * side))
            if name:
                spot.set_title(fill(name, 26), fontsize=type_size(9.5), pad=5)
            spot.set(
                xlabel=f"layer of {models[1]}", ylabel=f"layer of {models[0]}" if not i else ""
            )
            for axis, known in ((spot.yaxis, names[0]), (spot.xaxis, names[1])):
                _named(axis, known, 16 if alone else 7)
        colour_bar(figure, list(spots), mesh, label, shrink=0.86 if alone else 0.7)
        add_title(figure, title)
        hundredths = " Numbers: hundredths." if alone and max(shape) <= _NUMBERED else ""
        add_note(figure, f"{_NOTE}{hundredths}")
    return figure


def _named(axis: Axis, names: Sequence[str], most: int) -> None:
    """Names of rows or columns, or of every few when they would not fit; the first one is short."""
    step = max(1, -(-len(names) // most))
    at = [0, *range(1, len(names), step)]
    axis.set_ticks(at, [("in" if names[i] == "input" else names[i]) for i in at])
