"""Cosines of pairs as scores: by repair and layer, the best, and gains over no repair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertology.stats import Estimate
from bertology.stats.rank_agreement import Agreement, PairLinks, together
from bertology.stats.vector_repairs import REPAIRS
from bertology.studies.designs.pair_scores import Against, best_of, halves, least_of, of_ranks
from bertology.studies.designs.tables import labelled_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["RepairScores"]

Floats = NDArray[np.float64]


class RepairScores:
    """Cosines (repairs, layers, pairs) of the model and of its shuffled copies, as agreements."""

    def __init__(
        self, own: Floats, copies: Sequence[Floats], judged: Floats, links: PairLinks
    ) -> None:
        self.own, self.copies, self.links = own, copies, links
        self.score, self.second = of_ranks(judged), halves(links)
        every = np.ones(len(judged), bool)
        self.told = [self.score(rows, every) for rows in own]  # by repair, rows are layers
        self.told_by_copies = [[self.score(rows, every) for rows in copy] for copy in copies]

    def best_gain(self, level: float) -> Estimate:
        """The best repair and layer, less the best layer without repair, or shuffled weights."""
        best = self._best(self.own[1:, 1:])[1]
        plain = self._best(self.own[:1, 1:])[1]
        chance = [self._best(copy[:, 1:])[1] for copy in self.copies]
        gains = [Against(best - plain), Against.copies(best, chance)]
        return least_of(gains, self.links, level=level)

    def mean_gain(self, repair: int, level: float) -> Estimate:
        """One repair in the mean over layers, less no repair, or shuffled weights, repaired too."""
        own, plain = (self.told[at][1:].mean() for at in (repair, 0))
        chance = [copy[repair][1:].mean() for copy in self.told_by_copies]
        gains = [Against(own - plain), Against.copies(own, chance)]
        return least_of(gains, self.links, level=level)

    def _best(self, cosines: Floats) -> tuple[int, Agreement]:
        rows = cosines.reshape(-1, cosines.shape[-1])
        return best_of(rows, self.score, self.second)

    def by_layer(
        self, names: Sequence[str], layers: Sequence[int], options: Mapping[str, Any]
    ) -> pd.DataFrame:
        """One row for each repair and layer."""
        told = together(self.told)
        gains = together([one - self.told[0] for one in self.told[1:]])
        blank = np.full(len(layers), np.nan)
        low, high, _ = self.links.bounds(told, correlation=True, **options)
        less, more, _ = self.links.bounds(gains, correlation=False, **options)
        return labelled_table(
            {"repair": names, "layer": layers},
            {
                "agreement": told.value,
                "agreement_low": low,
                "agreement_high": high,
                "gain": np.concatenate([blank, gains.value]),
                "gain_low": np.concatenate([blank, less]),
                "gain_high": np.concatenate([blank, more]),
                "shuffled": np.mean(
                    [[one.value for one in copy] for copy in self.told_by_copies], axis=0
                ),
                "mean_cosine": self.own.mean(axis=2),
            },
        )

    def by_repair(
        self, names: Sequence[str], layers: Sequence[int], options: Mapping[str, Any]
    ) -> pd.DataFrame:
        """Means over layers, and the best layer of each repair, cross-fitted."""
        each = [self._best(rows[None, 1:]) for rows in self.own]
        chance = [[self._best(rows[None, 1:])[1].value for rows in c] for c in self.copies]
        means = together([one[1:].mean() for one in self.told])
        best = together([one for _, one in each])
        columns: dict[str, Any] = {"title": [REPAIRS[name] for name in names]}
        columns |= self._columns("mean", means, options)
        columns["best_layer"] = [layers[1 + at] for at, _ in each]
        columns |= self._columns("best", best, options)
        columns["shuffled"] = np.mean(chance, axis=0)
        return labelled_table({"repair": names}, columns)

    def _columns(
        self, name: str, rows: Agreement, options: Mapping[str, Any]
    ) -> dict[str, NDArray[np.float64]]:
        """Agreements and gains over the first row, each with its bounds."""
        low, high, _ = self.links.bounds(rows, correlation=True, **options)
        gains = rows[1:] - Agreement(rows.value[:1], rows.influence[:1])
        less, more, _ = self.links.bounds(gains, correlation=False, **options)
        sides = {"": gains.value, "_low": less, "_high": more}
        return {
            name: rows.value,
            f"{name}_low": low,
            f"{name}_high": high,
            **{f"{name}_gain{end}": np.append(np.nan, side) for end, side in sides.items()},
        }
