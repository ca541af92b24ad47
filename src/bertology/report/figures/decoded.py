"""Values that were decoded against the true ones: a panel for each kind and depth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from bertology.errors import ParameterError
from bertology.report.figures.pieces import add_note, add_title, cells, checked, colour_bar, colours
from bertology.report.look import (
    ACCENT,
    GREY,
    ON_DARK,
    ON_LIGHT,
    POSITIVE,
    look,
    new_figure,
    new_panels,
    type_size,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Decodings:
    """One panel: true and decoded values, and which of them lie beyond what was learnt."""

    row: str
    column: str
    true: ArrayLike
    said: ArrayLike
    beyond: ArrayLike


def decoded_values(panels: Sequence[Decodings], *, title: str, note: str = "") -> Figure:
    """Rows and columns of panels, in the order in which they are named."""
    rows = list(dict.fromkeys(panel.row for panel in panels))
    columns = list(dict.fromkeys(panel.column for panel in panels))
    if not panels or len(panels) != len(rows) * len(columns):
        raise ParameterError(
            "panels", "decoded_values", "fill rows and columns of at least one", len(panels)
        )
    with look():
        size = 1.2 + 1.75 * len(columns), 1.3 + 1.75 * len(rows)
        figure, axes = new_panels(*size, len(rows), len(columns))
        for panel in panels:
            at = rows.index(panel.row) * len(columns) + columns.index(panel.column)
            one = axes[at]
            true = checked(panel.true, "true", "decoded_values", dimensions=1)
            said = checked(panel.said, "said", "decoded_values", dimensions=1)
            far = np.asarray(panel.beyond, bool)
            ends = float(true.min()), float(true.max())
            room = 0.25 * (ends[1] - ends[0])
            one.plot(ends, ends, color=GREY, linewidth=0.9, zorder=1)
            shown = said.clip(ends[0] - room, ends[1] + room)  # a wild one would flatten the rest
            for some, colour in ((~far, POSITIVE), (far, ACCENT)):
                one.scatter(true[some], shown[some], s=5, color=colour, alpha=0.5, linewidths=0)
            one.set_ylim(ends[0] - 1.1 * room, ends[1] + 1.1 * room)
            one.locator_params(nbins=4)
            if at < len(columns):
                one.set_title(panel.column, fontsize="medium")
            if at % len(columns) == 0:
                one.set_ylabel(f"{panel.row}\ndecoded")
            else:
                one.tick_params(labelleft=False)
            if at >= len(columns) * (len(rows) - 1):
                one.set_xlabel("true value")
        add_title(figure, title)
        add_note(figure, note)
    return figure


# What each layer would answer: a grid of words.

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
