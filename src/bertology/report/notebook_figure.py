"""A figure that the last line of a notebook's cell shows.

Notebooks show matplotlib's own figures only once pyplot was imported, and else print their size.
"""

from __future__ import annotations

from matplotlib.figure import Figure

from bertology.results.rendering import render


class NotebookFigure(Figure):
    """A figure of matplotlib that has a picture of itself."""

    def _repr_png_(self) -> bytes:
        return render(self, "png", dpi=120)
