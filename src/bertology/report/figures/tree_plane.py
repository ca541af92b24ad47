"""A sentence's words as points in a plane, with the arcs of one or two trees between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from bertology.errors import ParameterError
from bertology.report.figures.pieces import Floats, add_note, add_title, checked
from bertology.report.look import ACCENT, GREY, INK, POSITIVE, look, new_figure, type_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
