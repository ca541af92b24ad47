"""A score against how much was taken away: a mean with its interval, and the draws behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertology.errors import ParameterError
from bertology.report.look import ACCENT, GREY, POSITIVE, look, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Draws", "dose_curve"]


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
    lines: dict[str, float] | None = None,
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
        for name, level in (lines or {}).items():
            axes.axhline(level, color=ACCENT, linewidth=1.2, zorder=1.5)
            axes.annotate(
                f" {name}\n {level:.3g}", (1, level), xycoords=("axes fraction", "data"),
                color=ACCENT, va="center", fontsize=8, annotation_clip=False,
            )  # fmt: skip
        axes.set(xlabel=xlabel, ylabel=ylabel)
        axes.set_xticks(place, [str(d.dose) for d in draws])
        axes.set_xlim(place.min() - 0.5, place.max() + 0.5)
        figure.suptitle(title, x=0.01, ha="left")
        if note:
            figure.supxlabel(fill(note, 100), fontsize=7.5, color=GREY, x=0.01, ha="left")
    return figure
