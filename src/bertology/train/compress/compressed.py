"""A compressed model beside its original: what was done, what it saves and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertology.stats.intervals import Estimate
from bertology.train.records import TrainingRecord

__all__ = ["Compressed"]


@dataclass(frozen=True, repr=False)
class Compressed:
    """What its record says; print it for the answer in a few sentences."""

    folder: Path
    record: TrainingRecord

    @property
    def measured(self) -> Mapping[str, Any]:
        """All numbers, of the original first and then of the compressed model."""
        found: Mapping[str, Any] = self.record["compression"]
        return found

    @property
    def methods(self) -> tuple[str, ...]:
        """What was done, as it is written."""
        return tuple(step["method"] for step in self.measured["steps"])

    @property
    def metric(self) -> str:
        """The task's main metric."""
        return str(self.measured["metric"])

    @property
    def before(self) -> Estimate:
        """The score of the original on the held-out data."""
        return Estimate(**self.measured["before"])

    @property
    def after(self) -> Estimate:
        """The score of the compressed model on the same examples."""
        return Estimate(**self.measured["after"])

    @property
    def loss(self) -> Estimate:
        """Points that were lost, paired over the same examples; below 0 is a gain."""
        return Estimate(**self.measured["loss_in_points"])

    @property
    def times_smaller(self) -> float:
        """How many times as many bytes the original takes on the disk."""
        before, after = self.measured["bytes_on_disk"]
        return float(before / after)

    def times_as_fast(self, size: int = 32, device: str | None = None) -> float:
        """How many times as many texts a second in batches of this size, 1 or 32."""
        speeds = self.measured["texts_per_second"]
        before, after = speeds[device or next(iter(speeds))][str(size)]
        return float(after / before)

    @property
    def certainty(self) -> str:
        """The interval of the loss, and what it says."""
        loss = self.loss
        sure = "surely a loss" if loss.low > 0 else "surely a gain" if loss.high < 0 else None
        return f"95 % interval {loss.low:.1f} to {loss.high:.1f}; {sure or 'it may be by chance'}"

    @property
    def sentence(self) -> str:
        """The answer in a few sentences."""
        loss, parameters = self.loss, self.measured["parameters"]
        sizes = [f"{size / 1e6:,.1f} MB" for size in self.measured["bytes_on_disk"]]
        change = "loss" if loss.value >= 0 else "gain"
        knows = "" if self.measured["knows"] else (
            " It is not surely better than a constant answer."
        )  # fmt: skip
        return (
            f"The model is {self.times_smaller:.1f} times as small on the disk ({sizes[1]}, before "
            f"{sizes[0]}), has {parameters[1]:,} parameters (before {parameters[0]:,}), and reads "
            f"{self.times_as_fast(1):.2f} times as many texts a second one by one, "
            f"{self.times_as_fast(32):.2f} times in batches of 32. On {loss.n:,} held-out "
            f"examples {self.metric} is {self.after.value:.3f}, that of the original "
            f"{self.before.value:.3f}: a {change} of {abs(loss.value):.1f} points "
            f"({self.certainty}).{knows}"
        )

    def __repr__(self) -> str:
        return f"Compressed({str(self.folder)!r}, {', '.join(self.methods)})"

    def __str__(self) -> str:
        return f"{self.sentence}\nModel: {self.folder}"
