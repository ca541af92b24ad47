"""Bars, dots and lines: values of layers, doses, starts or tasks, with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertology.arrays import Floats
from bertology.errors import ParameterError
from bertology.report.figures.grids import TYPE_COLOURS, type_legend
from bertology.report.figures.pieces import add_note, add_title, checked, ticks, with_bounds
from bertology.report.look import (
    ACCENT,
    GREEN,
    GREY,
    INK,
    NEGATIVE,
    ON_DARK,
    ON_LIGHT,
    PAPER,
    POSITIVE,
    look,
    new_figure,
    type_size,
)
from bertology.results.drawing import canvas
from bertology.results.number_text import with_interval

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bertology.stats import Estimate

_COLOURS = (ACCENT, POSITIVE, GREEN, GREY, NEGATIVE)  # brown last: it is near to the accent
_STYLES = ("-", "-", "--", ":", "-.")
_LEVELS = ("-", "--", ":")  # of lines to compare with
_AXES_SHARE = 0.6  # of the height of a figure, about
_LABEL = 36  # characters of a label in one line: more would leave the panel
_SURE_BARS = (
    "Lines: intervals of the change, for all bars together. Filled bars differ surely from 0."
)


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
    sure_bars: str = _SURE_BARS,
) -> Figure:
    """One bar for each layer, from the baseline (or 0) to its value, with its interval.

    `names` replaces the layer numbers, for other things than layers. `filled` says which bars are
    sure, and `sure_bars` what that means; the others are drawn hollow.
    """
    value = checked(values, "values", "layer_bars", dimensions=1)
    bounds = [checked(b, n, "layer_bars", dimensions=1) for b, n in ((low, "low"), (high, "high"))]
    for bound, name in zip(bounds, ("low", "high"), strict=True):
        if bound.shape != value.shape:
            raise ParameterError(name, "layer_bars", f"have {value.size} entries", bound.size)
    count, start = value.size, 0.0 if baseline is None else baseline
    place = np.arange(count)
    with look():
        figure, axes = new_figure(max(4.0, 0.36 * count + 1.6), 3.1)
        axes.grid(axis="y")
        colours = [POSITIVE if v >= start else NEGATIVE for v in value]
        drawn = axes.bar(place, value - start, bottom=start, width=0.68, color=colours, alpha=0.75)
        sure = np.ones(count, dtype=bool) if filled is None else np.asarray(filled, dtype=bool)
        for at in np.flatnonzero(~sure):
            drawn.patches[at].set(facecolor=PAPER, edgecolor=colours[at], alpha=1)
        axes.vlines(place, bounds[0], bounds[1], color=INK, linewidth=1.2)
        known = np.isfinite(bounds[0]) & np.isfinite(bounds[1]) & (bounds[0] < bounds[1])
        axes.plot(place[known], value[known], "o", color=INK, markersize=3.5)
        axes.axhline(start, color=GREY if baseline is None else ACCENT, linewidth=1.4, zorder=2.5)
        axes.set(ylabel=label, xlabel="layer" if names is None else "")
        add_title(figure, title)
        axes.set_xlim(-0.6, max(count, 1) - 0.4)
        axes.spines["bottom"].set_visible(False)
        axes.tick_params(axis="x", length=0)
        if names is None:
            ticks(axes.xaxis, count)
        else:
            axes.set_xticks(place, names, rotation=0 if _short(names) else 40)
        _fit(axes, np.concatenate([value, *bounds, [start]]), start)
        if baseline is not None:
            _name_levels(figure, axes, {"intact": baseline})
        told = ["Layers are numbered from 0."] if names is None else []
        told += [] if filled is None else [sure_bars]
        add_note(figure, " ".join(told))
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
    one = checked(x, "x", "scatter_with_rank", dimensions=1)
    other = checked(y, "y", "scatter_with_rank", dimensions=1)
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
        axes.set(xlabel=fill(xlabel, _LABEL), ylabel=fill(ylabel, _LABEL))
        add_title(figure, title)
        if rank is not None:
            shown = with_interval(rank.value, rank.low, rank.high, ".2f")
            text = f"Spearman ρ = {shown}, n = {rank.n}"
            add_note(figure, text)
    return figure


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
            x = checked(line.x, "x", "lines", dimensions=1)
            y = checked(line.y, "y", "lines", dimensions=1)
            axes.plot(x, y, color=colours[line.name], linewidth=1.3, label=line.name)
        handles = {str(h.get_label()): h for h in axes.get_lines()}
        axes.legend(list(handles.values()), list(handles), frameon=False)
        axes.set(xlabel=xlabel, ylabel=ylabel)
        add_title(figure, title)
        add_note(figure, note)
    return figure


@dataclass(frozen=True)
class Band:
    """One line of `layer_profile` with its interval, if it has one, an entry for each layer."""

    name: str
    values: ArrayLike
    low: ArrayLike | None = None
    high: ArrayLike | None = None

    @classmethod
    def of_columns(
        cls, name: str, rows: pd.DataFrame, column: str, *, scale: float = 100.0
    ) -> Band:
        """Shares in per cent (or by another `scale`), from a column and those of its bounds."""
        return cls(name, *with_bounds(rows, column, scale))


def layer_profile(
    bands: Sequence[Band],
    *,
    title: str,
    label: str,
    shaded: str = "intervals over examples",
) -> Figure:
    """Up to five quantities over the layers, each a line with its interval.

    `shaded` says what bands are; nothing where there are none.
    """
    return band_curve(
        bands,
        None,
        title=title,
        label=label,
        xlabel="layer",
        note="Layers are numbered from 0." + (f" Bands: {shaded}." if shaded else ""),
    )


def band_curve(
    bands: Sequence[Band],
    places: Sequence[str] | None,
    *,
    title: str,
    label: str,
    xlabel: str,
    level: float | None = None,
    note: str = "",
) -> Figure:
    """Up to five quantities over named places, or numbers from 0, each a line with its interval.

    A dotted line runs at the `level`, such as chance.
    """
    if not 1 <= len(bands) <= len(_COLOURS):
        must = f"hold one to {len(_COLOURS)} lines"
        raise ParameterError("bands", "band_curve", must, len(bands))
    with look():
        figure, axes = new_figure(6.2, 3.4)
        axes.grid()
        for band, colour, style in zip(bands, _COLOURS, _STYLES, strict=False):
            values, low, high = _sides(band)
            place = np.arange(values.size)
            axes.fill_between(place, low, high, color=colour, alpha=0.18, linewidth=0)
            axes.plot(
                place, values, style, color=colour, linewidth=1.6, marker="o", markersize=3.5,
                label=band.name,
            )  # fmt: skip
        axes.set(xlabel=xlabel, ylabel=label)
        if min(np.nanmin(side) for band in bands for side in _sides(band)[1::-1]) >= 0:
            axes.set_ylim(bottom=0)
        else:
            axes.axhline(0, color=GREY, linewidth=0.8, zorder=1)
        if level is not None:
            axes.axhline(level, color=GREY, linewidth=1.0, linestyle=":", zorder=1)
        # Ends of lines may lie on each other, so names do not stand there.
        if (canvas().width or 6.2) < 5:
            axes.legend(
                frameon=False, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2,
                borderaxespad=0.1,
            )  # fmt: skip
        else:
            axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5))
        if places is None:
            ticks(axes.xaxis, place.size)
        else:
            axes.set_xticks(place, places)
        add_title(figure, title)
        add_note(figure, note)
    return figure


def _sides(band: Band) -> list[Floats]:
    """Values and bounds; a line without bounds has no width."""
    given = (band.values, band.low, band.high)
    return [np.asarray(band.values if side is None else side, float) for side in given]


@dataclass(frozen=True)
class Draws:
    """What was drawn at one dose: each draw's value, and their mean with its interval."""

    dose: int
    values: ArrayLike
    mean: float
    low: float
    high: float


