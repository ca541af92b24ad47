"""A grid whose rows and columns are things with names, such as pairs of languages."""

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
    outline,
    scale,
)
from bertology.report.look import look, new_figure, type_size
from bertology.results.drawing import canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WRITTEN = 18  # rows or columns up to which a number fits into a cell


def named_grid(
    values: ArrayLike,
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    label: str,
    axes_names: tuple[str, str] = ("", ""),
    marks: ArrayLike | None = None,
    center: float | None = None,
    note: str = "",
) -> Figure:
    """One cell for each pair, its number written in it; marked cells are outlined.

    `axes_names` say what rows and columns are; NaN is grey.
    """
    grid = checked(values, "values", "named_grid", dimensions=2)
    if grid.shape != (len(rows), len(columns)):
        raise ParameterError("values", "named_grid", f"be {len(rows)} × {len(columns)}", grid.shape)
    side = min(0.42, 6.0 / max(grid.shape))
    with look():
        figure, axes = new_figure(
            max(5.4, grid.shape[1] * side + 3.2), max(2.6, grid.shape[0] * side + 2.3)
        )
        mesh = cells(axes, grid, colours(center), scale(grid.ravel(), center))
        outline(axes, None if marks is None else np.asarray(marks, dtype=bool))
        if max(grid.shape) <= _WRITTEN and canvas().width is None:
            words = [[f"{v:.0f}".replace("-0", "0") if v == v else "" for v in row] for row in grid]
            letter(axes, mesh, grid, words, type_size(17 * side))
        axes.set_yticks(range(len(rows)), list(rows))
        axes.set_xticks(range(len(columns)), list(columns), rotation=60, ha="right")
        axes.set(ylabel=axes_names[0], xlabel=axes_names[1])
        colour_bar(figure, [axes], mesh, label)
        add_title(figure, title)
        gaps = "Grey: not measured." if np.isnan(grid).any() else ""
        add_note(figure, " ".join(filter(None, (note, gaps))))
    return figure
