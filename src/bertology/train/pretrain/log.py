"""The log of a pre-training run: one line of JSON for each report."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import NotRequired, TypedDict


class LogEntry(TypedDict):
    """One line of `log.jsonl`."""

    step: int
    total: int
    tokens: int
    losses: dict[str, float]
    accuracies: dict[str, float]
    learning_rate: float
    grad_norm: float
    tokens_per_second: float
    seconds: float
    scores: NotRequired[dict[str, float]]


@dataclass(frozen=True)
class StepReport:
    """What the progress callback gets now and then: means since the last report."""

    step: int
    total: int
    tokens: int  # seen so far
    losses: dict[str, float]
    accuracies: dict[str, float]
    learning_rate: float
    grad_norm: float
    tokens_per_second: float
    seconds: float  # of training so far, without evaluation and saving
    scores: dict[str, float] | None = None  # held-out, if they were just measured

    def as_entry(self) -> LogEntry:
        """Plain values; without scores where none were measured."""
        entry: LogEntry = {
            "step": self.step,
            "total": self.total,
            "tokens": self.tokens,
            "losses": dict(self.losses),
            "accuracies": dict(self.accuracies),
            "learning_rate": self.learning_rate,
            "grad_norm": self.grad_norm,
            "tokens_per_second": self.tokens_per_second,
            "seconds": self.seconds,
        }
        if self.scores is not None:
            entry["scores"] = dict(self.scores)
        return entry


def parse_entry(line: str) -> LogEntry | None:
    """One line of the log; None for the half-written line of a run that was killed."""
    try:
        entry: LogEntry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) and "step" in entry else None
