"""Values of models over their numbers of parameters, on a logarithmic scale."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from bertology.errors import ParameterError
from bertology.report.figures.dots import Dots
from bertology.report.figures.pieces import add_note, add_title, checked
from bertology.report.look import GREY, PAPER, POSITIVE, look, new_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
            given = (("values", panel.values), ("low", panel.low), ("high", panel.high))
            value, low, high = (checked(v, n, "size_lines", dimensions=1) for n, v in given)
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
