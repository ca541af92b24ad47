"""The figures that studies draw. Each function returns a new matplotlib Figure.

Only matplotlib's objects are used, never pyplot: drawing leaves no state behind and works without
a display. Layers and heads are numbered from 0, and every figure that shows them says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertology.errors import ParameterError
from bertology.report.look import (
    ACCENT,
    GREY,
    INK,
    NEGATIVE,
    POSITIVE,
    diverging,
    look,
    new_figure,
    sequential,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    from bertology.stats import Estimate

__all__ = [
    "Dots",
    "Line",
    "head_grid",
    "interval_dots",
    "layer_bars",
    "lines",
    "map_sheet",
    "scatter_with_rank",
]

Floats = NDArray[np.float64]
_CONVENTION = "Layers and heads are numbered from 0."


def head_grid(
    values: ArrayLike,
    *,
    title: str,
    label: str,
    baseline: float | None = None,
    marks: ArrayLike | None = None,
    center: float | None = None,
) -> Figure:
    """One cell for each head: layers downwards, heads to the right.

    Args:
        values: Layers × heads; NaN where a head was not measured.
        title: What is shown.
        label: What the colours mean, with the unit.
        baseline: The intact model's value, drawn as a line in the colour bar.
        marks: Layers × heads; cells that are true are outlined.
        center: For differences: the value, usually 0, around which colours diverge.
    """
    grid = _array(values, "values", "head_grid", dimensions=2)
    marked = None if marks is None else np.asarray(marks, dtype=bool)
    if marked is not None and marked.shape != grid.shape:
        raise ParameterError("marks", "head_grid", f"have the shape {grid.shape}", marked.shape)
    layers, heads = grid.shape
    cell = min(0.42, 6.0 / max(heads, layers, 1))
    with look():
        figure, axes = new_figure(max(5.4, heads * cell + 1.9), max(3.5, layers * cell + 1.6))
        mesh = axes.pcolormesh(
            np.arange(heads + 1) - 0.5,
            np.arange(layers + 1) - 0.5,
            np.ma.masked_invalid(grid),
            cmap=sequential() if center is None else diverging(),
            norm=_scale(grid, baseline=baseline, center=center),
            edgecolors="white",
            linewidth=0.8,
        )
        axes.set(xlabel="head", ylabel="layer", aspect="equal")
        _title(figure, title)
        axes.set_ylim(layers - 0.5, -0.5)
        _count(axes.xaxis, heads)
        _count(axes.yaxis, layers)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        _colour_bar(figure, axes, mesh, label=label, baseline=baseline)
        _outline(axes, marked)
        some = "Outlined: significant after correction."
        none = "No head is significant after correction."
        note = "" if marked is None else some if marked.any() else none
        _note(figure, f"{_CONVENTION} {note}".strip())
    return figure


def map_sheet(maps: ArrayLike, *, title: str, note: str) -> Figure:
    """Attention maps of all heads on one sheet: layers downwards, heads to the right.

    `maps` is layers × heads × queries × keys. Darker is more attention; every map has its own
    scale, because heads that spread their attention would all look empty on a common one.
    """
    sheet = _array(maps, "maps", "map_sheet", dimensions=4)
    layers, heads = sheet.shape[:2]
    cell = min(0.62, 8.0 / max(layers, heads, 1))
    with look():
        figure, axes = new_figure(max(4.6, heads * cell + 0.8), max(3.2, layers * cell + 1.2))
        axes.remove()
        grid = figure.subplots(layers, heads, squeeze=False)
        for (layer, head), one in np.ndenumerate(grid):
            one.imshow(sheet[layer, head], cmap=sequential(), vmin=0, interpolation="nearest")
            one.set(xticks=[], yticks=[])
            one.spines[:].set_color("#cccccc")
            if layer == layers - 1:
                one.set_xlabel(str(head), labelpad=2)
            if head == 0:
                one.set_ylabel(str(layer), rotation=0, labelpad=8, va="center")
        _title(figure, title)
        _note(figure, fill(f"Rows: layers, columns: heads, from 0. {note}", 100))
    return figure


def layer_bars(
    values: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    *,
    title: str,
    label: str,
    baseline: float | None = None,
    names: Sequence[str] | None = None,
    filled: ArrayLike | None = None,
) -> Figure:
    """One bar for each layer, from the baseline (or 0) to its value, with its interval.

    `names` replaces the layer numbers, for other things than layers. `filled` says which bars are
    sure; the others are drawn hollow.
    """
    value = _array(values, "values", "layer_bars", dimensions=1)
    bounds = [_array(b, n, "layer_bars", dimensions=1) for b, n in ((low, "low"), (high, "high"))]
    for bound, name in zip(bounds, ("low", "high"), strict=True):
        if bound.shape != value.shape:
            raise ParameterError(name, "layer_bars", f"have {value.size} entries", bound.size)
    count, start = value.size, 0.0 if baseline is None else baseline
    place = np.arange(count)
    with look():
        figure, axes = new_figure(max(4.0, 0.36 * count + 1.6), 3.1)
        axes.grid(axis="y")
        colours = [POSITIVE if v >= start else NEGATIVE for v in value]
        drawn = axes.bar(place, value - start, bottom=start, width=0.68, color=colours, alpha=0.55)
        sure = np.ones(count, dtype=bool) if filled is None else np.asarray(filled, dtype=bool)
        for at in np.flatnonzero(~sure):
            drawn.patches[at].set(facecolor="white", edgecolor=colours[at])
        axes.vlines(place, bounds[0], bounds[1], color=INK, linewidth=1.2)
        axes.plot(place, value, "o", color=INK, markersize=3.5)
        axes.axhline(start, color=GREY if baseline is None else ACCENT, linewidth=1.4, zorder=2.5)
        if baseline is not None:
            axes.annotate(
                f" intact\n {baseline:.3g}", (1, baseline), xycoords=("axes fraction", "data"),
                color=ACCENT, va="center", fontsize=8, annotation_clip=False,
            )  # fmt: skip
        axes.set(ylabel=label, xlabel="layer" if names is None else "")
        _title(figure, title)
        axes.set_xlim(-0.6, max(count, 1) - 0.4)
        axes.spines["bottom"].set_visible(False)
        axes.tick_params(axis="x", length=0)
        if names is None:
            _count(axes.xaxis, count)
        else:
            axes.set_xticks(place, names, rotation=0 if _short(names) else 40)
        _fit(axes, np.concatenate([value, *bounds, [start]]))
        told = ["Layers are numbered from 0."] if names is None else []
        told += [] if filled is None else ["Filled: surely different from 0, after correction."]
        _note(figure, " ".join(told))
    return figure


def scatter_with_rank(
    x: ArrayLike,
    y: ArrayLike,
    *,
    title: str,
    xlabel: str,
    ylabel: str,
    rank: Estimate | None = None,
) -> Figure:
    """Two measures of the same things against each other, with their rank correlation.

    `rank` is Spearman's correlation with its interval; it is computed where not given.
    """
    one = _array(x, "x", "scatter_with_rank", dimensions=1)
    other = _array(y, "y", "scatter_with_rank", dimensions=1)
    if one.shape != other.shape:
        raise ParameterError("y", "scatter_with_rank", f"have {one.size} entries", other.size)
    if rank is None and one.size > 2:
        from bertology.stats import rank_correlation

        rank = rank_correlation(one, other)
    with look():
        figure, axes = new_figure(4.4, 4.0)
        axes.grid()
        if _spans_zero(one) and _spans_zero(other):
            axes.axhline(0, color=GREY, linewidth=0.8)
            axes.axvline(0, color=GREY, linewidth=0.8)
        axes.scatter(one, other, s=18, color=POSITIVE, alpha=0.65, linewidths=0)
        axes.set(xlabel=xlabel, ylabel=ylabel)
        _title(figure, title)
        if rank is not None:
            text = f"Spearman ρ = {rank.value:.2f} [{rank.low:.2f}, {rank.high:.2f}], n = {rank.n}"
            _note(figure, text)
    return figure


@dataclass(frozen=True)
class Dots:
    """One panel of `interval_dots`: what is measured, and a value with bounds for each name."""

    label: str
    values: ArrayLike
    low: ArrayLike
    high: ArrayLike


def interval_dots(
    panels: Sequence[Dots],
    names: Sequence[str],
    *,
    title: str,
    reference: str | None = None,
    note: str = "",
) -> Figure:
    """Several measures of the same things beside each other: a dot and its interval for each.

    The value of `reference` runs through its panel as a line. A dot without an interval is hollow;
    what was not measured has none.
    """
    if not panels:
        raise ParameterError("panels", "interval_dots", "hold at least one", 0)
    place = np.arange(len(names))
    with look():
        figure, axes = new_figure(2.0 + 1.9 * len(panels), max(2.6, 0.24 * len(names) + 1.5))
        axes.remove()
        for i, one in enumerate(figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]):
            _panel(
                one, panels[i], place, None if reference is None else list(names).index(reference)
            )
            one.tick_params(axis="y", length=0, labelleft=i == 0)
        one.set_yticks(place, names)
        one.set_ylim(len(names) - 0.4, -0.6)
        _title(figure, title)
        line = "" if reference is None else f"The line is {reference}. "
        _note(figure, fill(f"{line}{note}", 100))
    return figure


def _panel(axes: Axes, dots: Dots, place: NDArray[Any], reference: int | None) -> None:
    given = (("values", dots.values), ("low", dots.low), ("high", dots.high))
    value, low, high = (_array(v, n, "interval_dots", dimensions=1) for n, v in given)
    if not value.size == low.size == high.size == place.size:
        raise ParameterError("panels", "interval_dots", f"have {place.size} entries", value.size)
    known = np.isfinite(low) & np.isfinite(high)
    if reference is not None and np.isfinite(value[reference]):
        axes.axvline(float(value[reference]), color=ACCENT, linewidth=1.2, zorder=1)
    axes.grid(axis="y")
    axes.hlines(place[known], low[known], high[known], color=POSITIVE, linewidth=1.4)
    axes.plot(value[known], place[known], "o", color=POSITIVE, markersize=4.5)
    axes.plot(value[~known], place[~known], "o", mec=POSITIVE, mfc="white", markersize=4.5)
    axes.set_xlabel(fill(dots.label, 22))
    axes.spines["left"].set_visible(False)
    axes.locator_params(axis="x", nbins=4)


@dataclass(frozen=True)
class Line:
    """One line of `lines`; those of one name have one colour."""

    name: str
    x: ArrayLike
    y: ArrayLike


def lines(drawn: Sequence[Line], *, title: str, xlabel: str, ylabel: str, note: str = "") -> Figure:
    """Lines of up to three names, with a legend."""
    names = list(dict.fromkeys(line.name for line in drawn))
    if not 1 <= len(names) <= 3:
        raise ParameterError("drawn", "lines", "hold lines of one to three names", len(names))
    colours = dict(zip(names, (GREY, POSITIVE, ACCENT), strict=False))
    with look():
        figure, axes = new_figure(5.2, 3.4)
        axes.grid()
        for line in drawn:
            x = _array(line.x, "x", "lines", dimensions=1)
            y = _array(line.y, "y", "lines", dimensions=1)
            axes.plot(x, y, color=colours[line.name], linewidth=1.3, label=line.name)
        handles = {str(h.get_label()): h for h in axes.get_lines()}
        axes.legend(list(handles.values()), list(handles), frameon=False)
        axes.set(xlabel=xlabel, ylabel=ylabel)
        _title(figure, title)
        _note(figure, note)
    return figure


def _array(values: ArrayLike, name: str, of: str, *, dimensions: int) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != dimensions or array.size == 0:
        must = f"be a non-empty array of {dimensions} dimension{'s' if dimensions > 1 else ''}"
        raise ParameterError(name, of, must, array.shape)
    return array


def _scale(grid: Floats, *, baseline: float | None, center: float | None) -> Normalize:
    from matplotlib.colors import Normalize

    shown = grid[np.isfinite(grid)]
    if center is not None:
        reach = float(np.abs(shown - center).max()) if shown.size else 0.0
        reach = reach or 1e-3  # all equal to the centre: any range will do
        return Normalize(center - reach, center + reach)
    if baseline is not None:
        shown = np.append(shown, baseline)
    low, high = (float(shown.min()), float(shown.max())) if shown.size else (0.0, 1.0)
    margin = 1e-3 * max(abs(low), 1.0) if low == high else 0.0
    return Normalize(low - margin, high + margin)


def _colour_bar(
    figure: Figure, axes: Axes, mesh: Any, *, label: str, baseline: float | None
) -> None:
    bar = figure.colorbar(mesh, ax=axes, shrink=0.86, aspect=22, pad=0.03)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=2.5, labelsize=8)
    # A small grid is lower than a long label.
    bar.set_label("\n".join(fill(line, 34) for line in label.split("\n")))
    if bar.solids is not None:
        bar.solids.set_edgecolor("face")  # or viewers of vector files show hairlines
    if baseline is not None:
        bar.ax.axhline(baseline, color=ACCENT, linewidth=2)
        bar.ax.set_title(f"intact {baseline:.3g}", color=ACCENT, fontsize=8, loc="left", pad=6)


def _outline(axes: Axes, marked: NDArray[np.bool_] | None) -> None:
    from matplotlib.patches import Rectangle

    for layer, head in [] if marked is None else np.argwhere(marked):
        # A light line within a dark one: seen on light cells and on dark ones.
        for inset, colour, width in ((0.04, INK, 1.3), (0.11, "white", 1.1)):
            corner, side = (head - 0.5 + inset, layer - 0.5 + inset), 1 - 2 * inset
            axes.add_patch(Rectangle(corner, side, side, fill=False, ec=colour, lw=width))


def _count(axis: Any, count: int) -> None:
    """Label 0, 1, 2 …, or every few when they would not fit."""
    step = max(1, -(-count // 16))
    axis.set_ticks(range(0, count, step), [str(i) for i in range(0, count, step)])


def _fit(axes: Axes, values: Floats) -> None:
    """Bars would always pull 0 into view; show the range that the data and intervals span."""
    finite = values[np.isfinite(values)]
    low, high = float(finite.min()), float(finite.max())
    margin = 0.08 * (high - low) or 1e-3
    axes.set_ylim(low - margin, high + margin)


def _spans_zero(values: Floats) -> bool:
    return bool(np.nanmin(values) < 0 < np.nanmax(values))


def _short(names: Sequence[str]) -> bool:
    return max(map(len, names), default=0) <= 3


def _title(figure: Figure, text: str) -> None:
    """What is shown, over the whole width: a title of narrow axes would run off the page."""
    figure.suptitle(text, x=0.01, ha="left")


def _note(figure: Figure, text: str) -> None:
    """A small line below the axes."""
    if text:
        figure.supxlabel(text, fontsize=7.5, color=GREY, x=0.01, ha="left")
