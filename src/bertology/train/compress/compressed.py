"""A compressed model beside its original: what was done, what it saves and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertology.stats.intervals import Estimate
from bertology.train.records import TrainingRecord


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
        low, high = f"{loss.low:.1f}", f"{loss.high:.1f}"
        if sure and "0.0" in (low, high.lstrip("-")):  # by so little that it would read as 0
            low, high = ("above 0", high) if loss.low > 0 else (low, "below 0")
        if self.measured["flips"].get("changed") == 0:
            sure = "no answer changed"
        return f"95 % interval {low} to {high}; {sure or 'it may be by chance'}"

    @property
    def _size(self) -> str:
        """How large it is, in words that also fit a model that grew."""
        before, after = (f"{size / 1e6:,.1f} MB" for size in self.measured["bytes_on_disk"])
        if self.times_smaller >= 1.05:
            told = f"is {self.times_smaller:.1f} times as small on the disk"
        else:
            told = "is no smaller on the disk"
        old, new = (f"{number:,}" for number in self.measured["parameters"])
        parameters = f"{new} parameters (" + ("as before)" if new == old else f"before {old})")
        return f"{told} ({after}, before {before}), has {parameters}"

    @property
    def sentence(self) -> str:
        """The answer in a few sentences."""
        loss = self.loss
        change = "loss" if loss.value >= 0 else "gain"
        knows = "" if self.measured["knows"] else (
            " It is not surely better than a constant answer."
        )  # fmt: skip
        return (
            f"The model {self._size}, and reads {self.times_as_fast(1):.2f} times as many texts a "
            "second one by one, "
            f"{self.times_as_fast(32):.2f} times in batches of 32. On {loss.n:,} held-out "
            f"examples {self.metric} is {self.after.value:.3f}, that of the original "
            f"{self.before.value:.3f}: a {change} of {abs(loss.value):.1f} points "
            f"({self.certainty}).{knows}"
        )

    def __repr__(self) -> str:
        return f"Compressed({str(self.folder)!r}, {', '.join(self.methods)})"

    def __str__(self) -> str:
        return f"{self.sentence}\nModel: {self.folder}"
