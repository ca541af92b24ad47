"""What is shown while a model is trained: a bar, and a line for each epoch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from bertology.run.progress import Progress

if TYPE_CHECKING:
    from bertology.train.history import Step


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
