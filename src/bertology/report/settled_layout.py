"""A layout that is done again where its last step made other ticks: their labels may be wider."""

from __future__ import annotations

from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine


class SettledLayout(ConstrainedLayoutEngine):
    """Labels have the room that the drawn ticks leave them.

    matplotlib measures ticks, then gives axes their size. Axes that are now a little higher may get
    ticks at 2.5 in place of 5, and the label beside them was cut off at the edge of the figure.
    """

    def execute(self, fig: Figure) -> None:
        """Place everything; once more, if what was measured is not what will be drawn."""
        super().execute(fig)
        shown = [axes for axes in fig.axes if axes.axison and axes.get_visible()]
        if any(_has_changed(axis) for axes in shown for axis in (axes.xaxis, axes.yaxis)):
            super().execute(fig)


def _has_changed(axis: Axis) -> bool:
    if not axis.get_visible():
        return False
    drawn = [float(place) for place in axis.get_majorticklocs()]
    measured = [float(tick.get_loc()) for tick in axis.majorTicks[: len(drawn)]]
    return measured != drawn
