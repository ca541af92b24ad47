"""The kinds of figure. Each function returns a new matplotlib Figure.

Only matplotlib's objects are used, never pyplot: drawing leaves no state behind and works without
a display. Layers and heads are numbered from 0, and every figure that shows them says so.
"""

from __future__ import annotations

from bertology.report.figures.arcs import TreeArcs, tree_arcs
from bertology.report.figures.branches import distance_tree
from bertology.report.figures.curves import (
    Band,
    Draws,
    Line,
    band_curve,
    dose_curve,
    layer_bars,
    layer_profile,
    lines,
    scatter_with_rank,
    type_bars,
)
from bertology.report.figures.decoded import Decodings, decoded_values
from bertology.report.figures.dots import Dots, interval_dots
from bertology.report.figures.grids import (
    TYPE_COLOURS,
    GridPanel,
    head_grid,
    head_grids,
    layer_grids,
    marked_as,
    on_one_scale,
    row_grid,
    type_grid,
)
from bertology.report.figures.kinds import KindPanel, kind_grids, kind_plane
from bertology.report.figures.maps import TitledMap, example_sheet, link_map, map_sheet
from bertology.report.figures.points import PointPanel, point_planes, tree_plane
from bertology.report.figures.surfaces import (
    LossLine,
    LossLines,
    Mark,
    Surface,
    loss_lines,
    loss_surfaces,
)
from bertology.report.figures.trade_offs import Costs, trade_offs

__all__ = [
    "TYPE_COLOURS",
    "Band",
    "Costs",
    "Decodings",
    "Dots",
    "Draws",
    "GridPanel",
    "KindPanel",
    "Line",
    "LossLine",
    "LossLines",
    "Mark",
    "PointPanel",
    "Surface",
    "TitledMap",
    "TreeArcs",
    "band_curve",
    "decoded_values",
    "distance_tree",
    "dose_curve",
    "example_sheet",
    "head_grid",
    "head_grids",
    "interval_dots",
    "kind_grids",
    "kind_plane",
    "layer_bars",
    "layer_grids",
    "layer_profile",
    "lines",
    "link_map",
    "loss_lines",
    "loss_surfaces",
    "map_sheet",
    "marked_as",
    "on_one_scale",
    "point_planes",
    "row_grid",
    "scatter_with_rank",
    "trade_offs",
    "tree_arcs",
    "tree_plane",
    "type_bars",
    "type_grid",
]
