"""A drawn figure as the bytes of a file; equal figures give equal bytes."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURE_FORMATS", "render"]

# Dates and version numbers in a file's metadata would make equal figures differ.
_METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": "bertology"},
    "pdf": {"CreationDate": None, "Creator": "bertology", "Producer": None},
    "png": {"Software": "bertology"},
}
FIGURE_FORMATS = tuple(_METADATA)

_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: searchable, restylable, small
    "svg.hashsalt": "bertology",  # the same ids every time
    "pdf.fonttype": 42,  # fonts embedded whole, as journals ask
}


def render(figure: Figure, format: str = "svg", *, dpi: int = 200) -> bytes:
    """`figure` as an SVG, PDF or PNG file; `dpi` matters for PNG only."""
    import matplotlib as mpl

    buffer = io.BytesIO()
    with mpl.rc_context(_SETTINGS):
        figure.savefig(buffer, format=format, dpi=dpi, metadata=_METADATA[format])
    return buffer.getvalue()
