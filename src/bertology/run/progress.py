"""The progress bar of a run, on standard error."""

from __future__ import annotations

import sys
from typing import Protocol

__all__ = ["NoProgress", "Progress", "ProgressBar", "choose_progress"]


class Progress(Protocol):
    """Is told how many steps there are and how many are done."""

    def start(self, title: str, total: int) -> None:
        """The work starts; it has `total` steps."""

    def advance(self, steps: int) -> None:
        """`steps` more are done; negative if a worker died and its job starts again."""

    def stop(self) -> None:
        """The work has ended or failed."""


class NoProgress:
    """Shows nothing."""

    def start(self, title: str, total: int) -> None:
        """Do nothing."""

    def advance(self, steps: int) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""


class ProgressBar:
    """A bar with the number of steps done and the time left."""

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
        """Move the bar."""
        self._bar.advance(self._task, steps)

    def stop(self) -> None:
        """Remove the bar."""
        self._bar.stop()


def choose_progress(shown: bool | Progress | None) -> Progress:
    """A bar on a terminal only (`None`), always (`True`), never (`False`), or the given object."""
    if shown is None:
        shown = sys.stderr is not None and sys.stderr.isatty()
    if isinstance(shown, bool):
        return ProgressBar() if shown else NoProgress()
    return shown
