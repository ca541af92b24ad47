"""What things cost against what they give: numbered dots, and the line of those nothing beats.

Many things may cost the very same. So dots are small, and their numbers stand beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertology.arrays import Floats
from bertology.errors import ParameterError
from bertology.report.figures.pieces import add_note, add_title, checked
from bertology.report.look import ACCENT, GREEN, GREY, PAPER, POSITIVE, look, new_panels, type_size
from bertology.results.drawing import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = (POSITIVE, GREY, GREEN, ACCENT)
_FEW = 12  # things whose numbers fit into panels beside each other
_WIDE = 7.2  # inches of a figure of more of them


@dataclass(frozen=True)
class Costs:
    """One panel: what is spent by each thing, on a logarithmic scale."""

    label: str
    values: ArrayLike


def unbeaten(cost: ArrayLike, gain: ArrayLike) -> NDArray[np.bool_]:
    """Those for which no other costs at most as much and gives more, or less and as much."""
    x, y = np.asarray(cost, dtype=np.float64), np.asarray(gain, dtype=np.float64)
    better = (x[None] <= x[:, None]) & (y[None] >= y[:, None])
    better &= (x[None] < x[:, None]) | (y[None] > y[:, None])
    known = np.isfinite(x) & np.isfinite(y)
    return np.asarray(known & ~better.any(axis=1))


def trade_offs(
    panels: Sequence[Costs],
    gain: tuple[ArrayLike, ArrayLike, ArrayLike],
    names: Sequence[str],
    kinds: Sequence[str],
    *,
    ylabel: str,
    marked: int,
    title: str,
    note: str = "",
) -> Figure:
    """Every thing is a numbered dot with its interval, in a colour by its kind.

    A number that has no room stays away. Where things are many, panels stand one below the other,
    and only what is marked or on the line has its interval: others would make one bar.

    `gain` are values with their lower and upper bounds. The line goes through those that no other
    beats, and a dashed one is at the height of the one that is `marked`.
    """
    value, low, high = (checked(side, "gain", "trade_offs", dimensions=1) for side in gain)
    if not panels or not value.size == len(names) == len(kinds) or not 0 <= marked < value.size:
        must = f"have {value.size} names and kinds, and a panel"
        raise ParameterError("names", "trade_offs", must, (len(names), len(kinds), len(panels)))
    order = list(dict.fromkeys(kinds))
    colours = [_COLOURS[order.index(kind) % len(_COLOURS)] for kind in kinds]
    many = len(names) > _FEW
    rows, across = (len(panels), 1) if many else (1, len(panels))
    with look():
        size = max(5.6, 3.4 * across), 4.2
        if many:  # as wide as was asked for, so that panels keep their height
            wide = canvas().width or _WIDE
            size = wide, 1.2 + rows * min(3.2, 0.75 * wide)
        figure, spots = new_panels(*size, rows, across)
        for axes, panel in zip(spots, panels, strict=True):
            cost = checked(panel.values, "values", "trade_offs", dimensions=1)
            shown = np.isfinite(low) & np.isfinite(high)
            if many:
                shown &= unbeaten(cost, value) | (np.arange(value.size) == marked)
            axes.grid()
            _line(axes, cost, value)
            _dots(axes, cost, value, colours)
            ends, ink = (low[shown], high[shown]), np.array(colours)[shown].tolist()
            axes.vlines(cost[shown], *ends, color=ink, linewidth=0.7, alpha=0.35, zorder=1)
            axes.axhline(float(value[marked]), color=ACCENT, linewidth=1.0, linestyle="--")
            axes.set(xlabel=fill(panel.label, 40), ylabel=ylabel)
        _legend(spots[0], dict(zip(kinds, colours, strict=True)))
        add_title(figure, title)
        told = ", ".join(f"{i + 1} {name}" for i, name in enumerate(names))
        add_note(figure, f"{told}. {note}".strip())
        for axes, panel in zip(spots, panels, strict=True):
            _number(figure, axes, np.asarray(panel.values, dtype=np.float64), value, colours)
    return figure


def _dots(axes: Axes, cost: Floats, value: Floats, colours: Sequence[str]) -> None:
    for x, y, colour in zip(cost, value, colours, strict=True):
        axes.plot(x, y, "o", mec=PAPER, mfc=colour, mew=0.4, markersize=4.2)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    axes.margins(x=0.12)


def _number(
    figure: Figure, axes: Axes, cost: Floats, value: Floats, colours: Sequence[str]
) -> None:
    """The number of each dot; those on the line have theirs next to it."""
    known = np.flatnonzero(np.isfinite(cost) & np.isfinite(value))
    if known.size:
        push_labels(
            figure,
            axes,
            np.stack([cost, value], axis=1)[known],
            [str(i + 1) for i in known.tolist()],
            [colours[i] for i in known.tolist()],
            unbeaten(cost, value)[known],
        )


def _line(axes: Axes, cost: Floats, value: Floats) -> None:
    best = np.flatnonzero(unbeaten(cost, value))
    best = best[np.argsort(cost[best])]
    axes.plot(cost[best], value[best], color=GREY, linewidth=0.9, alpha=0.7, zorder=1)


def _legend(axes: Axes, kinds: Mapping[str, str]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], marker="o", linestyle="", color=colour, markersize=4.2, label=name)
        for name, colour in kinds.items()
    ]
    axes.legend(handles=handles, loc="best", fontsize="x-small", frameon=False, handletextpad=0.1)


# Labels beside crowded dots: pushed aside until none covers another, and left out where none fits.
#
# Each label takes the nearest free place around its dot; one that had to go far has a thin line to
# it. Places are found in points of type once the layout is settled, so that they hold in every
# format.

_SIZE, _WIDE_LABELS, _HIGH = 6.5, 0.68, 1.05  # points; the width and height of a digit by its size
_FAR = (5.5, 8.0, 11.0, 15.0, 20.0, 26.0, 33.0, 41.0)  # points from the dot to the label
_LINED = 6.0  # between dot and label; from here on a line leads there
_ANGLES = 16
_DOT = 2.6  # points: half of a dot's width, with some room
_STEPS = 12  # places of a line that are looked at


def push_labels(
    figure: Figure,
    axes: Axes,
    dots: Floats,
    texts: Sequence[str],
    colours: Sequence[str],
    first: NDArray[np.bool_],
) -> None:
    """Write `texts` beside `dots` (N, 2), in data; those that come `first` have the best places.

    Limits of the axes must be set, and all that takes room beside them be there. A legend stays
    where it is, and no label covers it.
    """
    figure.draw_without_rendering()
    scale = 72 / figure.dpi
    at = np.asarray(axes.transData.transform(dots)) * scale
    frame = np.asarray(axes.get_window_extent().extents) * scale
    near = (np.abs(at[:, None] - at[None]).max(axis=-1) < _FAR[2]).sum(axis=1)
    size, boxes = type_size(_SIZE), _legend_box(axes) * scale
    # After those that come first, the most crowded: others find a place in any case.
    for i in np.lexsort([np.arange(len(at)), -near, ~first]).tolist():
        half = np.array([_WIDE_LABELS * len(texts[i]), _HIGH]) * size / 2
        spot = _free_place(at[i], half, at, boxes, frame)
        if spot is not None:
            boxes = np.vstack([boxes, [*(spot - half), *(spot + half)]])
            _write(axes, dots[i], (spot - at[i], half), texts[i], colours[i])


def _legend_box(axes: Axes) -> Floats:
    """Where the legend is (0 or 1, 4); as labels come, it would look for another place."""
    legend = axes.get_legend()
    if legend is None:
        return np.empty((0, 4))
    box = legend.get_window_extent()
    legend.set_loc(tuple(axes.transAxes.inverted().transform(box.min)))
    legend.borderaxespad = 0.0
    return np.asarray(box.extents)[None]


def _write(axes: Axes, dot: Floats, to: tuple[Floats, Floats], text: str, colour: str) -> None:
    """A label of half a size at an offset, both in points; its line where it is far."""
    offset, half = to
    gap = float(np.hypot(*np.maximum(np.abs(offset) - half, 0.0)))
    line = {"arrowstyle": "-", "color": colour, "linewidth": 0.4, "alpha": 0.7,
            "shrinkA": 0.5, "shrinkB": 1.5}  # fmt: skip
    axes.annotate(
        text, (dot[0], dot[1]), (offset[0], offset[1]), textcoords="offset points", ha="center",
        va="center", color=colour, fontsize=type_size(_SIZE), zorder=4,
        arrowprops=line if gap >= _LINED else None,
        bbox={"boxstyle": "square,pad=0", "facecolor": PAPER, "edgecolor": "none", "alpha": 0.7},
    )  # fmt: skip


def _free_place(
    dot: Floats, half: Floats, dots: Floats, boxes: Floats, frame: Floats
) -> Floats | None:
    """The nearest middle for a label of this size that covers no dot, no label and no frame."""
    for spot in _around(dot, half):
        low, high = spot - half, spot + half
        if (low < frame[:2]).any() or (high > frame[2:]).any():
            continue
        if ((dots > low - _DOT) & (dots < high + _DOT)).all(axis=1).any():
            continue
        if ((boxes[:, :2] < high) & (boxes[:, 2:] > low)).all(axis=1).any():
            continue
        line = dot + (spot - dot) * np.linspace(0, 1, _STEPS)[:, None]  # (steps, 2)
        inside = (line[:, None] > boxes[None, :, :2]) & (line[:, None] < boxes[None, :, 2:])
        if not inside.all(axis=-1).any():
            return spot
    return None


def _around(dot: Floats, half: Floats) -> Iterator[Floats]:
    """Places on ellipses around a dot, wider ones later; to the right and left of it first."""
    angles = np.arange(_ANGLES) * 2 * np.pi / _ANGLES
    angles = angles[np.argsort(np.abs(np.sin(angles)), kind="stable")]
    ways = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    for far in _FAR:
        yield from dot + ways * (far + half - half.min())
