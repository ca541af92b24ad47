"""What the grid of heads can show: every measure of every result, in the page's own form."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from bertology.report.atlas.naming import Entry
from bertology.results.measures import Measure

__all__ = ["head_measures", "layer_measures", "numbers", "of_heads"]

_DIGITS = 4  # more would not be seen, and the page would grow


def head_measures(entries: Iterable[Entry], shape: tuple[int, int]) -> list[dict[str, Any]]:
    """Measures of heads, each with a set of numbers for every result that has it."""
    found: dict[str, dict[str, Any]] = {}
    places: dict[str, int] = {}
    for entry in entries:
        for measure in of_heads(entry.result.measures(), shape):
            key = f"{entry.study}/{measure.name}"
            about = {"id": key, "study": entry.study, "title": measure.title, "sets": []}
            found.setdefault(key, about)["sets"].append(_set(entry, measure))
            places[key] = entry.result.place
    return sorted(found.values(), key=lambda m: places[m["id"]])


def of_heads(measures: Iterable[Measure], shape: tuple[int, int]) -> list[Measure]:
    """Those that are told for every head of a model of this shape."""
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


def _set(entry: Entry, measure: Measure) -> dict[str, Any]:
    made: dict[str, Any] = {
        "entry": entry.anchor,
        "label": entry.label,
        "title": measure.title,
        "unit": measure.unit,
        "reading": measure.reading,
        "values": numbers(measure.values),
    }
    if measure.low is not None and measure.high is not None:
        made |= {"low": numbers(measure.low), "high": numbers(measure.high), "level": entry.level}
    if measure.sure is not None:
        made["sure"] = [int(v) for v in np.asarray(measure.sure).ravel()]
    if measure.kinds:
        made["kinds"] = list(measure.kinds)
    if measure.middle is not None:
        made["middle"] = measure.middle
    return made


def numbers(values: Any) -> list[float | int | None]:
    """Numbers row by row, as short as the eye allows; None where there is none."""
    return [_short(float(v)) for v in np.asarray(values, dtype=np.float64).ravel()]


def _short(value: float, digits: int = _DIGITS) -> float | int | None:
    if not math.isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded == int(rounded) else rounded
