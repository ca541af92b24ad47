"""Where the files of the pages lie: in this package, or with the atlas, which shares some."""

from __future__ import annotations

from pathlib import Path

from bertology.report import atlas

STATIC = Path(__file__).parent / "static"
SHARED = ("points.css", "points.js")
"""What the atlas has, too."""
_ATLAS = Path(atlas.__file__).parent / "static"


def static_file(name: str) -> Path:
    """The file of a name such as `look.css` or `explore/grid.js`."""
    return (_ATLAS if name in SHARED else STATIC) / name
