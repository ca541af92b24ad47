"""Points in planes, by group: a colour and a shape for each, with their numbers in a legend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from bertology.arrays import Floats
from bertology.errors import ParameterError
from bertology.report.figures.pieces import add_note, add_title, checked
from bertology.report.look import (
    ACCENT,
    GREY,
    INK,
    PAPER,
    POSITIVE,
    look,
    new_figure,
    new_panels,
    type_size,
)
from bertology.results.drawing import canvas
from bertology.results.points import NAMED_GROUPS, ranked_groups

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

# Dark enough to stand out on paper, and each pair of colour and shape is there once; the page's
# script (points.js) has the same, in the same order.
POINT_COLOURS = ("#0072b2", "#c25400", "#007a5a", "#b0568a", "#3d3d3d", "#8a6d00", "#5a4fb5")
_SHAPES = ("o", "^", "s", "D", "v", "P", "X", "*")
_OTHER = (GREY, ".")  # of groups that have no look of their own
_NAME = 42  # characters of a group's name


@dataclass(frozen=True)
class PointPanel:
    """One plane: where each point lies, and its group."""

    name: str
    places: ArrayLike  # (points, 2)
    groups: Sequence[str]
    names: Sequence[str] = ()
    """What to write at each point, where they are few."""

    def checked(self) -> Floats:
        """The places, or a ParameterError."""
        at = checked(self.places, "places", "point_planes", dimensions=2)
        if at.shape != (len(self.groups), 2) or not np.isfinite(at).all():
            must = f"be {len(self.groups)} × 2 finite numbers"
            raise ParameterError("places", "point_planes", must, at.shape)
        return at


def point_planes(panels: Sequence[PointPanel], *, title: str, note: str) -> Figure:
    """Planes side by side; one legend where all have the same groups, else one for each."""
    if not panels:
        raise ParameterError("panels", "point_planes", "hold at least one", 0)
    places = [panel.checked() for panel in panels]
    ranked = [ranked_groups(panel.groups) for panel in panels]
    together = all(one == ranked[0] for one in ranked)
    columns = min(len(panels), 3 if (canvas().width or 9) > 5 else 1)
    rows = -(-len(panels) // columns)
    listed = min(max(map(len, ranked)), NAMED_GROUPS + 1)
    lines = -(-listed // _columns(columns)) if together else listed * rows
    with look():
        figure, spots = new_panels(
            max(3.1 * columns, 4.4), 3.0 * rows + 0.22 * lines + 0.7, rows, columns
        )
        for spot in spots[len(panels) :]:
            spot.remove()
        for spot, panel, at, order in zip(spots, panels, places, ranked, strict=False):
            if panel.names:
                spot.margins(0.15)  # room for names; only before the aspect is set
            _draw(spot, at, np.asarray(panel.groups, dtype=object), order)
            if panel.names:
                _name(spot, at, panel.names)
            spot.set_title(panel.name, fontsize=type_size(9.5), pad=5)
            if not together:
                _legend(spot, order)
        if together:
            figure.legend(
                handles=_handles(ranked[0]), loc="outside lower left", frameon=False,
                ncols=_columns(columns), fontsize=type_size(8), handletextpad=0.3,
            )  # fmt: skip
        add_title(figure, title)
        add_note(figure, note)
    return figure


def _columns(panels: int) -> int:
    return 1 if panels == 1 and (canvas().width or 9) < 5 else max(panels, 2)


def _style(rank: int) -> tuple[str, str]:
    if rank >= NAMED_GROUPS:
        return _OTHER
    return POINT_COLOURS[rank % len(POINT_COLOURS)], _SHAPES[rank % len(_SHAPES)]


def _draw(
    axes: Axes, at: Floats, groups: np.ndarray[tuple[int], np.dtype[np.object_]],
    order: Sequence[tuple[str, int]],
) -> None:  # fmt: skip
    size = 26 if len(at) < 150 else 14 if len(at) < 600 else 7
    for rank, (name, _) in enumerate(order):  # the small groups on top of the large ones
        colour, shape = _style(rank)
        x, y = at[groups == name].T
        axes.scatter(
            x, y, s=size, marker=shape, c=colour, linewidths=0.3, edgecolors=PAPER, alpha=0.9
        )
    axes.set_aspect("equal", adjustable="datalim")
    axes.tick_params(length=0, labelbottom=False, labelleft=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(True)


def _handles(order: Sequence[tuple[str, int]]) -> list[Line2D]:
    from matplotlib.lines import Line2D

    def handle(style: tuple[str, str], words: str) -> Line2D:
        colour, shape = style
        return Line2D([], [], color=colour, marker=shape, ls="none", ms=type_size(6), label=words)

    found = [
        handle(_style(rank), f"{shorten(name, _NAME, placeholder=' …') or 'no name'} ({n})")
        for rank, (name, n) in enumerate(order[:NAMED_GROUPS])
    ]
    rest = order[NAMED_GROUPS:]
    if rest:
        found.append(handle(_OTHER, f"{len(rest)} others ({sum(n for _, n in rest)})"))
    return found


def _legend(axes: Axes, order: Sequence[tuple[str, int]]) -> None:
    axes.legend(
        handles=_handles(order), frameon=False, fontsize=type_size(8), handletextpad=0.3,
        borderaxespad=0.1, labelspacing=0.35, loc="upper left", bbox_to_anchor=(0, -0.04),
    )  # fmt: skip


# A sentence's words as points in a plane, with the arcs of one or two trees between them.

_NOTE = (
    "Grey: annotated arcs. Blue broken: arcs found that are annotated, too; vermilion dotted: arcs "
    "found that are not."
)


def tree_plane(
    words: Sequence[str],
    places: ArrayLike,
    *,
    known: Sequence[int],
    found: Sequence[int],
    title: str,
    note: str = "",
) -> Figure:
    """Words at `places` (n, 2); the trees are the head of each word, -1 for none."""
    at = checked(places, "places", "tree_plane", dimensions=2)
    if at.shape != (len(words), 2) or not len(words) == len(known) == len(found):
        must = f"be {len(words)} × 2, with as many heads"
        raise ParameterError("places", "tree_plane", must, at.shape)
    pairs = {frozenset((w, h)) for w, h in enumerate(known) if h >= 0}
    with look():
        figure, axes = new_figure(5.6, 4.4)
        for word, head in enumerate(known):
            if head >= 0:
                _line(axes, at, (word, head), GREY, "solid", 3.2, 0.35)
        for word, head in enumerate(found):
            if head >= 0:
                right = frozenset((word, head)) in pairs
                colour, style = (POSITIVE, "dashed") if right else (ACCENT, "dotted")
                _line(axes, at, (word, head), colour, style, 1.2, 1.0)
        axes.plot(at[:, 0], at[:, 1], "o", color=INK, markersize=3.5, zorder=3)
        _name(axes, at, words)
        axes.margins(0.14)
        axes.set_aspect("equal", adjustable="datalim")
        axes.tick_params(length=0, labelbottom=False, labelleft=False)
        axes.grid(visible=True)
        add_title(figure, title)
        add_note(figure, f"{_NOTE} {note}".strip())
    return figure


def _line(
    axes: Axes, at: Floats, pair: tuple[int, int], colour: str, style: str, wide: float, ink: float
) -> None:
    x, y = at[list(pair)].T
    axes.plot(x, y, linestyle=style, color=colour, linewidth=wide, alpha=ink, zorder=2)


def _name(axes: Axes, at: Floats, words: Sequence[str]) -> None:
    """Each name stands on the side of its point that is away from the middle."""
    middle = at.mean(axis=0)
    for (x, y), word in zip(at, words, strict=True):
        up, right = y >= middle[1], x >= middle[0]
        axes.annotate(
            word, (x, y), xytext=(4 if right else -4, 5 if up else -5), textcoords="offset points",
            ha="left" if right else "right", va="bottom" if up else "top",
            fontsize=type_size(8.5), color=INK, zorder=4,
        )  # fmt: skip
