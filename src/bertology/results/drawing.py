"""A figure of a result, as data: its name, what it shows in words, and how it is drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bertology.errors import ParameterError
from bertology.results.letters import make_readable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bertology.results.points import PointColumns

WIDTHS = {"column": 3.3, "page": 6.9}
"""Inches: one of two columns of a paper, and its whole page."""


_MARGIN = 0.08  # inches, above a figure
_ROUNDS = 6


@dataclass(frozen=True)
class Canvas:
    """Where the next figure is drawn, and under which title."""

    axes: Axes | None = None
    width: float | None = None  # inches; None: as wide as the kind of figure likes
    title: str | None = None  # None: its own; empty: none


# Seen only by what is drawn inside `Drawing.on`, as matplotlib's own settings are inside a context:
# a figure may be drawn by a study, a plugin or a paper, none of which must pass this on.
_CANVAS: ContextVar[Canvas] = ContextVar("canvas", default=Canvas())  # noqa: B039 - frozen


def canvas() -> Canvas:
    """What the figure that is being drawn was asked to be drawn on."""
    return _CANVAS.get()


@contextmanager
def _drawing_on(given: Canvas) -> Iterator[None]:
    token = _CANVAS.set(given)
    try:
        yield
    finally:
        _CANVAS.reset(token)


@dataclass(frozen=True)
class Drawing:
    """Nothing is drawn until `draw` is called."""

    name: str
    """Lower case with dashes, unique in its result: `heads`."""
    draw: Callable[[], Figure]
    caption: str
    """For a newcomer: what the axes, units and colours are, and what to look for."""
    shows: tuple[str, ...] = ()
    """The measures of which it shows nothing but the values: a page that has them need not."""
    points: PointColumns | None = None
    """Where its points come from: a page lets readers walk over them, and choose the plane."""
    caption_of_any: str = ""
    """The caption where readers choose the plane: it names none of them."""

    def on(self, given: Canvas) -> Figure:
        """Draw it into given axes, at a given width or under another title."""
        with _drawing_on(given):
            figure = self.draw()
        if given.axes is not None and figure is not given.axes.get_figure(root=True):
            must = f"be left out for the figure {self.name!r}, which makes its own axes"
            raise ParameterError("ax", "plot", must, type(given.axes).__name__)
        make_readable(figure, note=given.axes is None)
        if given.width is not None:
            _close_gaps(figure)
        return figure


def _close_gaps(figure: Figure) -> None:
    """Take away height that nothing uses, as where squares are drawn into a narrow figure."""
    for _ in range(_ROUNDS):  # what is taken away above leaves less below, and so on
        figure.draw_without_rendering()
        width, height = figure.get_size_inches()
        gap = height - figure.get_tightbbox().y1 - _MARGIN
        if gap < _MARGIN:
            return
        figure.set_size_inches(width, height - gap)
