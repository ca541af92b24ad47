"""One measure of several models: over steps of training, over sizes, over what was pruned."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from bertology.errors import ParameterError
from bertology.report.figures.dots import Dots
from bertology.report.figures.pieces import (
    CONVENTION,
    add_note,
    add_title,
    cells,
    checked,
    colour_bar,
    colours,
    outline,
    scale,
    ticks,
)
from bertology.report.look import ACCENT, GREY, PAPER, POSITIVE, look, new_figure, new_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# A measure over the steps of a training run: one value at each, or one for each layer.


def step_curve(
    steps: ArrayLike,
    values: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    *,
    title: str,
    label: str,
    between: tuple[float, float] | None = None,
    note: str = "",
) -> Figure:
    """Values with their band over steps on a logarithmic scale, on which step 0 has a place.

    The dashed line is half of the way from the first to the last value; `between` is shaded.
    """
    step = checked(steps, "steps", "step_curve", dimensions=1)
    value = checked(values, "values", "step_curve", dimensions=1)
    least, most = (
        checked(b, n, "step_curve", dimensions=1) for b, n in ((low, "low"), (high, "high"))
    )
    if step.size < 2 or value.shape != step.shape:
        must = f"have {step.size} entries, two or more"
        raise ParameterError("values", "step_curve", must, value.size)
    with look():
        figure, axes = new_figure(5.6, 3.4)
        axes.grid(axis="y")
        if between is not None:
            axes.axvspan(*between, color=ACCENT, alpha=0.12, linewidth=0)
        axes.fill_between(step, least, most, color=POSITIVE, alpha=0.2, linewidth=0)
        axes.plot(step, value, "o-", color=POSITIVE, linewidth=1.6, markersize=4)
        axes.axhline((value[0] + value[-1]) / 2, color=GREY, linewidth=1.0, linestyle="--")
        # Linear up to the first step after 0, so that 0 can be shown.
        axes.set_xscale("symlog", linthresh=float(step[step > 0].min()), linscale=0.5)
        axes.set_xticks(step, [f"{int(s):,}" for s in step], rotation=40, ha="right")
        axes.minorticks_off()
        axes.set(xlabel="training step", ylabel=label)
        axes.margins(x=0.03)
        add_title(figure, title)
        add_note(figure, note)
    return figure


def step_layers(steps: ArrayLike, values: ArrayLike, *, title: str, label: str) -> Figure:
    """One row for each step, the first at the top, and one cell for each layer.

    The largest of each step has a frame.
    """
    step = checked(steps, "steps", "step_layers", dimensions=1)
    grid = checked(values, "values", "step_layers", dimensions=2)
    if grid.shape[0] != step.size:
        raise ParameterError("values", "step_layers", f"have {step.size} rows", grid.shape)
    largest = grid == np.nanmax(grid, axis=1, keepdims=True)
    with look():
        figure, axes = new_figure(max(5.4, 0.42 * grid.shape[1] + 2.6), 0.36 * step.size + 1.7)
        mesh = cells(axes, grid, colours(None), scale(grid, None))
        outline(axes, largest)
        axes.set_yticks(range(step.size), [f"{int(s):,}" for s in step])
        axes.set(xlabel="layer", ylabel="training step")
        ticks(axes.xaxis, grid.shape[1])
        colour_bar(figure, [axes], mesh, label)
        add_title(figure, title)
        add_note(figure, f"Framed: the largest of each step. {CONVENTION}")
    return figure


# Values of models over their numbers of parameters, on a logarithmic scale.

_STEPS = 500  # of a line: its end is drawn to a pixel


def size_lines(
    sizes: ArrayLike,
    names: Sequence[str],
    panels: Sequence[Dots],
    *,
    aside: ArrayLike,
    title: str,
    note: str,
) -> Figure:
    """One panel for each measure: a dot with its interval for each model, and the straight line.

    Values are per cent: a line ends where it would leave 0 to 100, which no model can.
    A dot without an interval is hollow. Models that stand `aside` are grey, and no part of lines.
    """
    size = checked(sizes, "sizes", "size_lines", dimensions=1)
    if len(names) != size.size or not (size > 0).all():
        raise ParameterError("sizes", "size_lines", f"be {len(names)} positive numbers", sizes)
    out = np.asarray(aside, dtype=bool)
    with look():
        figure, spots = new_panels(max(4.8, 2.9 * len(panels)), 3.6, 1, len(panels))
        for axes, panel in zip(spots, panels, strict=True):
            value, low, high = panel.sides("size_lines")
            known = np.isfinite(low) & np.isfinite(high)
            axes.grid(axis="y")
            if panel.level is not None:
                axes.axhline(panel.level, color=GREY, linewidth=1.0, linestyle="--", zorder=1)
            if len(set(size[~out].tolist())) > 1:
                place = np.log2(size[~out])
                along = np.linspace(place.min(), place.max(), _STEPS)
                line = np.polyval(np.polyfit(place, value[~out], 1), along)
                line[(line < 0) | (line > 100)] = np.nan
                axes.plot(2**along, line, color=POSITIVE, linewidth=1.0, alpha=0.6)
            for here, colour in ((~out, POSITIVE), (out, GREY)):
                sure, bare = here & known, here & ~known
                axes.vlines(size[sure], low[sure], high[sure], color=colour, linewidth=1.4)
                axes.plot(size[sure], value[sure], "o", color=colour, markersize=4.5)
                axes.plot(size[bare], value[bare], "o", mec=colour, mfc=PAPER, markersize=4.5)
            axes.set_xscale("log", base=2)
            axes.set_xticks(size, names, rotation=60, ha="right", fontsize="small")
            axes.minorticks_off()
            axes.margins(x=0.08)
            axes.set(xlabel="parameters", ylabel=fill(panel.label, 18))
        add_title(figure, title)
        add_note(figure, note)
    return figure


# The score of a model of which less and less is left.


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
