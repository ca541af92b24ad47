"""The kinds of figure that are drawn from measures, so that no study draws axes of its own.

A `Measure` knows its values, unit, bounds, tests and how to read it: that is all a grid of heads
or a profile of layers needs, its caption included. `about` names model and data in the title.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from bertology.results.drawing import Drawing
from bertology.results.measures import Measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["bars", "described", "grid", "grids", "profile", "rows", "type_grid"]

_CORRECTED = "corrected for looking at all of them"


def described(measure: Measure) -> str:
    """What a figure of the measure shows, in words."""
    one = "One cell for each head" if measure.of_heads else "One bar for each layer"
    unit = f", in {measure.unit}" if measure.unit else ""
    title = measure.title if measure.title[:2].isupper() else _lowered(measure.title)
    colours = _colours(measure) if measure.of_heads else ""
    return f"{one}: {title}{unit}. {colours}{measure.reading}{_marks([measure])}"


def _colours(measure: Measure) -> str:
    if measure.middle is None:
        return "Darker is more. "
    return f"Blue is above {measure.middle:g}, brown below. "


def _marks(measures: Sequence[Measure], note: str = "") -> str:
    """What it means that a cell is outlined or a bar filled; nothing where none is."""
    tested = [m for m in measures if m.sure is not None]
    if not tested:
        return ""
    outlined = "Outlined heads" if tested[0].of_heads else "Filled bars"
    surely = f"differ surely from {tested[0].middle or 0:g}, {_CORRECTED}"
    return f" {outlined} {note or surely}."


def grid(measure: Measure, about: str, *, name: str = "", caption: str = "") -> Drawing:
    """One cell for each head."""
    return Drawing(
        name or measure.name, partial(_grid, measure, about), caption or described(measure)
    )


def grids(
    name: str,
    measures: Sequence[Measure],
    about: str,
    *,
    title: str,
    reading: str,
    labels: Sequence[str] = (),
    sure: str = "",
) -> Drawing:
    """Several measures of heads side by side on one scale; `labels` instead of their titles.

    `reading` says what high and low values mean, `sure` what is true of outlined heads.
    """
    first, named = measures[0], list(labels) or [m.title for m in measures]
    marks = _marks(measures, sure)
    caption = (
        f"{title}: {'a grid' if len(named) == 1 else f'{len(named)} grids on one scale'}, one cell "
        f"for each head, in {first.unit}. {_colours(first)}{reading}{marks}"
    )
    draw = partial(_grids, list(measures), named, f"{title}\n{about}", marks.strip())
    return Drawing(name, draw, caption)


def rows(
    name: str,
    measures: Sequence[Measure],
    about: str,
    *,
    title: str,
    reading: str,
    labels: Sequence[str] = (),
) -> Drawing:
    """One row for each measure and a column for each layer; for each head of the last layer."""
    named = list(labels) or [m.title for m in measures]
    one = "head of the last layer" if measures[0].of_heads else "layer"
    return Drawing(
        name,
        partial(_rows, list(measures), named, f"{title}\n{about}"),
        f"{title}: one row for each of {', '.join(named)}; one column for each {one}, in "
        f"{measures[0].unit}. Darker is more. {reading}",
    )


def bars(measure: Measure, about: str, *, name: str = "", caption: str = "") -> Drawing:
    """One bar for each layer, with its interval; hollow where a test leaves it open."""
    return Drawing(
        name or measure.name, partial(_bars, measure, about), caption or described(measure)
    )


def profile(
    name: str,
    measures: Sequence[Measure],
    about: str,
    *,
    title: str,
    reading: str,
    labels: Sequence[str] = (),
) -> Drawing:
    """Several measures of layers as lines with their intervals."""
    named = list(labels) or [m.title for m in measures]
    return Drawing(
        name,
        partial(_profile, list(measures), named, f"{title}\n{about}"),
        f"{title}: layers to the right, upwards {', '.join(named)}, in {measures[0].unit}. Bands "
        f"are intervals over examples. {reading}",
    )


def type_grid(
    kinds: Measure, shares: Measure, about: str, *, name: str = "", caption: str = ""
) -> Drawing:
    """The kind of each head in colours, with a second measure, in per cent, as numbers."""
    words = caption or (
        f"One cell for each head, coloured by kind: {_lowered(kinds.title)}. {kinds.reading} The "
        f"number is a share in {shares.unit}: {_lowered(shares.title)}. {shares.reading}"
    )
    return Drawing(name or kinds.name, partial(_type_grid, kinds, shares, about), words)


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]


def _grid(measure: Measure, about: str) -> Figure:
    from bertology.report.figures import head_grid

    return head_grid(
        measure.values,
        title=f"{measure.title}\n{about}",
        label=measure.unit,
        marks=measure.sure,
        center=measure.middle,
    )


def _grids(measures: Sequence[Measure], labels: Sequence[str], title: str, note: str) -> Figure:
    from bertology.report.class_figures import GridPanel, head_grids

    panels = [GridPanel(n, m.values, m.sure) for n, m in zip(labels, measures, strict=True)]
    return head_grids(
        panels, title=title, label=measures[0].unit, center=measures[0].middle, note=note
    )


def _rows(measures: Sequence[Measure], labels: Sequence[str], title: str) -> Figure:
    from bertology.report.class_figures import class_table

    of_heads = measures[0].of_heads
    return class_table(
        [m.values[-1] if of_heads else m.values for m in measures],
        labels,
        title=title,
        label=measures[0].unit,
        xlabel="head" if of_heads else "layer",
    )


def _bars(measure: Measure, about: str) -> Figure:
    from bertology.report.figures import layer_bars

    blank = measure.values * float("nan")
    return layer_bars(
        measure.values,
        blank if measure.low is None else measure.low,
        blank if measure.high is None else measure.high,
        title=f"{measure.title}\n{about}",
        label=measure.unit,
        baseline=None,
        filled=measure.sure,
    )


def _profile(measures: Sequence[Measure], labels: Sequence[str], title: str) -> Figure:
    from bertology.report.class_figures import Band, layer_profile

    bands = []
    for label, m in zip(labels, measures, strict=True):
        low, high = (m.values if b is None else b for b in (m.low, m.high))
        bands.append(Band(label, m.values, low, high))
    return layer_profile(bands, title=title, label=measures[0].unit)


def _type_grid(kinds: Measure, shares: Measure, about: str) -> Figure:
    from bertology.report.map_types import type_grid as draw

    return draw(
        kinds.values,
        shares.values / 100,
        types=kinds.kinds,
        title=f"{kinds.title}\n{about}",
        note=f"Numbers: {_lowered(shares.title)}, in {shares.unit}. Layers and heads are numbered "
        "from 0.",
    )
