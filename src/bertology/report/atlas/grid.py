"""What the grid of heads can show: every measure of every result, for the page's scripts."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NotRequired, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from bertology.report.atlas.naming import Entry
from bertology.results.measures import Measure

_DIGITS = 4  # more digits would make the page larger, with no visible difference

Numbers = list[float | int | None]


class MeasureSet(TypedDict):
    """One result's values of a measure, for the page's scripts."""

    entry: str
    label: str
    title: str
    unit: str
    reading: str
    values: Numbers
    low: NotRequired[Numbers]
    high: NotRequired[Numbers]
    level: NotRequired[float]
    sure: NotRequired[list[int]]
    kinds: NotRequired[list[str]]
    middle: NotRequired[float]


class MeasureRecord(TypedDict):
    """A measure of heads, with the values of every result that has it."""

    id: str
    study: str
    title: str
    sets: list[MeasureSet]


def head_measures(entries: Iterable[Entry], shape: tuple[int, int]) -> list[MeasureRecord]:
    """Measures of heads, each with a set of numbers for every result that has it."""
    found: dict[str, MeasureRecord] = {}
    places: dict[str, int] = {}
    for entry in entries:
        for measure in of_heads(entry.result.measures(), shape):
            key = f"{entry.study}/{measure.name}"
            about = MeasureRecord(id=key, study=entry.study, title=measure.title, sets=[])
            found.setdefault(key, about)["sets"].append(_set(entry, measure))
            places[key] = entry.result.place
    return sorted(found.values(), key=lambda m: places[m["id"]])


def of_heads(measures: Iterable[Measure], shape: tuple[int, int]) -> list[Measure]:
    """The measures with a value for every head of a model of this shape."""
    return [m for m in measures if m.of_heads and m.values.shape == shape]


def layer_measures(entries: Iterable[Entry], layers: int) -> dict[str, list[tuple[Entry, Measure]]]:
    """Measures of layers by study, name and unit: tasks may be scored by different metrics."""
    found: dict[str, list[tuple[Entry, Measure]]] = {}
    for entry in entries:
        for measure in entry.result.measures():
            if measure.values.shape == (layers,) and not measure.kinds:
                key = f"{entry.study}/{measure.name}/{measure.unit}"
                found.setdefault(key, []).append((entry, measure))
    return found


def _set(entry: Entry, measure: Measure) -> MeasureSet:
    made: MeasureSet = {
        "entry": entry.anchor,
        "label": entry.label,
        "title": measure.title,
        "unit": measure.unit,
        "reading": measure.reading,
        "values": numbers(measure.values),
    }
    if measure.low is not None and measure.high is not None:
        made["low"], made["high"] = numbers(measure.low), numbers(measure.high)
        made["level"] = entry.level
    if measure.sure is not None:
        made["sure"] = [int(v) for v in np.asarray(measure.sure).ravel()]
    if measure.kinds:
        made["kinds"] = list(measure.kinds)
    if measure.middle is not None:
        made["middle"] = measure.middle
    return made


def numbers(values: ArrayLike) -> Numbers:
    """Numbers row by row, rounded; None where a value is missing."""
    return [_short(float(v)) for v in np.asarray(values, dtype=np.float64).ravel()]


def _short(value: float, digits: int = _DIGITS) -> float | int | None:
    if not math.isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded == int(rounded) else rounded
