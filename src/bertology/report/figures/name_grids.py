"""A number for every pair of things that are named, such as languages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
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
    scale,
)
from bertology.report.look import look, new_figure, type_size
from bertology.results.drawing import canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NUMBERED = 18  # rows or columns up to which a number fits into a cell


def name_grid(
    values: ArrayLike,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    title: str,
    label: str,
    xlabel: str = "",
    ylabel: str = "",
    center: float | None = None,
    note: str = "",
    gaps: str = "not measured",
) -> Figure:
    """One cell for each row and column, with its number where it fits; NaN is grey, for `gaps`."""
    grid = checked(values, "values", "name_grid", dimensions=2)
    if grid.shape != (len(rows), len(columns)):
        must = f"have {len(rows)} rows and {len(columns)} columns"
        raise ParameterError("values", "name_grid", must, grid.shape)
    side = min(0.42, 7.0 / max(grid.shape))
    with look():
        figure, axes = new_figure(len(columns) * side + 3.2, len(rows) * side + 2.2)
        mesh = cells(axes, grid, colours(center), scale(grid, center, least=None))
        if max(grid.shape) <= _NUMBERED and canvas().width is None:
            words = [[f"{v:.0f}" if v == v else "" for v in row] for row in grid]
            letter(axes, mesh, np.nan_to_num(grid), words, type_size(17 * side))
        axes.set_yticks(range(len(rows)), list(rows))
        axes.set_xticks(range(len(columns)), list(columns), rotation=60, ha="right")
        axes.tick_params(axis="x", rotation=60)
        axes.set(xlabel=xlabel, ylabel=ylabel)
        colour_bar(figure, [axes], mesh, label)
        add_title(figure, title)
        grey = f"Grey: {gaps}." if np.isnan(grid).any() else ""
        add_note(figure, f"{note} {grey}".strip())
    return figure
