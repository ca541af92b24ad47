"""A figure of a result, as data: its name, what it shows in words, and how it is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Drawing"]


@dataclass(frozen=True)
class Drawing:
    """Nothing is drawn until `draw` is called."""

    name: str
    """Lower case with dashes, unique in its result: `heads`."""
    draw: Callable[[], Figure]
    caption: str
    """For a newcomer: what the axes, units and colours are, and what to look for."""
