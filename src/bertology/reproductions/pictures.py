"""Figures over all the data of a study at once, where the paper has such."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bertology.reproductions.paper import Found

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["types_by_data"]


def types_by_data(found: Found) -> Figure:
    """A bar for each corpus, cut into the types of maps (map-types)."""
    from bertology.report.map_types import type_bars

    rows, names, types = [], [], []
    for title, result in found.items():
        table = result.tables["shares"]
        whole = table[table["layer"] == "all"]
        types = [str(t) for t in whole["type"]]
        rows.append(whole["share"].to_list())
        names.append(f"{title} ({result.arrays.attrs['examples']})")
    return type_bars(
        rows,
        types=types,
        names=names,
        title="Types of attention maps, by data",
        note="All layers and heads; in brackets the number of examples.",
    )
