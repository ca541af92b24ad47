"""Figures over all the data of a study at once, where the paper has such."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bertology.reproduce.paper import Found

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["examples_by_type", "types_by_data"]


def examples_by_type(found: Found) -> Figure | None:
    """Example maps of each type (map-types), of as many data as there is room for.

    Every data in turn gives its first map whose head is not yet in the row.
    """
    from bertology.annotated.map_types.examples import EACH, LONGEST, SHORTEST, kept_in
    from bertology.data.map_labels import MAP_TYPES
    from bertology.report.map_examples import LabelledMap, example_sheet

    kept = {title: kept_in(result.arrays) for title, result in found.items()}
    rows: dict[str, list[LabelledMap]] = {}
    for i, name in enumerate(MAP_TYPES):
        left = {title: [k for k in maps if k.type == i] for title, maps in kept.items()}
        row: dict[str, LabelledMap] = {}  # by head
        while any(left.values()):
            for title in left:
                left[title] = [k for k in left[title] if k.name not in row]
                for one in left[title][:1]:
                    label = f"{one.name}, {title}"
                    row[one.name] = LabelledMap(label, one.weights, one.tokens, one.second)
        if row:
            rows[name] = list(row.values())[:EACH]
    if not rows:
        return None
    return example_sheet(
        rows,
        title="Attention maps of each type",
        note=f"Of each data in turn the first maps in texts of {SHORTEST} to {LONGEST} tokens, in "
        "the order of examples, layers and heads; no head twice in a row.",
    )


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
