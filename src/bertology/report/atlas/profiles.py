"""Layer profiles: a small chart for each measure that is told layer by layer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import numpy as np

from bertology.report.atlas.grid import layer_measures
from bertology.report.atlas.naming import Entry, in_words
from bertology.report.web import Html, element, folded, joined
from bertology.results.measures import Measure

EntryMeasures = Sequence[tuple[Entry, Measure]]
_WIDTH, _HEIGHT = 320, 176
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 8, 10, 32
_LINES = 5  # on one chart; more cannot be told apart
_SHOWN = 3  # charts of a study that are open from the start


def profiles_piece(entries: Sequence[Entry], layers: int) -> Html:
    """The section; empty where no result tells of layers."""
    studies: dict[str, list[Html]] = {}
    for key, drawn in layer_measures(entries, layers).items():
        studies.setdefault(key.partition("/")[0], []).append(_chart(drawn))
    if not studies:
        return Html("")
    pieces: list[object] = [
        element("h2", "Layer by layer"),
        element(
            "p",
            "Layers from the input (0) to the output. Bars are intervals. Every chart has its own "
            "scale; its unit stands above it.",
            kind="soft",
        ),
    ]
    for study, charts in studies.items():
        name = in_words(study)
        pieces += [
            element("h3", name[:1].upper() + name[1:], id=f"layers-{study}"),
            element("div", *charts[:_SHOWN], kind="profiles"),
        ]
        if rest := charts[_SHOWN:]:
            pieces.append(folded(f"{len(rest)} more", element("div", *rest, kind="profiles")))
    return element("section", joined(pieces), id="layers")


def _chart(drawn: EntryMeasures) -> Html:
    first = drawn[0][1]
    shown = drawn[:_LINES]
    legend = [
        element("li", Html(f'<svg class="key line-{i}" viewBox="0 0 18 10" aria-hidden="true">'
                           f"{_mark(9, 5, i)}</svg>"), entry.label)
        for i, (entry, _) in enumerate(shown)
    ]  # fmt: skip
    if left_out := len(drawn) - len(shown):
        legend.append(element("li", f"and {left_out} more in the tables"))
    unit = element("div", element("span", first.unit or "no unit"), kind="soft unit-line")
    return element(
        "figure",
        element("figcaption", element("b", first.title), unit),
        _svg(shown, first.title),
        element("ul", *legend, kind="legend"),
        element("p", first.reading, kind="soft"),
        kind="profile",
    )


def _svg(drawn: EntryMeasures, title: str) -> Html:
    low, high = _range(drawn)
    layers = drawn[0][1].values.size
    pieces = [*_axes(low, high, layers, drawn[0][1].middle)]
    for i, (_, measure) in enumerate(drawn):
        spread = (i - (len(drawn) - 1) / 2) * 3.0  # beside each other, or whiskers would hide
        pieces.append(f'<g class="line-{i}">{_line(measure, low, high, spread, i)}</g>')
    label = escape(f"{title}, by layer", quote=True)
    return Html(
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}">'
        f"{''.join(pieces)}</svg>"
    )


def _range(drawn: EntryMeasures) -> tuple[float, float]:
    arrays = [a for _, m in drawn for a in (m.values, m.low, m.high) if a is not None]
    values = np.concatenate([np.asarray(a, dtype=float).ravel() for a in arrays])
    values = values[np.isfinite(values)]
    middle = drawn[0][1].middle
    if middle is not None:
        values = np.append(values, middle)
    if not values.any():  # none, or all 0: a scale around 0 would speak of what cannot be
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    margin = 0.06 * (high - low) or max(abs(low), 1.0) * 0.05
    return low - margin, high + margin


def _x(layer: int, layers: int) -> float:
    room = _WIDTH - _LEFT - _RIGHT
    return _LEFT + room * (layer + 0.5) / layers


def _y(value: float, low: float, high: float) -> float:
    return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (high - value) / (high - low)


def _axes(low: float, high: float, layers: int, middle: float | None) -> list[str]:
    pieces = []
    for value in _ticks(low, high):
        y = _y(value, low, high)
        kind = "zero" if middle is not None and math.isclose(value, middle) else "rule"
        pieces.append(
            f'<line class="{kind}" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text x="{_LEFT - 5}" y="{y + 3.5:.1f}" text-anchor="end">{_minus(value)}</text>'
        )
    step = max(1, -(-layers // 12))
    pieces += [
        f'<text x="{_x(n, layers):.1f}" y="{_HEIGHT - 18}" text-anchor="middle">{n}</text>'
        for n in range(0, layers, step)
    ]
    middle_x = (_LEFT + _WIDTH - _RIGHT) / 2
    pieces.append(f'<text x="{middle_x}" y="{_HEIGHT - 4}" text-anchor="middle">layer</text>')
    return pieces


def _minus(value: float) -> str:
    return f"{value:g}".replace("-", "−")


def _ticks(low: float, high: float) -> list[float]:
    """Three to six round numbers within the range."""
    rough = (high - low) / 5
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * s for s in (1, 2, 2.5, 5, 10) if size * s >= rough)
    first = math.ceil(low / step)
    return [float(f"{i * step:.10g}") for i in range(first, math.floor(high / step) + 1)]


def _line(measure: Measure, low: float, high: float, spread: float, index: int) -> str:
    values = [float(v) for v in measure.values]
    layers = len(values)
    places = {
        n: (_x(n, layers) + spread, _y(v, low, high))
        for n, v in enumerate(values)
        if math.isfinite(v)
    }
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places.values())
    pieces = [f'<polyline points="{path}"/>']
    for n, (x, _) in places.items():
        if measure.low is None or measure.high is None:
            break
        ends = float(measure.low[n]), float(measure.high[n])
        if all(map(math.isfinite, ends)):
            top, bottom = (_y(e, low, high) for e in reversed(ends))
            pieces.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top:.1f}" y2="{bottom:.1f}"/>')
    pieces += [_mark(x, y, index) for x, y in places.values()]
    return "".join(pieces)


def _mark(x: float, y: float, index: int) -> str:
    """Shapes differ as well as colours."""
    if index % 5 == 1:
        return f'<rect x="{x - 3:.1f}" y="{y - 3:.1f}" width="6" height="6"/>'
    if index % 5 in (2, 4):
        way = 1 if index % 5 == 2 else -1
        corners = ((0, -4), (4, 3.2), (-4, 3.2))
        points = " ".join(f"{x + dx:.1f},{y + way * dy:.1f}" for dx, dy in corners)
        return f'<polygon points="{points}"/>'
    if index % 5 == 3:
        points = " ".join(
            f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in ((0, -4.4), (4.4, 0), (0, 4.4), (-4.4, 0))
        )
        return f'<polygon points="{points}"/>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2"/>'
