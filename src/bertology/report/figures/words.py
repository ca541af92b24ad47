"""What each layer would answer: a grid of words."""

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
)
from bertology.report.look import ON_DARK, ON_LIGHT, look, new_figure, type_size

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DARK = 0.48  # of the scale; letters on darker cells are light
_LONG = 12  # characters that fit into a cell


def word_grid(
    words: Sequence[Sequence[str]],
    values: ArrayLike,
    *,
    rows: Sequence[str],
    title: str,
    label: str,
    note: str = "",
) -> Figure:
    """A cell for each of the best `words` of each row, coloured by its value between 0 and 1."""
    from matplotlib.colors import Normalize

    grid = checked(values, "values", "word_grid", dimensions=2)
    shape = (len(rows), len(words[0]) if words else 0)
    if grid.shape != shape or any(len(row) != shape[1] for row in words):
        must = f"have one value for each word, {shape[0]} × {shape[1]}"
        raise ParameterError("values", "word_grid", must, grid.shape)
    most = max(float(np.nanmax(grid)), 1e-3)
    with look():
        figure, axes = new_figure(max(1.6 + 1.0 * shape[1], 4.4), 1.5 + 0.27 * shape[0])
        mesh = cells(axes, grid, colours(None), Normalize(0, most))
        axes.set_aspect("auto")
        for row, line in enumerate(words):
            for column, word in enumerate(line):
                dark = grid[row, column] > _DARK * most
                axes.text(
                    column, row, word if len(word) <= _LONG else f"{word[: _LONG - 1]}…",
                    ha="center", va="center", fontsize=type_size(8),
                    color=ON_DARK if dark else ON_LIGHT,
                )  # fmt: skip
        axes.set_yticks(range(shape[0]), list(rows))
        axes.set_xticks(range(shape[1]), [str(i + 1) for i in range(shape[1])])
        axes.set(xlabel="rank of the answer", ylabel="layer" if shape[0] > 1 else "")
        colour_bar(figure, [axes], mesh, label)
        add_title(figure, title)
        add_note(figure, note)
    return figure
