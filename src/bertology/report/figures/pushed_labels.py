"""Labels beside crowded dots: pushed aside until none covers another, and left out where none fits.

Each label takes the nearest free place around its dot; one that had to go far has a thin line to
it. Places are found in points of type once the layout is settled, so that they hold in every
format.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.report.look import PAPER, type_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SIZE, _WIDE, _HIGH = 6.5, 0.68, 1.05  # points; the width and height of a digit by its size
_FAR = (5.5, 8.0, 11.0, 15.0, 20.0, 26.0, 33.0, 41.0)  # points from the dot to the label
_LINED = 6.0  # between dot and label; from here on a line leads there
_ANGLES = 16
_DOT = 2.6  # points: half of a dot's width, with some room
_STEPS = 12  # places of a line that are looked at
Floats = NDArray[np.float64]


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
        half = np.array([_WIDE * len(texts[i]), _HIGH]) * size / 2
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
