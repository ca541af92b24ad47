"""What a pruned model lost, and whether that is surely as little as was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bertology.train.compress.compressed import Compressed
from bertology.train.compress.method import epochs_text
from bertology.train.prune import Cut
from bertology.train.prune_settings import PruneSettings
from bertology.train.prune_weights import weights_text


class Pruned(Compressed):
    """A compressed model that was made by pruning alone."""

    @property
    def found(self) -> Mapping[str, Any]:
        """What the search found, and the data that it used."""
        numbers: Mapping[str, Any] = self.measured["steps"][0]["found"]
        return numbers

    @property
    def settings(self) -> PruneSettings:
        """What was asked for."""
        asked = self.found["settings"]
        return PruneSettings(**{**asked, "parts": tuple(asked["parts"])})

    @property
    def cut(self) -> Cut:
        """The parts that are gone."""
        gone = self.found["cut"]
        heads = tuple((layer, head) for layer, head in gone["heads"])
        return Cut(tuple(gone["layers"]), heads, tuple(gone["mlps"]))

    @property
    def max_loss(self) -> float | None:
        """How many points could be lost; None where nothing was asked for."""
        return self.settings.final_loss(self.before.value)

    @property
    def sentence(self) -> str:
        """The answer in a few sentences."""
        change = "loss" if self.loss.value >= 0 else "gain"
        epochs = self.settings.trained
        trained = f", after {epochs_text(epochs)} of training," if epochs else ""
        return (
            f"{self.gain} On {self.loss.n:,} held-out examples"
            f"{trained} {self.metric} is {self.after.value:.3f}; before the cut it was "
            f"{self.before.value:.3f}: a {change} of {abs(self.loss.value):.1f} points "
            f"({self.certainty})."
            + ("" if self.measured["knows"] else " It is not surely better than a constant answer "
               "any more.")
        )  # fmt: skip

    @property
    def gain(self) -> str:
        """What is gone and what that saves, in one sentence."""
        speed = f"{self.times_as_fast():.2f} times as fast"
        if weights := self.found.get("weights"):
            size = self.measured["bytes_on_disk"][1] / 1e6
            before, after = (each / 1e6 for each in self.measured["packed_bytes"])
            return (
                f"Without {weights_text(weights['kept'] / weights['of'])}, which are zeros now, "
                f"the file is as large as before ({size:.1f} MB; packed with gzip {after:.1f} MB, "
                f"before {before:.1f} MB), and the model is {speed}: zeros save no time where "
                "matrices are multiplied as a whole."
            )
        before, after = self.measured["parameters"]
        fewer = 100 * (1 - after / before)
        return f"Without {self.cut.text} the model is {fewer:.0f} % smaller and {speed}."

    @property
    def certainty(self) -> str:
        """The interval of the loss, and whether it is surely as small as was asked for."""
        interval = f"95 % interval {self.loss.low:.1f} to {self.loss.high:.1f}"
        if self.max_loss is None:
            return interval
        sure = "surely" if self.loss.high <= self.max_loss else "not surely"
        return f"{interval}; {sure} at most {self.max_loss:.3g}"
