"""One attention map with its tokens, and the pairs that an annotation links."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from bertology.errors import ParameterError
from bertology.report.look import ACCENT, GREY, look, new_figure, sequential

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["link_map"]


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
        axes.tick_params(length=0, labelsize=7.5)
        axes.spines[:].set_visible(False)
        for query, key in pairs:
            frame = Rectangle((key - 0.5, query - 0.5), 1, 1, fill=False, ec=ACCENT, lw=1.6)
            axes.add_patch(frame)
        bar = figure.colorbar(shown, ax=axes, shrink=0.8, aspect=22, pad=0.03)
        bar.outline.set_visible(False)
        bar.set_label("attention weight")
        figure.suptitle(title, x=0.01, ha="left")
        text = fill(f"Framed: linked pairs. {note}".strip(), 70)
        figure.supxlabel(text, fontsize=7.5, color=GREY, x=0.01, ha="left")
    return figure
