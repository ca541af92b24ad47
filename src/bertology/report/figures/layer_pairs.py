"""Layers of one model against layers of another: one cell for each pair."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from bertology.errors import ParameterError
from bertology.report.figures.pieces import (
    add_note,
    add_title,
    cells,
    checked,
    colour_bar,
    colours,
    letter,
)
from bertology.report.look import look, new_figure, new_panels, type_size
from bertology.results.drawing import canvas

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

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
