"""Dots with their intervals, for things that are named: several measures beside each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertology.arrays import Floats
from bertology.errors import ParameterError
from bertology.report.figures.pieces import add_note, add_title, checked, times_axis, with_bounds
from bertology.report.look import ACCENT, GREY, PAPER, POSITIVE, look, new_figure, new_panels
from bertology.results.drawing import canvas

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LABEL = 36  # characters of a label in one line: more would leave the panel
_NARROWEST = 14  # characters of a label that a panel has room for at least
_CHARACTERS = 18  # in an inch
_ROOM = 0.06  # of what a panel shows, between that and the arrow of an interval that is cut


@dataclass(frozen=True)
class Dots:
    """One panel of `interval_dots`: what is measured, and a value with bounds for each name."""

    label: str
    values: ArrayLike
    low: ArrayLike | None = None
    high: ArrayLike | None = None
    level: float | None = field(
        default=None, kw_only=True
    )  # a value to compare with, such as chance: a dashed line
    bars: ArrayLike | None = field(default=None, kw_only=True)
    hollow: ArrayLike | None = field(default=None, kw_only=True)
    """Values without intervals to compare each with, as grey bars and hollow diamonds; the note
    says what they are."""
    within: tuple[float, float] | None = field(default=None, kw_only=True)
    """The panel shows no more than this: what goes beyond, or has no end, ends in an arrow."""
    ratios: bool = field(default=False, kw_only=True)
    """Whether values are how many times as much something is: the axis is logarithmic."""

    @classmethod
    def of_columns(
        cls,
        label: str,
        rows: pd.DataFrame,
        column: str,
        *,
        scale: float = 100.0,
        level: float | None = None,
        bars: str | None = None,
        hollow: str | None = None,
        within: tuple[float, float] | None = None,
    ) -> Dots:
        """Shares in per cent (or by another `scale`), from a column and those of its bounds.

        `bars` and `hollow` are columns, too.
        """
        bar, diamond = (
            None if name is None else scale * rows[name].to_numpy(float) for name in (bars, hollow)
        )
        sides = with_bounds(rows, column, scale)
        return cls(label, *sides, level=level, bars=bar, hollow=diamond, within=within)

    def sides(self, of: str) -> list[Floats]:
        """Values and bounds, checked; bounds are NaN where there are none."""
        none = np.full(np.size(self.values), np.nan)
        given = (("values", self.values), ("low", self.low), ("high", self.high))
        return [checked(none if v is None else v, n, of, dimensions=1) for n, v in given]


def interval_dots(
    panels: Sequence[Dots],
    names: Sequence[str],
    *,
    title: str,
    reference: str | None = None,
    same_scale: bool = False,
    note: str = "",
) -> Figure:
    """Several measures of the same things beside each other: a dot and its interval for each.

    The value of `reference` runs through its panel as a line. Panels of one unit that are to be
    compared have the `same_scale`. A dot without an interval is hollow; what was not measured has
    none. An interval without an end, or one that leaves the panel, ends in an arrow.
    """
    if not panels:
        raise ParameterError("panels", "interval_dots", "hold at least one", 0)
    place = np.arange(len(names))
    columns, room = _grid(panels, names)
    rows = -(-len(panels) // columns)
    with look():
        size = max(4.8, 2.0 + 1.9 * len(panels)), max(2.2, 0.24 * len(names) + 1.5)
        if rows > 1:  # as wide as was asked for, so that rows of names keep their height
            size = canvas().width or size[0], rows * (0.19 * len(names) + 0.75) + 0.6
        if len(panels) == 1:
            figure, axes = new_figure(*size)
            spots = [axes]
        else:
            figure, spots = new_panels(*size, rows, columns, share_rows=True)
        for spare in spots[len(panels) :]:
            spare.remove()
        for i, one in enumerate(spots[: len(panels)]):
            _panel(
                one, panels[i], place, None if reference is None else list(names).index(reference)
            )
            one.set_xlabel(fill(panels[i].label, room, break_long_words=False))
            one.tick_params(axis="y", length=0, labelleft=i % columns == 0)
        if same_scale:
            ends = [panel.get_xlim() for panel in spots[: len(panels)]]
            for panel in spots[: len(panels)]:
                panel.set_xlim(min(low for low, _ in ends), max(high for _, high in ends))
        one.set_yticks(place, names)
        one.set_ylim(len(names) - 0.4, -0.6)
        add_title(figure, title)
        line = "" if reference is None else f"The line is {reference}. "
        add_note(figure, f"{line}{note}")
    return figure


def _grid(panels: Sequence[Dots], names: Sequence[str]) -> tuple[int, int]:
    """How many panels stand in a row, and how many characters of a label in a line.

    As many as have room for their labels beside the names, where a width is asked for.
    """
    asked = canvas().width
    if asked is None:
        return len(panels), _LABEL if len(panels) == 1 else 22
    words = [word for panel in panels for word in panel.label.split()]
    least = max([_NARROWEST, *map(len, words)])
    free = asked * _CHARACTERS - max(map(len, names))
    columns = min(len(panels), max(1, int(free // (least + 2))))
    return columns, max(least, min(22, int(free / columns) - 2))


def _panel(axes: Axes, dots: Dots, place: NDArray[np.integer], reference: int | None) -> None:
    value, low, high = dots.sides("interval_dots")
    if not value.size == low.size == high.size == place.size:
        raise ParameterError("panels", "interval_dots", f"have {place.size} entries", value.size)
    known = ~(np.isnan(low) | np.isnan(high))
    if reference is not None and np.isfinite(value[reference]):
        axes.axvline(float(value[reference]), color=ACCENT, linewidth=1.2, zorder=1)
    if dots.level is not None:
        axes.axvline(dots.level, color=GREY, linewidth=1.0, linestyle="--", zorder=1)
    axes.grid(axis="y")
    if dots.bars is not None:
        beside = np.asarray(dots.bars, float)
        axes.plot(beside, place, "|", color=GREY, markersize=8.0, mew=1.8, zorder=2)
    if dots.hollow is not None:
        beside = np.asarray(dots.hollow, float)
        axes.plot(beside, place, "D", mec=ACCENT, mfc="none", markersize=4.5, zorder=2)
    first, last = _view(dots, value, low, high)
    ends = np.clip(low[known], first, last), np.clip(high[known], first, last)
    axes.hlines(place[known], *ends, color=POSITIVE, linewidth=1.4)
    for beyond, end, arrow in ((low < first, first, "<"), (high > last, last, ">")):
        cut = known & beyond
        axes.plot(np.full(cut.sum(), end), place[cut], arrow, color=POSITIVE, markersize=4.5)
    inside = ~((value < first) | (value > last))
    for those, face in ((known & inside, POSITIVE), (~known & inside, PAPER)):
        axes.plot(value[those], place[those], "o", mec=POSITIVE, mfc=face, markersize=4.5)
    axes.spines["left"].set_visible(False)
    if dots.ratios:
        times_axis(axes)
    else:
        axes.locator_params(axis="x", nbins=4)


def _view(dots: Dots, value: Floats, low: Floats, high: Floats) -> tuple[float, float]:
    """From where to where dots and intervals are shown: where none is cut, without limits.

    Where one goes beyond what was asked for, or has no end, the others tell how wide the panel is.
    """
    least, most = dots.within or (-math.inf, math.inf)
    every = np.concatenate([value, low, high, [math.nan if dots.level is None else dots.level]])
    seen = every[np.isfinite(every) & (every >= least) & (every <= most)]
    if not seen.size:
        return -math.inf, math.inf
    first, last = float(seen.min()), float(seen.max())
    room = _ROOM * ((last - first) or max(abs(first), 1.0))
    below, above = (every < least) | np.isneginf(every), (every > most) | np.isposinf(every)
    return (
        first - room if below.any() else -math.inf, last + room if above.any() else math.inf
    )  # fmt: skip