def dose_curve(
    draws: Sequence[Draws],
    *,
    title: str,
    xlabel: str,
    ylabel: str,
    lines: Mapping[str, float] | None = None,
    note: str = "",
) -> Figure:
    """Doses to the right in doublings, values upwards; `lines` are named levels to compare with.

    Each draw is a small dot, spread sideways so that equal ones can be told apart.
    """
    if not draws:
        raise ParameterError("draws", "dose_curve", "hold at least one dose", 0)
    place = np.log2([d.dose for d in draws])
    mean = np.array([d.mean for d in draws])
    bounds = np.array([[d.low, d.high] for d in draws]).T
    with look():
        figure, axes = new_figure(5.6, 3.6)
        axes.grid(axis="y")
        for at, one in zip(place, draws, strict=True):
            values: NDArray[np.float64] = np.asarray(one.values, dtype=np.float64)
            aside = np.linspace(-0.16, 0.16, values.size) if values.size > 1 else np.zeros(1)
            axes.scatter(at + aside, values, s=9, color=GREY, alpha=0.45, linewidths=0)
        axes.vlines(place, *bounds, color=POSITIVE, linewidth=2.2, zorder=3)
        axes.plot(place, mean, "o-", color=POSITIVE, markersize=5, linewidth=1.4, zorder=3)
        for level, style in zip((lines or {}).values(), _LEVELS, strict=False):
            axes.axhline(level, color=ACCENT, linewidth=1.2, linestyle=style, zorder=1.5)
        axes.set(xlabel=xlabel, ylabel=ylabel)
        axes.set_xticks(place, [str(d.dose) for d in draws])
        axes.set_xlim(place.min() - 0.5, place.max() + 0.5)
        _name_levels(figure, axes, lines or {})
        add_title(figure, title)
        add_note(figure, note)
    return figure


