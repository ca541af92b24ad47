"""Who is told how far it is, where a training has stages before it or takes long to prepare."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from bertology.train.history import OnStep, Step


class Line(Protocol):
    """Shows one training."""

    def step(self, step: Step) -> None: ...

    def stop(self) -> None: ...


class Count(Protocol):
    """Shows how much of some other work is done."""

    def advance(self, steps: int) -> None: ...

    def stop(self) -> None: ...


class _Nothing:
    def step(self, step: Step) -> None:
        """Show nothing."""

    def advance(self, steps: int) -> None:
        """Show nothing."""

    def stop(self) -> None:
        """Nothing was shown."""


@dataclass(frozen=True)
class StageWatch:
    """Shows trainings and other long work; as it is, it shows nothing."""

    training: Callable[[str, int], Line] = lambda name, epochs: _Nothing()
    """Is told that a training begins, with its name and epochs."""
    counting: Callable[[str, int], Count] = lambda title, total: _Nothing()
    """Is told that other work begins, and of how many steps."""

    @contextmanager
    def shown(self, name: str, epochs: int) -> Iterator[Line]:
        """A line that shows a training."""
        line = self.training(name, epochs)
        try:
            yield line
        finally:
            line.stop()

    @contextmanager
    def counted(self, title: str, total: int) -> Iterator[Count]:
        """What shows other work."""
        count = self.counting(title, total)
        try:
            yield count
        finally:
            count.stop()


def losses_only(progress: OnStep) -> OnStep:
    """Of a stage whose scores say nothing, since the task is not what it learns."""

    def step(step: Step) -> None:
        epoch = None if step.epoch is None else replace(step.epoch, scores={})
        progress(replace(step, epoch=epoch))

    return step
