"""Which code draws figures: a stored figure is shown again as long as it would be drawn the same.

Drawing takes a second for each figure, and a page has many. What decides a figure beside the data
is the code below and the version of matplotlib, so figures are stored with a hash of them.
"""

from __future__ import annotations

import hashlib
import inspect
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bertology.results.result import Result

_PARTS = ("data", "metrics.py", "report", "results", "studies")


def drawn_by(kind: type[Result]) -> str:
    """A hash of all that decides the figures of a kind of result, but for its data."""
    return _drawn_by(inspect.getsourcefile(kind) or "")


@cache
def _drawn_by(source: str) -> str:
    found = hashlib.sha256(version("matplotlib").encode())
    package = files("bertology")
    for part in _PARTS:
        _add(package / part, found)
    if source:  # that of a plugin is elsewhere
        found.update(Path(source).read_bytes())
    return found.hexdigest()[:16]


def _add(place: Traversable, found: hashlib._Hash) -> None:
    if place.is_dir():
        for inside in sorted(place.iterdir(), key=lambda one: str(one.name)):
            _add(inside, found)
    elif place.name.endswith(".py"):
        found.update(place.name.encode())
        found.update(place.read_bytes())
