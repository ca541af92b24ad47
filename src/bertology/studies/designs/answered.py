"""What a model and its variants answered, gathered from the parts of a sweep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertology.metrics import Metric, find_metric
from bertology.results.comparison import example_losses
from bertology.stats.row_blocks import RowBlocks

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Answered"]

Floats = NDArray[np.float64]
_TOGETHER = 1 << 16  # answers of several variants that are scored at once


@dataclass(frozen=True)
class Answered:
    """Answers of each variant, the intact model first: a small number for each example."""

    names: list[str]
    answers: NDArray[Any]  # (variant, example): classes, or numbers in regression
    labels: Floats  # (example,)
    losses: Floats  # (variant,), mean over examples
    slopes: Floats | None  # (layer, head): what a backward pass expects, mean over examples
    facts: Mapping[str, Any]  # attributes of the parts, the same in each

    @classmethod
    def of(cls, parts: Iterator[xr.Dataset]) -> Answered:
        """Go through the parts once."""
        answers, labels, losses, slopes = [], [], [], []
        names, facts = list[str](), dict[str, Any]()
        for part in parts:
            logits, wanted = part["logits"].to_numpy(), part["label"].to_numpy()
            classes = part.attrs["kind"] != "regression"
            small = np.min_scalar_type(logits.shape[-1])
            answers.append(logits.argmax(-1).astype(small) if classes else logits[..., 0].copy())
            labels.append(wanted)
            losses.append(example_losses(logits, wanted).sum(-1))
            if "first_order" in part:
                slopes.append(part["first_order"].sum("example", skipna=False).to_numpy())
            names = [str(v) for v in part["variant"].to_numpy()]
            facts = dict(part.attrs)
        n = sum(map(len, labels))
        return cls(
            names,
            np.concatenate(answers, axis=1),
            np.concatenate(labels),
            np.sum(losses, axis=0) / n,
            np.sum(slopes, axis=0) / n if slopes else None,
            facts,
        )

    @property
    def classes(self) -> bool:
        """Whether the task is to tell classes apart."""
        return bool(self.facts["kind"] != "regression")

    @property
    def metric(self) -> Metric:
        """What the task is scored by."""
        return find_metric(self.facts["metric"])

    def intact(self) -> Floats:
        """Statistics (N, K) of the intact model, as its metric wants them."""
        (own,) = self._statistics([0])
        return np.asarray(own)

    def of_variants(self, rows: Sequence[int]) -> RowBlocks:
        """The same (v, N, K) of some variants, a few at a time."""
        step = max(1, _TOGETHER // len(self.labels))
        starts = range(0, len(rows), step)
        return RowBlocks(lambda: (self._statistics(rows[at : at + step]) for at in starts))

    def _statistics(self, rows: Sequence[int]) -> Floats:
        score = self.metric.statistics
        kind = np.int64 if self.classes else self.answers.dtype
        return np.stack([score(self.answers[row].astype(kind), self.labels) for row in rows])
