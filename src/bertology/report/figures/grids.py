"""Grids of cells: one for each head, or for each class and layer, or kinds in colours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from bertology.errors import ParameterError
from bertology.report.figures.pieces import (
    CONVENTION,
    add_note,
    add_title,
    cells,
    checked,
    colour_bar,
    colours,
    outline,
    scale,
    ticks,
)
from bertology.report.look import INK, look, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

__all__ = [
    "TYPE_COLOURS",
    "GridPanel",
    "head_grid",
    "head_grids",
    "row_grid",
    "type_grid",
    "type_legend",
]

# Of Okabe and Ito, ordered so that neighbours in a bar differ in lightness as well.
TYPE_COLOURS = ("#0072b2", "#56b4e9", "#009e73", "#e69f00", "#d9d9d9")


@dataclass(frozen=True)
class GridPanel:
    """One grid of `head_grids`: its name, layers × heads, and which cells to outline."""

    name: str
    values: ArrayLike
    marks: ArrayLike | None = None


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
        marks: Layers × heads; cells that are true are outlined.
        center: For differences: the value, usually 0, around which colours diverge.
    """
    some = "Outlined: significant after correction."
    none = "No head is significant after correction."
    told = "" if marks is None else some if np.any(marks) else none
    panel = GridPanel("", values, marks)
    return head_grids([panel], title=title, label=label, center=center, note=told)


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
    grids = [checked(panel.values, "values", "head_grid", dimensions=2) for panel in panels]
    norm = scale(np.concatenate([grid.ravel() for grid in grids]), center)
    columns, alone = min(3, len(panels)), len(panels) == 1
    rows = -(-len(panels) // columns)
    with look():
        size = _size(*grids[0].shape) if alone else (2.7 * columns + 1.4, 2.75 * rows + 0.9)
        figure, axes = new_figure(*size)
        axes.remove()
        spots = list(figure.subplots(rows, columns, squeeze=False).ravel())
        for spot in spots[len(panels) :]:
            spot.remove()
        spots = spots[: len(panels)]
        for i, (spot, panel, grid) in enumerate(zip(spots, panels, grids, strict=True)):
            marked = None if panel.marks is None else np.asarray(panel.marks, dtype=bool)
            if marked is not None and marked.shape != grid.shape:
                must = f"have the shape {grid.shape}"
                raise ParameterError("marks", "head_grid", must, marked.shape)
            mesh = cells(spot, grid, colours(center), norm)
            outline(spot, marked)
            spot.set_title(panel.name, fontsize=9.5, pad=5)
            spot.set(xlabel="head", ylabel="layer" if i % columns == 0 else "")
            for axis, count in ((spot.xaxis, grid.shape[1]), (spot.yaxis, grid.shape[0])):
                ticks(axis, count, 16 if alone else 6)
        colour_bar(figure, spots, mesh, label, shrink=0.86 if rows == 1 else 0.5)
        add_title(figure, title, 62 if alone else 46 * columns)
        add_note(figure, f"{CONVENTION} {note}".strip())
    return figure


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
        add_title(figure, title, 84)
        add_note(figure, f"{CONVENTION} Grey: not measured.")
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
            ink = "white" if kinds[layer, head] == 0 else INK
            put(head, layer, f"{value:.0f}", color=ink, fontsize=16 * _cell(*kinds.shape))
        axes.set(xlabel="head", ylabel="layer")
        for axis, count in ((axes.xaxis, kinds.shape[1]), (axes.yaxis, kinds.shape[0])):
            ticks(axis, count, count)
        type_legend(axes, types)
        add_title(figure, title, 105)
        add_note(figure, note)
    return figure


def type_legend(axes: Axes, types: Sequence[str]) -> None:
    """The colours of the types, in one line above the axes."""
    from matplotlib.patches import Patch

    handles: list[Patch] = [
        Patch(color=colour, label=name) for colour, name in zip(TYPE_COLOURS, types, strict=False)
    ]
    axes.legend(
        handles=handles, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=5, frameon=False,
        fontsize=7.5, columnspacing=1.2, handlelength=1.0, handletextpad=0.4, borderaxespad=0.1,
    )  # fmt: skip


def _cell(layers: int, heads: int) -> float:
    """The side of a cell, in inches."""
    return min(0.42, 6.0 / max(heads, layers, 1))


def _size(layers: int, heads: int) -> tuple[float, float]:
    """Of a figure with one grid, in inches."""
    cell = _cell(layers, heads)
    return max(5.4, heads * cell + 1.9), max(3.5, layers * cell + 1.6)
