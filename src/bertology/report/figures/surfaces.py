"""Losses over the space of weights: surfaces and lines, side by side on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from bertology.arrays import Floats
from bertology.errors import ParameterError
from bertology.report.figures.pieces import add_note, add_title, checked, colour_bar
from bertology.report.look import (
    ACCENT,
    GREY,
    INK,
    ON_DARK,
    POSITIVE,
    look,
    new_panels,
    sequential,
    type_size,
)
from bertology.results.drawing import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = (POSITIVE, ACCENT)
_STYLES = ("-", "--")


@dataclass(frozen=True)
class Mark:
    """A named point of a surface."""

    name: str
    x: float
    y: float
    shape: str = "o"


@dataclass(frozen=True)
class Surface:
    """Losses over a plane: `losses` has a row for each place upwards (`y`)."""

    name: str
    x: ArrayLike
    y: ArrayLike
    losses: ArrayLike
    path: ArrayLike | None = None  # (stops, 2)
    marks: Sequence[Mark] = field(default_factory=tuple)


def loss_surfaces(
    surfaces: Sequence[Surface],
    *,
    title: str,
    labels: tuple[str, str],
    highest: float,
    levels: Sequence[float],
    note: str = "",
) -> Figure:
    """Surfaces side by side, with the same axes, colours and lines of equal loss.

    Losses from `highest` on have one colour. `levels` are the losses that lines are drawn at.
    """
    from matplotlib.colors import Normalize
    from matplotlib.ticker import MaxNLocator

    if not surfaces:
        raise ParameterError("surfaces", "loss_surfaces", "hold at least one", 0)
    shown = [checked(s.losses, "losses", "loss_surfaces", dimensions=2) for s in surfaces]
    for one, losses in zip(surfaces, shown, strict=True):
        shape = np.size(one.y), np.size(one.x)
        if losses.shape != shape:
            raise ParameterError("losses", "loss_surfaces", f"have the shape {shape}", losses.shape)
    lowest = min(float(np.nanmin(losses)) for losses in shown)
    norm = Normalize(min(0.0, lowest), highest)
    columns = len(surfaces) if (canvas().width or 9) > 5 else 1
    rows = -(-len(surfaces) // columns)
    with look():
        figure, spots = new_panels(3.2 * columns + 1.1, 3.3 * rows + 1.1, rows, columns)
        for i, (spot, one, losses) in enumerate(zip(spots, surfaces, shown, strict=True)):
            x, y = np.asarray(one.x, float), np.asarray(one.y, float)
            filled = np.where(np.isfinite(losses), losses, highest)
            mesh = spot.pcolormesh(
                x, y, filled, cmap=sequential(), norm=norm, shading="gouraud", rasterized=True
            )
            _contours(spot, x, y, filled, levels)
            _path(spot, one)
            spot.set_aspect("equal")
            for axis in (spot.xaxis, spot.yaxis):
                axis.set_major_locator(MaxNLocator(5))
            spot.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]), xlabel=labels[0])
            spot.set_ylabel(labels[1] if i % columns == 0 else "")
            spot.set_title(one.name, fontsize=type_size(9.5), pad=5)
            spot.spines[:].set_visible(False)
        told = f"loss (from {highest:.2g} on: the darkest)"
        colour_bar(figure, list(spots), mesh, told, shrink=0.8)
        add_title(figure, title)
        add_note(figure, note)
    return figure


def _contours(
    axes: Axes, x: ArrayLike, y: ArrayLike, losses: ArrayLike, levels: Sequence[float]
) -> None:
    values = np.asarray(losses)
    inside = [level for level in levels if values.min() < level < values.max()]
    if not inside:
        return
    # Light on dark and dark on light would hide the numbers: a light edge below thin dark lines.
    axes.contour(x, y, values, levels=inside, colors=ON_DARK, linewidths=1.8, alpha=0.55)
    drawn = axes.contour(x, y, values, levels=inside, colors=INK, linewidths=0.7)
    axes.clabel(drawn, fmt="%.2g", fontsize=type_size(7), inline=True)


def _path(axes: Axes, one: Surface) -> None:
    if one.path is not None:
        at = np.asarray(one.path, float)
        axes.plot(at[:, 0], at[:, 1], "-", color=ON_DARK, linewidth=3.0, alpha=0.8)
        axes.plot(at[:, 0], at[:, 1], "o-", color=ACCENT, linewidth=1.4, markersize=3.2, mew=0)
    x, y = np.asarray(one.x, float), np.asarray(one.y, float)
    room = float(np.ptp(x)) * 0.03
    for mark in one.marks:
        if not (x.min() <= mark.x <= x.max() and y.min() <= mark.y <= y.max()):
            _beyond(axes, mark, x, y)
            continue
        axes.plot(
            mark.x, mark.y, mark.shape, color=ACCENT, markeredgecolor=ON_DARK, markersize=7,
            zorder=4, clip_on=False,
        )  # fmt: skip
        if mark.name:
            axes.text(
                mark.x + room, mark.y + room, mark.name, fontsize=type_size(7.5), color=INK,
                bbox={"facecolor": ON_DARK, "alpha": 0.75, "edgecolor": "none", "pad": 1.0},
            )  # fmt: skip


def _beyond(axes: Axes, mark: Mark, x: Floats, y: Floats) -> None:
    """An arrow from inside to the edge, towards a point that the surface does not reach."""
    middle = np.array([x.mean(), y.mean()])
    half = np.array([np.ptp(x), np.ptp(y)]) / 2
    way = np.array([mark.x, mark.y]) - middle
    edge = way / np.abs(way / half).max()
    axes.annotate(
        f"{mark.name}: beyond",
        xy=tuple(middle + 0.99 * edge),
        xytext=tuple(middle + 0.72 * edge),
        ha="center",
        va="center",
        fontsize=type_size(7.5),
        color=INK,
        bbox={"facecolor": ON_DARK, "alpha": 0.75, "edgecolor": "none", "pad": 1.0},
        arrowprops={"arrowstyle": "->", "color": ACCENT, "linewidth": 1.4},
    )


@dataclass(frozen=True)
class LossLine:
    """The losses of one start along a line: one row for each seed (or pair of seeds)."""

    name: str
    x: ArrayLike
    losses: ArrayLike  # (runs, places)


@dataclass(frozen=True)
class LossLines:
    """One panel."""

    name: str
    xlabel: str
    lines: Sequence[LossLine]


def loss_lines(
    panels: Sequence[LossLines], *, title: str, highest: float, constant: float, note: str = ""
) -> Figure:
    """Lines through the space of weights, in panels with one scale; thick: means over runs."""
    if not panels:
        raise ParameterError("panels", "loss_lines", "hold at least one", 0)
    columns = len(panels) if (canvas().width or 9) > 5 else 1
    rows = -(-len(panels) // columns)
    with look():
        figure, spots = new_panels(
            2.9 * columns + 0.4, 2.5 * rows + 1.0, rows, columns, share_rows=True
        )
        for i, (spot, panel) in enumerate(zip(spots, panels, strict=True)):
            spot.grid()
            for line, colour, style in zip(panel.lines, _COLOURS, _STYLES, strict=False):
                losses = checked(line.losses, "losses", "loss_lines", dimensions=2)
                x = np.asarray(line.x, float)
                for one in losses:
                    spot.plot(x, one, style, color=colour, linewidth=0.6, alpha=0.45)
                spot.plot(
                    x, losses.mean(axis=0), style, color=colour, linewidth=2.0, label=line.name
                )
            spot.axhline(constant, color=GREY, linewidth=1.0, linestyle=":", zorder=1)
            spot.set(xlabel=panel.xlabel, ylim=(0, highest))
            spot.set_ylabel("loss" if i % columns == 0 else "")
            spot.set_title(panel.name, fontsize=type_size(9.5), pad=5)
        handles, names = spots[0].get_legend_handles_labels()
        figure.legend(
            handles, names, loc="outside upper right", frameon=False, ncols=2,
            fontsize=type_size(8.5),
        )  # fmt: skip
        add_title(figure, title)
        add_note(figure, note)
    return figure
