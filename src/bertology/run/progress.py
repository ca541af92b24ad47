"""How far a run is and when it will be done, on standard error."""

from __future__ import annotations

import sys
from typing import Protocol

__all__ = ["Bar", "Progress", "Silence", "choose_progress"]


class Progress(Protocol):
    """Hears how many steps there are and how many are done."""

    def start(self, title: str, total: int) -> None:
        """Work begins: `total` steps of it."""

    def advance(self, steps: int) -> None:
        """`steps` more are done; fewer than none when a worker died and its job begins again."""

    def stop(self) -> None:
        """Work has ended, well or not."""


class Silence:
    """Says nothing."""

    def start(self, title: str, total: int) -> None:
        """Say nothing."""

    def advance(self, steps: int) -> None:
        """Say nothing."""

    def stop(self) -> None:
        """Say nothing."""


class Bar:
    """A bar with the share done and the time left."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as RichProgress

        self._bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("", total=None)

    def start(self, title: str, total: int) -> None:
        """Show the bar."""
        self._bar.reset(self._task, total=total, description=title)
        self._bar.start()

    def advance(self, steps: int) -> None:
        """Move it."""
        self._bar.advance(self._task, steps)

    def stop(self) -> None:
        """Take it away."""
        self._bar.stop()


def choose_progress(wish: bool | Progress | None) -> Progress:
    """A bar where somebody is watching (`None`), always (`True`), never (`False`), or yours."""
    if wish is None:
        wish = sys.stderr is not None and sys.stderr.isatty()
    if isinstance(wish, bool):
        return Bar() if wish else Silence()
    return wish
