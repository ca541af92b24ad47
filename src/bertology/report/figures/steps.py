"""A measure over the steps of a training run: one value at each, or one for each layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from bertology.errors import ParameterError
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
from bertology.report.look import ACCENT, GREY, POSITIVE, look, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
