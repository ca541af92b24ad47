"""A drawn figure as the bytes of a file; equal figures give equal bytes."""

from __future__ import annotations

import io
from contextlib import suppress
from typing import TYPE_CHECKING

from bertology.results.letters import make_readable

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.typing import RcKeyType

# Dates and version numbers in a file's metadata would make equal figures differ.
_METADATA: dict[str, dict[str, str | None]] = {
    "svg": {"Date": None, "Creator": "bertology"},
    "pdf": {"CreationDate": None, "Creator": "bertology", "Producer": None},
    "png": {"Software": "bertology"},
}
FIGURE_FORMATS = tuple(_METADATA)

_SETTINGS: dict[RcKeyType, str | int] = {
    "svg.fonttype": "none",  # text stays text, not paths: it can be searched and restyled
    "svg.hashsalt": "bertology",  # the same ids every time
    "pdf.fonttype": 42,  # fonts embedded whole, as journals ask
}


def render(figure: Figure, format: str = "svg", *, dpi: int = 200) -> bytes:
    """`figure` as an SVG, PDF or PNG file; `dpi` matters for PNG only."""
    import matplotlib as mpl

    make_readable(figure)
    buffer = io.BytesIO()
    with mpl.rc_context(_SETTINGS):
        _lay_out_only_first(figure)
        figure.savefig(buffer, format=format, dpi=dpi, metadata=_METADATA[format])
    return buffer.getvalue()


def _lay_out_only_first(figure: Figure) -> None:
    """Let the first drawing of a figure with a layout place its parts and do nothing else.

    matplotlib draws such a figure twice: to nowhere, for the layout that it does before, then to
    the file. The file is the same without the first, which takes a quarter of the time.
    """
    engine = figure.get_layout_engine()
    if engine is None or not figure.axes:
        return

    def lay_out(renderer: object) -> None:
        del figure.draw  # from here on the figure's own
        with suppress(ValueError):  # a layout that cannot be done is left out there, too
            engine.execute(figure)

    figure.draw = lay_out  # type: ignore[method-assign]
