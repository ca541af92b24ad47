"""The score of a model of which less and less is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from bertology.report.figures.pieces import add_note, add_title, checked
from bertology.report.look import ACCENT, GREY, POSITIVE, look, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def pruning_curve(
    runs: ArrayLike,
    means: ArrayLike,
    *,
    title: str,
    xlabel: str,
    ylabel: str,
    constant: float,
) -> Figure:
    """What is left falls to the right, scores go upwards.

    `runs` are rows of run, share left and score; `means` of share left, mean, low and high;
    `constant` is what a constant answer scores. All are fractions and drawn times 100.
    """
    drawn = checked(runs, "runs", "pruning_curve", dimensions=2)
    mean = checked(means, "means", "pruning_curve", dimensions=2)
    with look():
        figure, axes = new_figure(5.6, 3.6)
        axes.grid(axis="y")
        for run in np.unique(drawn[:, 0]):
            _, left, score = drawn[drawn[:, 0] == run].T
            axes.plot(100 * left, 100 * score, "-", color=GREY, linewidth=0.8, alpha=0.7)
        if len(mean):
            left, value, low, high = 100 * mean.T
            axes.vlines(left, low, high, color=POSITIVE, linewidth=2.0, zorder=3)
            axes.plot(left, value, "o-", color=POSITIVE, linewidth=1.6, markersize=4, zorder=3)
        axes.axhline(100 * constant, color=ACCENT, linewidth=1.2, linestyle="--", zorder=1.5)
        axes.set_xlim(102, min(100 * float(drawn[:, 1].min()) - 2, 90.0))
        axes.set(xlabel=xlabel, ylabel=ylabel)
        add_title(figure, title)
        add_note(figure, "Thin: seeds. Dots: means over seeds. Dashed: a constant answer.")
    return figure
