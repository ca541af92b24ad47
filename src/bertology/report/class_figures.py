"""Figures of attention by token class: grids side by side, profiles over layers, class tables.

Layers and heads are numbered from 0, and the figures say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertology.errors import ParameterError
from bertology.report.look import (
    ACCENT,
    GREY,
    INK,
    NEGATIVE,
    POSITIVE,
    diverging,
    look,
    new_figure,
    sequential,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Band", "GridPanel", "class_table", "head_grids", "layer_profile"]

_COLOURS = (ACCENT, POSITIVE, NEGATIVE, GREY)
_STYLES = ("-", "-", "--", ":")
_CONVENTION = "Layers and heads are numbered from 0."


@dataclass(frozen=True)
class GridPanel:
    """One grid of `head_grids`: its name, layers × heads, and which cells to outline."""

    name: str
    values: ArrayLike
    marks: NDArray[Any] | None = None


def head_grids(
    panels: Sequence[GridPanel],
    *,
    title: str,
    label: str,
    center: float | None = None,
    note: str = "",
) -> Figure:
    """Grids of heads beside each other on one scale, layers downwards, heads to the right.

    `note` says what it means that a cell is outlined.
    """
    if not panels:
        raise ParameterError("panels", "head_grids", "hold at least one", 0)
    grids = [np.asarray(p.values, dtype=np.float64) for p in panels]
    everything = np.concatenate([g[np.isfinite(g)] for g in grids])
    low, high = (everything.min(), everything.max()) if everything.size else (0.0, 1.0)
    if center is not None:
        reach = max(abs(low - center), abs(high - center)) or 1e-3
        low, high = center - reach, center + reach
    else:
        low = min(0.0, float(low))
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    with look():
        figure, axes = new_figure(2.7 * columns + 1.4, 2.75 * rows + 0.9)
        axes.remove()
        spots = figure.subplots(rows, columns, squeeze=False).ravel()
        for spot in spots[len(panels) :]:
            spot.remove()
        for i, (spot, panel, grid) in enumerate(zip(spots, panels, grids, strict=False)):
            mesh = _mesh(spot, grid, float(low), float(high), center)
            spot.set_title(panel.name, fontsize=9.5, pad=5)
            spot.set(xlabel="head", ylabel="layer" if i % columns == 0 else "", aspect="equal")
            _outline(spot, panel.marks)
        used = list(spots[: len(panels)])
        bar = figure.colorbar(mesh, ax=used, shrink=0.8 if rows == 1 else 0.5, aspect=24, pad=0.02)
        bar.outline.set_visible(False)
        bar.set_label(fill(label, 34))
        figure.suptitle(fill(title, 46 * columns), x=0.01, ha="left")
        _note(figure, f"{_CONVENTION} {note}".strip(), 52 * columns)
    return figure


@dataclass(frozen=True)
class Band:
    """One line of `layer_profile` with its interval, an entry for each layer."""

    name: str
    values: ArrayLike
    low: ArrayLike
    high: ArrayLike


def layer_profile(bands: Sequence[Band], *, title: str, label: str) -> Figure:
    """Up to four quantities over the layers, each a line with its interval."""
    if not 1 <= len(bands) <= len(_COLOURS):
        must = f"hold one to {len(_COLOURS)} lines"
        raise ParameterError("bands", "layer_profile", must, len(bands))
    with look():
        figure, axes = new_figure(6.2, 3.4)
        axes.grid()
        for band, colour, style in zip(bands, _COLOURS, _STYLES, strict=False):
            values, low, high = (np.asarray(v, float) for v in (band.values, band.low, band.high))
            place = np.arange(values.size)
            axes.fill_between(place, low, high, color=colour, alpha=0.18, linewidth=0)
            axes.plot(
                place, values, style, color=colour, linewidth=1.6, marker="o", markersize=3.5,
                label=band.name,
            )  # fmt: skip
        axes.set(xlabel="layer", ylabel=label)
        axes.set_ylim(bottom=0)
        # Ends of lines may lie on each other, so names do not stand there.
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5))
        axes.set_xticks(place[:: max(1, -(-place.size // 16))])
        figure.suptitle(title, x=0.01, ha="left")
        _note(figure, "Layers are numbered from 0. Bands: intervals over examples.", 90)
    return figure


def class_table(
    values: ArrayLike, names: Sequence[str], *, title: str, label: str, xlabel: str
) -> Figure:
    """One cell for each class and layer (or head): classes downwards."""
    grid = np.asarray(values, dtype=np.float64)
    if grid.ndim != 2 or grid.shape[0] != len(names):
        raise ParameterError("values", "class_table", f"have {len(names)} rows", grid.shape)
    with look():
        figure, axes = new_figure(max(5.4, 0.42 * grid.shape[1] + 2.6), 0.36 * len(names) + 1.7)
        shown = grid[np.isfinite(grid)]
        mesh = _mesh(axes, grid, 0.0, float(shown.max()) if shown.size else 1.0, None)
        axes.set_yticks(range(len(names)), names)
        axes.set(xlabel=xlabel, aspect="equal")
        bar = figure.colorbar(mesh, ax=axes, shrink=0.9, aspect=18, pad=0.03)
        bar.outline.set_visible(False)
        bar.set_label(fill(label, 26))
        figure.suptitle(fill(title, 84), x=0.01, ha="left")
        _note(figure, f"{_CONVENTION} Grey: not in the corpus.", 90)
    return figure


def _mesh(axes: Axes, grid: NDArray[Any], low: float, high: float, center: float | None) -> Any:
    rows, columns = grid.shape
    mesh = axes.pcolormesh(
        np.arange(columns + 1) - 0.5,
        np.arange(rows + 1) - 0.5,
        np.ma.masked_invalid(grid),
        cmap=sequential() if center is None else diverging(),
        vmin=low,
        vmax=high if high > low else low + 1e-3,
        edgecolors="white",
        linewidth=0.6,
    )
    axes.set_ylim(rows - 0.5, -0.5)
    for axis, count in ((axes.xaxis, columns), (axes.yaxis, rows)):
        axis.set_ticks(range(0, count, max(1, -(-count // 6))))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return mesh


def _outline(axes: Axes, marks: NDArray[Any] | None) -> None:
    from matplotlib.patches import Rectangle

    for row, column in [] if marks is None else np.argwhere(np.asarray(marks, dtype=bool)):
        box = Rectangle((column - 0.46, row - 0.46), 0.92, 0.92, fill=False, ec=INK, lw=1.0)
        axes.add_patch(box)


def _note(figure: Figure, text: str, width: int) -> None:
    figure.supxlabel(fill(text, width), fontsize=7.5, color=GREY, x=0.01, ha="left")
