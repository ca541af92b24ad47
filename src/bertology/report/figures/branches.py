"""Things as the leaves of a tree, joined by how far they lie apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from bertology.errors import ParameterError
from bertology.report.figures.pieces import add_title, checked
from bertology.report.figures.points import POINT_COLOURS
from bertology.report.look import GREY, look, new_figure, type_size
from bertology.results.points import ranked_groups

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def distance_tree(
    distances: ArrayLike, names: Sequence[str], groups: Sequence[str], *, title: str
) -> Figure:
    """Leaves downwards, coloured by group; joined by average linkage, near ones first."""
    from matplotlib.lines import Line2D
    from scipy.cluster.hierarchy import dendrogram, linkage
    from scipy.spatial.distance import squareform

    d = checked(distances, "distances", "distance_tree", dimensions=2)
    if d.shape != (len(names), len(names)) or len(groups) != len(names) or len(names) < 2:
        must = f"be {len(names)} × {len(names)}, with as many groups"
        raise ParameterError("distances", "distance_tree", must, d.shape)
    d = (d + d.T) / 2 * ~np.eye(len(d), dtype=bool)
    tree = dendrogram(linkage(squareform(d / max(d.max(), 1e-12)), "average"), no_plot=True)
    order = [group for group, _ in ranked_groups(groups)]
    colours = {g: POINT_COLOURS[i] if i < len(POINT_COLOURS) else GREY for i, g in enumerate(order)}
    with look():
        figure, axes = new_figure(6.0, 0.27 * len(names) + 1.6 + 0.2 * -(-len(order) // 3))
        for y, x in zip(tree["icoord"], tree["dcoord"], strict=True):
            axes.plot(x, y, color=GREY, linewidth=1.2)
        leaves = [int(leaf) for leaf in tree["leaves"]]
        axes.set_yticks([10 * at + 5 for at in range(len(names))], [names[i] for i in leaves])
        for label, leaf in zip(axes.get_yticklabels(), leaves, strict=True):
            label.set_color(colours[groups[leaf]])
        axes.invert_yaxis()
        axes.set_xlim(left=0.0)
        axes.set_xlabel("distance, as a share of the largest")
        axes.grid(visible=False)
        figure.legend(
            handles=[
                Line2D([], [], color=colours[g], marker="s", ls="none", ms=type_size(6), label=g)
                for g in order
            ],
            loc="outside lower left", frameon=False, ncols=3, fontsize=type_size(8),
            handletextpad=0.3,
        )  # fmt: skip
        add_title(figure, title)
    return figure
