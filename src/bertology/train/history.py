"""How a fine-tuning went: its steps, its epochs and their scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertology.train.records import EpochRecord


@dataclass(frozen=True)
class Epoch:
    """One pass over the training data, and the scores after it."""

    number: int  # from 1
    loss: float  # mean over the epoch's examples
    scores: dict[str, float]  # on the validation data, the main metric first
    seconds: float

    def as_record(self) -> EpochRecord:
        """Plain values, as they are saved with the model."""
        return {
            "number": self.number,
            "loss": self.loss,
            "scores": dict(self.scores),
            "seconds": self.seconds,
        }


@dataclass(frozen=True)
class Step:
    """One update of the weights, as it is reported to the progress callback."""

    done: int
    total: int
    loss: float
    epoch: Epoch | None = None  # set with the last step of an epoch


@dataclass(frozen=True)
class History:
    """The epochs of one fine-tuning run, and which of them was kept."""

    epochs: tuple[Epoch, ...]
    truncated: int = 0  # training texts that were cut to fit
    truncated_validation: int = 0
    best: int | None = None  # the epoch that was kept, where it was chosen; None for the last
    trained: int = 0  # how many weights were trained
    before: float = 0.0  # seconds of stages before the first epoch
    epochs_before: int = 0  # of those stages

    @property
    def kept(self) -> Epoch:
        """The epoch whose weights the model has."""
        return self.epochs[-1 if self.best is None else self.best - 1]

    @property
    def seconds(self) -> float:
        """How long it took, stages before it included."""
        return self.before + sum(epoch.seconds for epoch in self.epochs)

    @property
    def scores(self) -> dict[str, float]:
        """The validation scores of the model as it is now."""
        return self.kept.scores


OnStep = Callable[[Step], None]


@dataclass(frozen=True)
class Watch:
    """Looks during a training: what the model says of the validation data at shares of its steps.

    The last share is 1, the end. Of shares that fall on the same step, it is looked at once.
    """

    shares: tuple[float, ...]
    look: Callable[[int, NDArray[np.float64]], None]
    """Is given the step, from 1, and the answers."""

    def steps(self, total: int) -> tuple[int, ...]:
        """The step of each share."""
        return tuple(max(1, round(share * total)) for share in self.shares)

    def wants(self, done: int, total: int) -> bool:
        """Whether it looks after this step."""
        return done in self.steps(total)
