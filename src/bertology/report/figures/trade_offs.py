"""What things cost against what they give: numbered dots, and the line of those nothing beats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertology.errors import ParameterError
from bertology.report.figures.pieces import add_note, add_title, checked
from bertology.report.look import ACCENT, GREEN, GREY, PAPER, POSITIVE, look, new_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Costs", "trade_offs", "unbeaten"]

_COLOURS = (POSITIVE, GREY, GREEN, ACCENT)
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Costs:
    """One panel: what is spent by each thing, on a logarithmic scale."""

    label: str
    values: ArrayLike


def unbeaten(cost: ArrayLike, gain: ArrayLike) -> NDArray[np.bool_]:
    """Those for which no other costs at most as much and gives more, or less and as much."""
    x, y = np.asarray(cost, dtype=np.float64), np.asarray(gain, dtype=np.float64)
    better = (x[None] <= x[:, None]) & (y[None] >= y[:, None])
    better &= (x[None] < x[:, None]) | (y[None] > y[:, None])
    known = np.isfinite(x) & np.isfinite(y)
    return np.asarray(known & ~better.any(axis=1))


def trade_offs(
    panels: Sequence[Costs],
    gain: tuple[ArrayLike, ArrayLike, ArrayLike],
    names: Sequence[str],
    kinds: Sequence[str],
    *,
    ylabel: str,
    marked: int,
    title: str,
    note: str = "",
) -> Figure:
    """Every thing is a numbered dot with its interval, in a colour by its kind.

    `gain` are values with their lower and upper bounds. The line goes through those that no other
    beats, and a dashed one is at the height of the one that is `marked`.
    """
    value, low, high = (checked(side, "gain", "trade_offs", dimensions=1) for side in gain)
    if not panels or not value.size == len(names) == len(kinds) or not 0 <= marked < value.size:
        must = f"have {value.size} names and kinds, and a panel"
        raise ParameterError("names", "trade_offs", must, (len(names), len(kinds), len(panels)))
    order = list(dict.fromkeys(kinds))
    with look():
        figure, spots = new_panels(max(5.6, 3.4 * len(panels)), 4.2, 1, len(panels))
        for axes, panel in zip(spots, panels, strict=True):
            cost = checked(panel.values, "values", "trade_offs", dimensions=1)
            axes.grid()
            axes.axhline(float(value[marked]), color=ACCENT, linewidth=1.0, linestyle="--")
            _line(axes, cost, value)
            for i in np.flatnonzero(np.isfinite(cost) & np.isfinite(value)).tolist():
                colour = _COLOURS[order.index(kinds[i]) % len(_COLOURS)]
                if np.isfinite(low[i]) and np.isfinite(high[i]):
                    axes.vlines(cost[i], low[i], high[i], color=colour, linewidth=0.8, alpha=0.5)
                axes.plot(cost[i], value[i], "o", mec=colour, mfc=PAPER, markersize=10.0)
                axes.annotate(
                    str(i + 1), (cost[i], value[i]), ha="center", va="center", color=colour,
                    fontsize=6.0,
                )  # fmt: skip
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_formatter("{x:g}")
            axes.minorticks_off()
            axes.margins(x=0.12)
            axes.set(xlabel=fill(panel.label, 40), ylabel=ylabel)
        _legend(figure, dict(zip(kinds, (order.index(k) for k in kinds), strict=True)))
        add_title(figure, title)
        told = ", ".join(f"{i + 1} {name}" for i, name in enumerate(names))
        add_note(figure, f"{told}. {note}".strip())
    return figure


def _line(axes: Axes, cost: Floats, value: Floats) -> None:
    best = np.flatnonzero(unbeaten(cost, value))
    best = best[np.argsort(cost[best])]
    axes.plot(cost[best], value[best], color=GREY, linewidth=0.9, alpha=0.7, zorder=1)


def _legend(figure: Figure, kinds: Mapping[str, int]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], marker="o", linestyle="", mec=_COLOURS[at % len(_COLOURS)], mfc=PAPER,
               label=name)
        for name, at in kinds.items()
    ]  # fmt: skip
    figure.axes[0].legend(handles=handles, loc="best", fontsize="x-small", frameon=False)
