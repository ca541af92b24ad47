"""How a fine-tuning went: its steps, its epochs and their scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bertology.train.records import EpochRecord

__all__ = ["Epoch", "History", "OnStep", "Step"]


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
