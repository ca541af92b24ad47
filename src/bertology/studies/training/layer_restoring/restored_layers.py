"""Which layers are set back, and what that costs: tables of layers and of parts of a model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.metrics import find_metric
from bertology.results.answers import points
from bertology.stats import Estimate
from bertology.stats.crossed import crossed_difference, crossed_score
from bertology.studies.designs.scored_runs import ScoredRuns

if TYPE_CHECKING:
    import pandas as pd

    from bertology.train.restoring import Change

WHOLE = "whole"
WAYS = ("restored", "below", "above", "half", "fresh")
"""Columns of the table of layers: what happens to the layer, or to all up to it, or from it on."""
MARGIN = 0.05  # of the claim that lower layers can be restored: what it calls no dramatic loss
_POINTS = (0.0, 0.25, 0.5, 0.75)  # how much of fine-tuning the whole encoder keeps


def third_of(layers: int) -> int:
    """How many layers a third is; at least one."""
    return max(1, layers // 3)


def asked_changes(layers: int) -> list[Change]:
    """Every change that a table asks for, each once."""
    found = [_change(way, at, layers) for way in WAYS for at in range(layers)]
    found += [change for _, change in _parts(layers)]
    return list(dict.fromkeys(found))


def _change(way: str, layer: int, layers: int) -> Change:
    from bertology.train.restoring import Change

    if way == "below":
        return Change(tuple(range(layer + 1)))
    if way == "above":
        return Change(tuple(range(layer, layers)))
    return Change((layer,), kept=0.5 if way == "half" else 0.0, fresh=way == "fresh")


def _parts(layers: int) -> list[tuple[str, Change]]:
    """Parts of a model by what they are called in tables."""
    from bertology.train.restoring import Change

    third, every = third_of(layers), tuple(range(layers))
    found = [
        ("embeddings", Change(embeddings=True)),
        ("lowest third", Change(every[:third])),
        ("middle third", Change(every[third : 2 * third])),
        ("highest third", Change(every[layers - third :])),
        ("all layers", Change(every)),
    ]
    if 3 * third > layers:
        found = [one for one in found if one[0] != "middle third"]
    return found + [
        (f"encoder, {100 * kept:.0f} % of fine-tuning", Change(every, embeddings=True, kept=kept))
        for kept in _POINTS
    ]


@dataclass(frozen=True)
class RestoredLayers:
    """Answers of the whole model and of all changed ones, by seed."""

    runs: ScoredRuns
    metric: str
    moved: NDArray[np.float64]
    """(layers,): how far fine-tuning moved the weights."""

    @property
    def count(self) -> int:
        """How many layers there are."""
        return self.moved.size

    @property
    def third(self) -> int:
        """How many layers a third is."""
        return third_of(self.count)

    def _loss(self, change: Change, tests: int = 1) -> Estimate:
        """With bounds that hold for so many tests together (Bonferroni)."""
        runs = replace(self.runs, level=1 - (1 - self.runs.level) / tests)
        found = runs.difference(WHOLE, change.name, self.metric, in_seeds=True)
        assert found is not None
        return found

    def gain(self, *, classes: bool) -> Estimate:
        """How much better the whole models are than a constant answer, over seeds and examples.

        It is their mean that counts: to ask it of every single run is to ask more, the more runs
        there are.
        """
        metric, own = find_metric(self.metric), self.runs.statistics(WHOLE, self.metric)
        if not classes or self.metric == "matthews":  # a constant answer is worth 0
            return crossed_score(metric, own, level=self.runs.level)
        kinds, counts = np.unique(self.runs.labels, return_counts=True)
        constant = np.full(len(self.runs.labels), kinds[counts.argmax()])
        other = metric.statistics(constant, self.runs.labels)[None]
        return crossed_difference(metric, own, other, level=self.runs.level)

    def unjudged(self, *, classes: bool) -> str | None:
        """Why nothing can be said of losses; None if something can.

        A model that collapsed has nothing to lose, and one that has hardly more than the margin
        could not lose as much as would make a claim fail: it would hold emptily.
        """
        collapsed, gain = self.runs.collapsed(WHOLE), self.gain(classes=classes)
        if collapsed.any():
            how_many = f"{int(collapsed.sum())} of {collapsed.size}"
            return f"{how_many} models collapsed, and have nothing to lose"
        if gain.low > MARGIN:
            return None
        return (
            f"the whole models are not surely more than {100 * MARGIN:.0f} points better than a "
            f"constant answer ({points(gain)}), so that there is too little to lose"
        )

    def evidence(self) -> dict[str, Estimate | None]:
        """What claims are judged on."""
        parts = dict(_parts(self.count))
        lower, upper = parts["lowest third"], parts["highest third"]
        return {
            "lower_restored_loss": self._loss(lower),
            "upper_restored_loss": self._loss(upper),
            "upper_over_lower_loss": self.runs.difference(
                lower.name, upper.name, self.metric, in_seeds=True
            ),
            "embeddings_restored_loss": self._loss(parts["embeddings"]),
        }

    def layers(self) -> pd.DataFrame:
        """What each way loses in each layer; bounds hold for all layers of a way together."""
        import pandas as pd

        rows = []
        for layer in range(self.count):
            row: dict[str, float] = {"layer": layer}
            for way in WAYS:
                found = self._loss(_change(way, layer, self.count), self.count)
                row |= {way: found.value, f"{way}_low": found.low, f"{way}_high": found.high}
                if way == "restored":
                    row["sure"] = bool(found.low > 0 or found.high < 0)
            rows.append(row | {"moved": float(self.moved[layer])})
        return pd.DataFrame(rows)

    def parts(self) -> pd.DataFrame:
        """Scores and losses of parts, the whole model first."""
        import pandas as pd

        whole = self.runs.score(WHOLE, self.metric)
        rows = [_row("whole model", whole, None)]
        for name, change in _parts(self.count):
            rows.append(_row(name, self.runs.score(change.name, self.metric), self._loss(change)))
        return pd.DataFrame(rows)


def _row(name: str, score: Estimate, loss: Estimate | None) -> dict[str, object]:
    lost: Sequence[float] = (math.nan,) * 3 if loss is None else (loss.value, loss.low, loss.high)
    return {
        "set_back": name, "score": score.value, "score_low": score.low, "score_high": score.high,
        **dict(zip(("loss", "loss_low", "loss_high"), lost, strict=True)),
    }  # fmt: skip
