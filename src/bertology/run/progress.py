"""How far a run is: a bar on a terminal or below a notebook's cell, elsewhere a line now and then.

Bars of terminals and lines go to standard error, so that results can be read from standard output.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from bertology.train.history import Step

_LINES = 30.0  # seconds between two lines
_REFRESH = 0.2  # seconds between two pictures of a notebook's bar


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


class ProgressLines:
    """A line now and then, for work that takes long where no bar can be drawn, as in a file."""

    def __init__(self, every: float = _LINES) -> None:
        self._every, self._title, self._total, self._done = every, "", 0, 0
        self._began = self._told = time.monotonic()

    def start(self, title: str, total: int) -> None:
        """Nothing is said of what is quick; many quick ones in a row are told of."""
        self._title, self._total, self._done = title, total, 0
        self._began = time.monotonic()

    def advance(self, steps: int) -> None:
        """Say how far it is, unless that was said a moment ago."""
        self._done += steps
        now = time.monotonic()
        if now - self._told >= self._every and sys.stderr is not None:
            self._told = now
            print(self._line(now - self._began), file=sys.stderr, flush=True)

    def stop(self) -> None:
        """Say nothing."""

    def _line(self, spent: float) -> str:
        told = f"{self._title}: {self._done:,} of {self._total:,} after {_time_text(spent)}"
        if 0 < self._done < self._total:
            left = spent / self._done * (self._total - self._done)
            told += f", about {_time_text(left)} left"
        return told


def _time_text(seconds: float) -> str:
    """As exact as it is of use: 40 s, 12 min, 3 h 20 min."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


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


class NotebookBar:
    """The same below a cell of a notebook; plain HTML, so that no extension is needed."""

    def __init__(self) -> None:
        self._title, self._total, self._done = "", 0, 0
        self._began = self._drawn = 0.0
        self._shown: _DisplayHandle | None = None

    def start(self, title: str, total: int) -> None:
        """Show the bar."""
        from IPython.display import HTML, display

        self._title, self._total, self._done = title, total, 0
        self._began = self._drawn = time.monotonic()
        self._shown = display(HTML(self._drawing()), display_id=True)

    def advance(self, steps: int) -> None:
        """Move the bar, unless that was done a moment ago."""
        self._done += steps
        if time.monotonic() - self._drawn >= _REFRESH:
            self._draw(self._drawing())

    def stop(self) -> None:
        """Remove the bar."""
        self._draw("")
        self._shown = None

    def _draw(self, text: str) -> None:
        from IPython.display import HTML

        self._drawn = time.monotonic()
        if self._shown is not None:
            self._shown.update(HTML(text))

    def _drawing(self) -> str:
        told = f"{self._done:,} of {self._total:,}"
        if self._done > 0:
            each = (time.monotonic() - self._began) / self._done
            told += f", {each * (self._total - self._done):.0f} s left"
        bar = f'<progress max="{max(self._total, 1)}" value="{max(self._done, 0)}"></progress>'
        return f"{escape(self._title)} {bar} {told}"


class _DisplayHandle(Protocol):
    """What IPython gives back for something that can be drawn again."""

    def update(self, thing: object) -> None:
        """Draw `thing` in its place."""


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    if "ipykernel" not in sys.modules:
        return False
    from IPython import get_ipython

    return getattr(get_ipython(), "kernel", None) is not None


def choose_progress(shown: bool | Progress | None) -> Progress:
    """A bar, where one can be drawn, else lines (`None`); a bar always; nothing; the given one."""
    if not isinstance(shown, bool) and shown is not None:
        return shown
    if shown is False:
        return NoProgress()
    if in_notebook():
        return NotebookBar()
    on_terminal = sys.stderr is not None and sys.stderr.isatty()
    return ProgressBar() if shown or on_terminal else ProgressLines()


def started_progress(title: str, total: int, progress: bool | Progress | None = None) -> Progress:
    """A bar or lines that have begun."""
    found = choose_progress(progress)
    found.start(title, total)
    return found


class TrainingLine:
    """The progress bar of one training, and a line for each epoch."""

    def __init__(self, name: str, epochs: int, bar: Progress, tell: Callable[[str], None]) -> None:
        self._name, self._epochs, self._done = name, epochs, 0
        self._bar, self._tell = bar, tell

    def step(self, step: Step) -> None:
        """Show one step."""
        if not self._done:
            self._bar.start(f"fine-tuning, {self._name}", step.total)
        self._bar.advance(step.done - self._done)
        self._done = step.done
        if step.epoch is not None:
            told = {"loss": step.epoch.loss} | step.epoch.scores
            found = ", ".join(f"{name} {value:.3f}" for name, value in told.items())
            self._tell(f"  {self._name}, epoch {step.epoch.number} of {self._epochs}: {found}")

    def stop(self) -> None:
        """Remove the bar."""
        self._bar.stop()
