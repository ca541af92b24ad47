"""Heads by kind: as grids of coloured cells, and as points in a plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertology.errors import ParameterError
from bertology.report.figures.pieces import (
    CONVENTION,
    add_note,
    add_title,
    cells,
    checked,
    colour_bar,
    shrink,
    ticks,
)
from bertology.report.look import GREY, ON_LIGHT, look, new_panels, sequential, type_size
from bertology.results.drawing import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import ListedColormap, Normalize
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class KindPanel:
    """One way of sorting heads: the number of each one's kind, and what kinds there are."""

    name: str
    kinds: ArrayLike  # layers × heads, indices into `names`
    names: Sequence[str]
    colours: Sequence[str]  # one for each name
    sure: ArrayLike | None = None  # layers × heads

    def checked(self) -> NDArray[np.int64]:
        """The kinds as whole numbers, or a ParameterError."""
        found = np.asarray(self.kinds, dtype=np.int64)
        if found.ndim != 2 or not found.size:
            raise ParameterError("kinds", "a panel of kinds", "be layers × heads", found.shape)
        if found.min() < 0 or found.max() >= min(len(self.names), len(self.colours)):
            must = f"be numbers below {min(len(self.names), len(self.colours))}"
            raise ParameterError("kinds", "a panel of kinds", must, int(found.max()))
        return found


def kind_grids(panels: Sequence[KindPanel], *, title: str, note: str) -> Figure:
    """Grids side by side, each with the kinds that occur in it below, and how many heads."""
    if not panels:
        raise ParameterError("panels", "kind_grids", "hold at least one", 0)
    grids = [panel.checked() for panel in panels]
    columns = min(len(panels), 3 if (canvas().width or 9) > 5 else 1)
    rows = -(-len(panels) // columns)
    # What stands below a grid is as high as the longest list of kinds.
    listed = max(len(np.unique(grid)) for grid in grids)
    with look():
        figure, spots = new_panels(3.1 * columns, (3.3 + 0.24 * listed) * rows + 0.6, rows, columns)
        for spot in spots[len(panels) :]:
            spot.remove()
        for i, (spot, panel, grid) in enumerate(zip(spots, panels, grids, strict=False)):
            cmap, norm = _palette(panel.colours)
            mesh = cells(spot, grid, cmap, norm)
            if panel.sure is not None:
                shrink(spot, mesh, grid.astype(np.float64), np.asarray(panel.sure, dtype=bool))
            spot.set_title(panel.name, fontsize=type_size(9.5), pad=5)
            spot.set(xlabel="head", ylabel="layer" if i % columns == 0 else "")
            for axis, count in ((spot.xaxis, grid.shape[1]), (spot.yaxis, grid.shape[0])):
                ticks(axis, count, 6)
            _legend(spot, panel, grid, below=True)
        add_title(figure, title)
        add_note(figure, f"{CONVENTION} {note}".rstrip())
    return figure


def kind_plane(
    places: ArrayLike, panel: KindPanel, *, title: str, note: str, label: str = "layer"
) -> Figure:
    """Heads as points in a plane (heads, 2), coloured by layer, then by kind."""
    at = checked(places, "places", "kind_plane", dimensions=2)
    grid = panel.checked()
    if at.shape != (grid.size, 2):
        raise ParameterError("places", "kind_plane", f"be {grid.size} × 2", at.shape)
    layers = np.indices(grid.shape)[0].ravel()
    narrow = (canvas().width or 9) < 5
    with look():
        size = (4.4, 7.6, 2, 1) if narrow else (9.2, 4.6, 1, 2)
        figure, (one, other) = new_panels(*size)
        drawn = one.scatter(
            at[:, 0], at[:, 1], s=34, linewidths=0.5, edgecolors=GREY, c=layers, cmap=sequential()
        )
        colour_bar(figure, [one], drawn, label)
        one.set_title("by layer", fontsize=type_size(9.5), pad=5)
        kinds, sure = grid.ravel(), np.ones(grid.size, dtype=bool)
        sure = sure if panel.sure is None else np.asarray(panel.sure, dtype=bool).ravel()
        for kind in np.unique(kinds):
            ink = panel.colours[kind]
            for held, inside, rim, width in ((sure, ink, GREY, 0.5), (~sure, "none", ink, 1.2)):
                x, y = at[(kinds == kind) & held].T
                other.scatter(x, y, s=34, linewidths=width, edgecolors=rim, facecolors=inside)
        other.set_title(panel.name, fontsize=type_size(9.5), pad=5)
        _legend(other, panel, grid, below=False)
        for axes in (one, other):
            axes.set_aspect("equal", adjustable="datalim")
            axes.tick_params(length=0, labelbottom=False, labelleft=False)
            axes.grid(visible=True)
        add_title(figure, title)
        add_note(figure, note)
    return figure


def _palette(colours: Sequence[str]) -> tuple[ListedColormap, Normalize]:
    from matplotlib.colors import ListedColormap, Normalize

    return ListedColormap(list(colours)), Normalize(-0.5, len(colours) - 0.5)


def _legend(axes: Axes, panel: KindPanel, grid: NDArray[np.int64], *, below: bool) -> None:
    """The kinds that occur, with their numbers of heads."""
    from matplotlib.patches import Patch

    kinds, counts = np.unique(grid, return_counts=True)
    handles = [
        Patch(
            facecolor=panel.colours[k], edgecolor=ON_LIGHT, lw=0.4, label=f"{panel.names[k]}: {n}"
        )
        for k, n in zip(kinds, counts, strict=True)
    ]
    axes.legend(
        handles=handles, frameon=False, fontsize=type_size(8), handlelength=1.0, borderaxespad=0.1,
        labelspacing=0.35, loc="upper left", bbox_to_anchor=(0, -0.17) if below else (1.0, 1.0),
    )  # fmt: skip
