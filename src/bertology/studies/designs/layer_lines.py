"""Lines over layers: columns of a table of layers as measures, and all of them in one figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bertology.report import drawings
from bertology.results.measures import Measure, dashed

if TYPE_CHECKING:
    import pandas as pd

    from bertology.results.drawing import Drawing


@dataclass(frozen=True)
class Line:
    """A column of a table of layers: its title, what the figure calls it, and how to read it."""

    title: str
    label: str
    reading: str


def line_measures(
    table: pd.DataFrame,
    lines: Mapping[str, Line],
    *,
    of: str,
    middle: float | None = None,
    unit: str = "%",
) -> Sequence[Measure]:
    """A measure for each column that the table has; none of a single layer. Shares are in %."""
    if len(table) < 2:
        return []
    return [
        Measure.of_column(
            table,
            column,
            name=f"{of}-{dashed(column)}",
            title=line.title,
            unit=unit,
            scale=100.0 if unit == "%" else 1.0,
            middle=middle,
            reading=line.reading,
        )
        for column, line in lines.items()
        if column in table
    ]


def lines_drawn(
    shown: Sequence[Measure],
    lines: Mapping[str, Line],
    about: str,
    *,
    title: str,
    reading: str,
    name: str = "layers",
) -> Drawing:
    """All of them over layers."""
    labels = {line.title: line.label for line in lines.values()}
    return drawings.profile(
        name,
        shown,
        about,
        title=title,
        reading=reading,
        labels=[labels[measure.title] for measure in shown],
    )
