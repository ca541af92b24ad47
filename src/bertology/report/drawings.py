"""The kinds of figure that are drawn from measures, so that no study draws axes of its own.

A `Measure` knows its values, unit, bounds, tests and how to read it: that is all a grid of heads
or a profile of layers needs, its caption included. `about` names model and data in the title.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from bertology.errors import ParameterError
from bertology.report import figures
from bertology.results.drawing import Drawing
from bertology.results.measures import LayerGrid, Measure
from bertology.results.points import PointColumns

if TYPE_CHECKING:
    import pandas as pd

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
    of_heads = tested[0].of_heads
    which = figures.marked_as([m.sure for m in measures]) if of_heads else "Filled bars"
    surely = f"differ surely from {tested[0].middle or 0:g}, {_CORRECTED}"
    return f" {which} {note or surely}."


def grid(measure: Measure, about: str, *, name: str = "", caption: str = "") -> Drawing:
    """One cell for each head."""
    draw = partial(
        figures.head_grid,
        measure.values,
        title=f"{measure.title}\n{about}",
        label=measure.unit,
        marks=measure.sure,
        center=measure.middle,
    )
    return Drawing(name or measure.name, draw, caption or described(measure), (measure.name,))


def grids(
    name: str,
    measures: Sequence[Measure],
    about: str,
    *,
    title: str,
    reading: str,
    labels: Sequence[str] = (),
    sure: str = "",
    level: tuple[str, float] | None = None,
    shared: bool | None = None,
) -> Drawing:
    """Several measures of heads side by side; `labels` instead of their titles.

    They are on one scale where none would be pale all over, or as `shared` says. `reading` says
    what high and low values mean, `sure` what is true of marked heads, `level` a line in the
    scale, with its name.
    """
    first, marks = measures[0], _marks(measures, sure)
    panels = [
        figures.GridPanel(label, m.values, m.sure)
        for label, m in zip(_labels(measures, labels), measures, strict=True)
    ]
    draw = partial(
        figures.head_grids,
        panels,
        title=f"{title}\n{about}",
        label=first.unit,
        center=first.middle,
        note=marks.strip(),
        level=level,
        shared=shared,
    )
    together = figures.on_one_scale([m.values for m in measures], first.middle)
    together = together if shared is None else shared
    each = "on one scale" if together else "each on its own scale"
    several = "a grid" if len(panels) == 1 else f"{len(panels)} grids {each}"
    caption = (
        f"{title}: {several}, one cell for each head, in {first.unit}. "
        f"{_colours(first)}{reading}{marks}"
    )
    return Drawing(name, draw, caption, tuple(m.name for m in measures))


def layer_grids(
    name: str,
    shown: Sequence[LayerGrid],
    about: str,
    *,
    models: tuple[str, str],
    title: str = "",
    labels: Sequence[str] = (),
) -> Drawing:
    """Pairs of layers: one cell for each layer of the first model and each of the second."""
    first, (ours, theirs) = shown[0], models
    named = list(labels) or [one.title for one in shown]
    title = title or first.title
    draw = partial(
        figures.layer_grids,
        [
            (label if len(shown) > 1 else "", one.values)
            for label, one in zip(named, shown, strict=True)
        ],
        names=(first.names(0), first.names(1)),
        models=models,
        title=f"{title}\n{about}",
        label=first.unit if len({one.unit for one in shown}) == 1 else "by the measure above",
    )
    of = (
        f"layers of {ours} downwards and"
        if ours == theirs
        else (f"layers of {ours} downwards, of {theirs}")
    )
    several = "" if len(shown) == 1 else f" Side by side: {', '.join(named)}."
    caption = (
        f"{title}: {of} to the right; “input” is what enters the first layer. One cell for each "
        f"pair, darker is more alike, on a scale up to 1.{several} {first.reading}"
    )
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
    """One row for each measure and a column for each layer, or for each head of the last layer."""
    first, named = measures[0], _labels(measures, labels)
    draw = partial(
        figures.row_grid,
        [m.values[-1] if m.of_heads else m.values for m in measures],
        named,
        title=f"{title}\n{about}",
        label=first.unit,
        xlabel="head" if first.of_heads else "layer",
    )
    one = "head of the last layer" if first.of_heads else "layer"
    caption = (
        f"{title}: one row for each of {', '.join(named)}; one column for each {one}, in "
        f"{first.unit}. Darker is more. {reading}"
    )
    return Drawing(name, draw, caption, tuple(m.name for m in measures))


def bars(measure: Measure, about: str, *, name: str = "", caption: str = "") -> Drawing:
    """One bar for each layer, with its interval; hollow where a test leaves it open."""
    blank = measure.values * float("nan")
    draw = partial(
        figures.layer_bars,
        measure.values,
        blank if measure.low is None else measure.low,
        blank if measure.high is None else measure.high,
        title=f"{measure.title}\n{about}",
        label=measure.unit,
        filled=measure.sure,
    )
    return Drawing(name or measure.name, draw, caption or described(measure), (measure.name,))


def profile(
    name: str,
    measures: Sequence[Measure],
    about: str,
    *,
    title: str,
    reading: str = "",
    labels: Sequence[str] = (),
    shaded: str = "intervals over examples",
    beside: Mapping[str, ArrayLike] | None = None,
    caption: str = "",
) -> Drawing:
    """Several measures of layers as lines with bands; `shaded` says what these are.

    `beside` are lines to compare with, in the same unit: a value for each layer, or one for all.
    """
    named, unit = _labels(measures, labels), measures[0].unit
    bands = [
        figures.Band(label, m.values, m.low, m.high)
        for label, m in zip(named, measures, strict=True)
    ] + [
        figures.Band(label, np.broadcast_to(values, measures[0].values.shape))
        for label, values in (beside or {}).items()
    ]
    draw = partial(
        figures.layer_profile, bands, title=f"{title}\n{about}", label=unit, shaded=shaded
    )
    caption = caption or (
        f"{title}: layers to the right, upwards {', '.join(named)}, in {unit}. Bands are {shaded}. "
        f"{reading}"
    )
    return Drawing(name, draw, caption, tuple(m.name for m in measures))


def dots(
    name: str,
    panels: Sequence[figures.Dots],
    rows: Iterable[object],
    about: str,
    *,
    title: str,
    caption: str,
    note: str = "",
    reference: str | None = None,
    same_scale: bool = False,
) -> Drawing:
    """What is measured of things that are named: a row for each, and a panel for each measure."""
    draw = partial(
        figures.interval_dots,
        panels,
        [str(row) for row in rows],
        title=f"{title}\n{about}",
        note=note,
        reference=reference,
        same_scale=same_scale,
    )
    return Drawing(name, draw, caption)


def curve(
    name: str,
    bands: Sequence[figures.Band],
    places: Sequence[str] | None,
    about: str,
    *,
    title: str,
    label: str,
    xlabel: str,
    caption: str,
    level: float | None = None,
    note: str = "",
) -> Drawing:
    """Lines with bands over other things than layers; see `figures.band_curve`."""
    draw = partial(
        figures.band_curve,
        bands,
        places,
        title=f"{title}\n{about}",
        label=label,
        xlabel=xlabel,
        level=level,
        note=note,
    )
    return Drawing(name, draw, caption)


def type_grid(
    kinds: Measure, shares: Measure, about: str, *, name: str = "", caption: str = ""
) -> Drawing:
    """The kind of each head in colours, with a second measure, in per cent, as numbers."""
    number = f"{_lowered(shares.title)}, in {shares.unit}"
    draw = partial(
        figures.type_grid,
        kinds.values,
        shares.values / 100,
        types=kinds.kinds,
        title=f"{kinds.title}\n{about}",
        note=f"Numbers: {number}. Layers and heads are numbered from 0.",
    )
    words = caption or (
        f"One cell for each head, coloured by kind: {_lowered(kinds.title)}. {kinds.reading} The "
        f"number is a share: {number}. {shares.reading}"
    )
    return Drawing(name or kinds.name, draw, words, (kinds.name,))


def planes(
    name: str,
    frame: pd.DataFrame,
    columns: PointColumns,
    about: str,
    *,
    title: str,
    reading: str,
    drawn: Sequence[tuple[object, ...]],
    labels: Sequence[str] = (),
    one: str = "point",
    named: str | None = None,
) -> Drawing:
    """The rows of a table as points in planes; `one` says what a row is.

    For paper, those planes are `drawn` whose values in the columns `columns.planes` are given; on
    a page the reader chooses among all. `labels` instead of these values above them. `named` is the
    column with a short name for each point, where they are few.
    """
    found = []
    for values, label in zip(drawn, labels or [_joined(v) for v in drawn], strict=True):
        own = frame
        for column, value in zip(columns.planes, values, strict=True):
            own = own[own[column] == value]
        if own.empty:
            raise ParameterError("drawn", "planes", "name planes that have points", values)
        at = own[[columns.x, columns.y]].to_numpy()
        names = [] if named is None else [str(name) for name in own[named]]
        groups = [str(g) for g in own[columns.group]]
        found.append(figures.PointPanel(label, at, groups, names))
    draw = partial(figures.point_planes, found, title=f"{title}\n{about}", note="")
    caption = (
        f"each mark is one {one}, and its colour and shape say its {columns.group}; how many there "
        f"are is in brackets. The axes have no unit. {reading}"
    ).rstrip()
    return Drawing(
        name,
        draw,
        f"{title}: {caption}",
        points=columns,
        caption_of_any=caption[:1].upper() + caption[1:],
    )


def _joined(values: Sequence[object]) -> str:
    return ", ".join(map(str, values))


def _labels(measures: Sequence[Measure], labels: Sequence[str]) -> list[str]:
    return list(labels) or [m.title for m in measures]


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]