def type_bars(
    shares: ArrayLike,
    *,
    types: Sequence[str],
    names: Sequence[str],
    title: str,
    note: str,
    label: str = "share of all attention maps",
) -> Figure:
    """A bar for each row of `shares` (rows × types, as fractions), cut into the types.

    `names` stand beside the bars: layers, or tasks as in the paper's Figure 2.
    """
    share = np.asarray(shares, dtype=float)
    if share.shape != (len(names), len(types)):
        raise ParameterError(
            "shares", "type_bars", f"be {len(names)} × {len(types)} numbers", share.shape
        )
    with look():
        figure, axes = new_figure(7.0, max(2.6, 0.27 * len(names) + 1.7))
        put = partial(axes.text, ha="center", va="center", fontsize=type_size(7))
        least = 8 if (canvas().width or 7.0) > 5 else 12  # per cent that have room for a number
        start = np.zeros(len(names))
        rows = np.arange(len(names))
        for i, name in enumerate(types):
            part = 100 * share[:, i]
            colour = TYPE_COLOURS[i]
            axes.barh(rows, part, left=start, height=0.78, color=colour, label=name, linewidth=0)
            for row in np.flatnonzero(part >= least):
                ink = ON_DARK if i == 0 else ON_LIGHT
                middle = start[row] + part[row] / 2
                put(middle, float(row), f"{part[row]:.0f}", color=ink)
            start += part
        axes.set(xlim=(0, 100), xlabel=f"{label} (%)", yticks=rows, yticklabels=list(names))
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.spines[["left", "bottom"]].set_visible(False)
        type_legend(axes, types)
        add_title(figure, title)
        add_note(figure, note)
    return figure


def _fit(axes: Axes, values: Floats, start: float) -> None:
    """Bars would always pull 0 into view; show the range that the data and intervals span.

    Where nothing lies on one side of the start of the bars, nothing of that side is shown.
    """
    finite = values[np.isfinite(values)]
    low, high = float(finite.min()), float(finite.max())
    margin = 0.08 * (high - low) or 1e-3
    axes.set_ylim(low - margin * (low < start), high + margin * (high > start or low == start))


def _spans_zero(values: Floats) -> bool:
    return bool(np.nanmin(values) < 0 < np.nanmax(values))


def _short(names: Sequence[str]) -> bool:
    return max(map(len, names), default=0) <= 3


def _name_levels(figure: Figure, axes: Axes, levels: Mapping[str, float]) -> None:
    """The names and values of lines, to the right of them; close ones are moved apart."""
    if not levels:
        return
    low, high = axes.get_ylim()
    order = sorted(levels, key=lambda name: levels[name])
    # In shares of the height of the axes: where each line is, and how much room a name needs.
    wanted = np.array([(levels[name] - low) / (high - low) for name in order])
    lines = max(name.count("\n") for name in order) + 2
    points = 72 * float(figure.get_size_inches()[1]) * _AXES_SHARE
    room = 1.3 * lines * type_size(8) / points
    place = wanted.copy()
    for i in range(1, place.size):
        place[i] = max(place[i], place[i - 1] + room)
    place -= (place - wanted).mean()
    for name, at in zip(order, place, strict=True):
        axes.annotate(
            f" {name}\n {levels[name]:.3g}", (1, float(at)), xycoords="axes fraction",
            color=ACCENT, va="center", fontsize=type_size(8), annotation_clip=False,
        )  # fmt: skip
