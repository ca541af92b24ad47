"""Every figure and table of a model's results as files for papers."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from bertology.drafts import write_whole
from bertology.report.atlas.gathering import Subject
from bertology.report.atlas.grid import of_heads
from bertology.report.atlas.naming import Entry, in_words
from bertology.report.export import export
from bertology.report.figures import head_grid
from bertology.results.measures import Measure
from bertology.results.rendering import FIGURE_FORMATS, render

_FORMATS = ("csv", "tex", *FIGURE_FORMATS)


def export_atlas(
    subject: Subject,
    folder: str | os.PathLike[str],
    *,
    drawn: Callable[[int], None] = lambda n: None,
) -> list[Path]:
    """A folder for each result, with its tables, its figures, and a grid for each measure.

    `drawn` hears of each result that is ready.
    """
    written: list[Path] = []
    for entry in subject.entries:
        place = Path(folder) / _folder(entry)
        written += export(entry.result, place, _FORMATS, prefix="", force=True)
        for measure in of_heads(entry.result.measures(), subject.grid):
            if not measure.kinds:  # kinds have a figure of their own study
                written += _grid(entry, measure, place / "grids")
        drawn(1)
    return written


def _folder(entry: Entry) -> str:
    words = re.sub(r"[^\w.-]+", "-", entry.label, flags=re.ASCII).strip("-")
    return f"{entry.study}-{words}-{entry.result.identity[:6]}"


def _grid(entry: Entry, measure: Measure, place: Path) -> list[Path]:
    figure = head_grid(
        measure.values,
        title=f"{measure.title}\n{in_words(entry.study)}, {entry.label}",
        label=measure.unit or measure.title,
        marks=measure.sure,
        center=measure.middle,
    )
    place.mkdir(parents=True, exist_ok=True)
    written = []
    for format in ("svg", "pdf"):
        path = place / f"{measure.name}.{format}"
        write_whole(path, render(figure, format))
        figure.set_layout_engine("none")  # everything has its place now; finding it is slow
        written.append(path)
    return written
