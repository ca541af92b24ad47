"""A sentence between two trees: arcs of one above its words, of the other below."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bertology.arrays import Floats
from bertology.errors import ParameterError
from bertology.report.figures.pieces import add_note, add_title
from bertology.report.look import ACCENT, GREY, INK, POSITIVE, look, new_figure, type_size
from bertology.results.drawing import canvas
from bertology.results.letters import right_to_left

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LETTER, _GAP, _SMALLEST = 0.1, 0.24, 0.34  # inches: a letter, between words, the narrowest word
_RIGHT = "Blue arcs are annotated, too; vermilion broken ones are not."


@dataclass(frozen=True)
class TreeArcs:
    """A tree over the words of a sentence: the head of each, -1 for none."""

    name: str
    heads: Sequence[int]
    directed: bool = True


def tree_arcs(
    words: Sequence[str],
    *,
    title: str,
    above: TreeArcs | None = None,
    below: TreeArcs | None = None,
    note: str = "",
) -> Figure:
    """Arcs from heads to dependents: the annotated tree `above`, the one that was found `below`.

    Where both are given, arcs below that are also above are told from those that are not. A
    sentence in Arabic or Hebrew letters begins on the right.
    """
    trees = [tree for tree in (above, below) if tree is not None]
    for tree in trees:
        if len(tree.heads) != len(words) or not all(-1 <= h < len(words) for h in tree.heads):
            must = f"be {len(words)} words' heads, from -1 to {len(words) - 1}"
            raise ParameterError("heads", "tree_arcs", must, list(tree.heads))
    if not words or not trees:
        raise ParameterError("words", "tree_arcs", "be given, with a tree or two", len(words))
    widths = np.array([max(_SMALLEST, _LETTER * len(word)) + _GAP for word in words])
    places = np.cumsum(widths) - widths / 2
    if right_to_left(words):
        places = widths.sum() - places
    tops = [_tallest(tree.heads) if tree is not None else 0.0 for tree in (above, below)]
    inches = 0.26
    with look():
        width = float(widths.sum())
        figure, axes = new_figure(max(4.5, width + 0.3), inches * (sum(tops) + 2) + 0.9)
        room = figure.get_figwidth() / (width + 0.3) if canvas().width else 1.0
        for place, word in zip(places, words, strict=True):
            size = max(5.0, min(type_size(9), 9 * room))
            axes.text(place, 0, word, ha="center", va="center", fontsize=size, color=INK)
        for shown, side, top in ((above, 1, tops[0]), (below, -1, tops[1])):
            if shown is not None:
                known = above if side < 0 else None
                _draw(axes, places, shown, known, side)
                axes.text(
                    0, side * (top + 1.0), shown.name, ha="left",
                    va="top" if side > 0 else "bottom", fontsize=type_size(8), color=GREY,
                )  # fmt: skip
        axes.set(xlim=(-0.1, width + 0.1), ylim=(-tops[1] - 1.1, tops[0] + 1.1))
        axes.axis("off")
        add_title(figure, title)
        both = _RIGHT if len(trees) == 2 else ""
        add_note(figure, f"{both} {note}".strip())
    return figure


def _draw(axes: Axes, places: Floats, tree: TreeArcs, known: TreeArcs | None, side: int) -> None:
    """All arcs of a tree; those that `known` does not have are told apart."""
    for word, head in enumerate(tree.heads):
        if head >= 0:
            right = known is None or _is_in(known, word, head, tree.directed)
            colour = INK if side > 0 else POSITIVE if right else ACCENT
            _arc(axes, places, (head, word), side, colour, whole=right, arrow=tree.directed)


def _is_in(tree: TreeArcs, word: int, head: int, directed: bool) -> bool:
    """Whether a tree has an arc; turned either way, if its direction does not matter."""
    return tree.heads[word] == head or (not directed and tree.heads[head] == word)


def _height(one: int, other: int) -> float:
    """Longer arcs are higher, but not by as much as they are longer."""
    return 0.75 * math.pow(abs(one - other), 0.75) + 0.35


def _tallest(heads: Sequence[int]) -> float:
    return max((_height(w, h) for w, h in enumerate(heads) if h >= 0), default=0.0) + 0.4


def _arc(
    axes: Axes,
    places: Floats,
    pair: tuple[int, int],
    side: int,
    colour: str,
    *,
    whole: bool,
    arrow: bool,
) -> None:
    """From the first of a pair to the second; ends keep off the middle, where others end."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    head, word = pair
    step = 0.06 * float(np.sign(places[word] - places[head]))
    start, end = places[head] + step, places[word] - step
    base, top = 0.45 * side, side * (0.45 + _height(head, word))
    # A cubic reaches three quarters of the height of its two inner points.
    bend = base + (top - base) / 0.75
    inward = 0.12 * (end - start)
    points = [(start, base), (start + inward, bend), (end - inward, bend), (end, base)]
    curve = Path(points, [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
    line = "solid" if whole else (0, (4, 2))
    axes.add_patch(PathPatch(curve, fill=False, ec=colour, lw=1.1, ls=line))
    if arrow:
        axes.plot(end, base, "v" if side > 0 else "^", color=colour, markersize=3.5, zorder=3)
