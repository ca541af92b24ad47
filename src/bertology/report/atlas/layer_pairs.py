"""Layers of one model against layers of another: grids of results that compared the two."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from bertology.report.atlas.compare import Side, asked_of
from bertology.report.atlas.grid import Numbers, numbers
from bertology.report.atlas.naming import Entry
from bertology.report.web import Html, element, joined
from bertology.results.measures import LayerGrid

_HOW = (
    "One cell for each pair of layers: those of {0} downwards, those of {1} to the right; “in” is "
    "what enters the first layer. Point at a cell for its number, or walk the grid with arrow keys."
)


class PairsRecord(TypedDict):
    """One grid, for the page's scripts."""

    id: str
    study: str
    title: str
    label: str
    unit: str
    reading: str
    rows: list[str]
    columns: list[str]
    values: Numbers
    low: NotRequired[Numbers]
    high: NotRequired[Numbers]
    level: NotRequired[float]


def layer_pairs(first: Side, second: Side) -> list[PairsRecord]:
    """Grids of every result of one side that compared it with the other; rows are of the first.

    Where both sides have such a result over the same data, with the same settings, one is shown.
    """
    found: dict[tuple[object, ...], PairsRecord] = {}
    for side, other, turned in ((first, second, False), (second, first, True)):
        for entry in side.entries:
            for grid in entry.result.layer_grids():
                model = entry.result.provenance.others.get(grid.other) if grid.other else None
                if model is not None and other.has_model(model):
                    data = (entry.result.provenance.corpus or {}).get("fingerprint")
                    key = (entry.study, grid.name, entry.task, data, asked_of(entry))
                    found.setdefault(key, _record(entry, grid, turned=turned))
    return list(found.values())


def _record(entry: Entry, grid: LayerGrid, *, turned: bool) -> PairsRecord:
    values, low, high = (
        side.T if turned and side is not None else side
        for side in (grid.values, grid.low, grid.high)
    )
    across = 0 if turned else 1
    made: PairsRecord = {
        "id": f"{entry.anchor}/{grid.name}",
        "study": entry.study,
        "title": grid.title,
        "label": entry.label,
        "unit": grid.unit,
        "reading": grid.reading,
        "rows": grid.names(1 - across),
        "columns": grid.names(across),
        "values": [] if values is None else numbers(values),
    }
    if low is not None and high is not None:
        made["low"], made["high"], made["level"] = numbers(low), numbers(high), entry.level
    return made


def layer_pairs_piece(first: Side, second: Side) -> Html:
    """Where the page's script puts the grids."""
    return joined(
        [
            element("h3", "Layers of the one and of the other"),
            element("p", _HOW.format(first.name, second.name), kind="soft"),
            element("div", id="pairs-choice", kind="choose"),
            element("div", id="pairs-grid"),
        ]
    )
