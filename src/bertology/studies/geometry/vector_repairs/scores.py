"""Cosines of pairs as scores: by repair and layer, the best, and gains over no repair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertology.stats import Estimate
from bertology.stats.rank_agreement import Agreement, PairLinks, together
from bertology.stats.vector_repairs import REPAIRS
from bertology.studies.designs.tables import labelled_table
from bertology.studies.geometry.shared.pair_scores import Against, Ranks, least_of
from bertology.studies.geometry.shared.pair_turns import Picked, Turns

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
AS_IT_IS, CHANCE = "the best layer as it is", "shuffled weights at their best"


class RepairScores:
    """Cosines (repairs, layers, pairs) of the model and of its shuffled copies, as agreements.

    The first repair is none, the first layer what enters the model: of the model it is never
    picked, of copies it is, since random vectors of words tell how many words two texts share.
    """

    def __init__(
        self, own: Floats, copies: Sequence[Floats], judged: Floats, links: PairLinks
    ) -> None:
        self.own, self.copies, self.links = own, copies, links
        score, every = Ranks(judged), np.ones(len(judged), bool)
        self.turns = Turns(links, score)
        self.told = [score(rows, every) for rows in own]  # by repair, rows are layers
        self.told_by_copies = [[score(rows, every) for rows in copy] for copy in copies]
        self.picked_on = [[self.turns.picked_on(rows) for rows in some] for some in (own, *copies)]

    def best(self, repairs: slice, copy: int | None = None) -> Picked:
        """The best layer of the best of some repairs."""
        at, first = (0, 1) if copy is None else (1 + copy, 0)
        cosines = (self.own, *self.copies)[at][repairs, first:]
        told = [one[:, first:] for one in self.picked_on[at][repairs]]
        return self.turns.best(cosines.reshape(-1, cosines.shape[-1]), np.concatenate(told, axis=1))

    @cached_property
    def of_best(self) -> dict[str, tuple[Agreement, Against]]:
        """The best repair and layer: what it is set against, and the difference."""
        best, plain = self.best(slice(1, None)).told, self.best(slice(1)).told
        chance = [self.best(slice(None), copy).told for copy in range(len(self.copies))]
        return {
            AS_IT_IS: (plain, Against(best - plain)),
            CHANCE: (together(chance).mean(), Against.copies(best, chance)),
        }

    def of_mean(self, repair: int) -> dict[str, Against]:
        """One repair in the mean over layers, against none and against shuffled weights."""
        own, plain = (self.told[at][1:].mean() for at in (repair, 0))
        chance = [copy[repair][1:].mean() for copy in self.told_by_copies]
        return {"none": Against(own - plain), "shuffled": Against.copies(own, chance)}

    def best_gain(self, level: float) -> Estimate:
        """The best repair and layer, less the best layer without repair, or shuffled weights."""
        gains = [gain for _, gain in self.of_best.values()]
        return least_of(gains, self.links, level=level)

    def mean_gain(self, repair: int, level: float) -> Estimate:
        """One repair in the mean over layers, less no repair, or shuffled weights, repaired too."""
        return least_of(list(self.of_mean(repair).values()), self.links, level=level)

    def comparisons(
        self, names: Sequence[str], layers: Sequence[int], level: float
    ) -> pd.DataFrame:
        """What the best repair and layer is set against: the claim rests on the smaller gain."""
        picked, found = self.best(slice(1, None)), self.of_best
        repair, layer = divmod(picked.row, len(layers) - 1)
        gains = [gain.estimate(self.links, level) for _, gain in found.values()]
        return labelled_table(
            {"against": list(found)},
            {
                "repair": [names[1 + repair]] * len(found),
                "layer": [layers[1 + layer]] * len(found),
                "best": [float(picked.told.value[0])] * len(found),
                "agreement": [float(other.value[0]) for other, _ in found.values()],
                "gain": [one.value for one in gains],
                "gain_low": [one.low for one in gains],
                "gain_high": [one.high for one in gains],
            },
        )

    def by_layer(
        self, names: Sequence[str], layers: Sequence[int], options: Mapping[str, Any]
    ) -> pd.DataFrame:
        """One row for each repair and layer."""
        told = together(self.told)
        gains = together([one - self.told[0] for one in self.told[1:]])
        blank = np.full(len(layers), np.nan)
        low, high, _ = self.links.bounds(told, correlation=True, **options)
        less, more, _ = self.links.bounds(gains, correlation=False, **options)
        sides = {"": gains.value, "_low": less, "_high": more}
        return labelled_table(
            {"repair": names, "layer": layers},
            {
                "agreement": told.value,
                "agreement_low": low,
                "agreement_high": high,
                **{f"over_none{end}": np.concatenate([blank, x]) for end, x in sides.items()},
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
        each = [self.best(slice(at, at + 1)) for at in range(len(names))]
        chance = [
            [self.best(slice(at, at + 1), copy).told.value[0] for at in range(len(names))]
            for copy in range(len(self.copies))
        ]
        means = together([one[1:].mean() for one in self.told])
        columns: dict[str, Any] = {"title": [REPAIRS[name] for name in names]}
        columns |= self._columns("mean", means, options)
        by_chance = [[one[1:].value.mean() for one in copy] for copy in self.told_by_copies]
        columns["mean_shuffled"] = np.mean(by_chance, axis=0)
        columns["best_layer"] = [layers[1 + one.row] for one in each]
        columns |= self._columns("best", together([one.told for one in each]), options)
        columns["best_shuffled"] = np.mean(chance, axis=0)
        return labelled_table({"repair": names}, columns)

    def _columns(
        self, name: str, rows: Agreement, options: Mapping[str, Any]
    ) -> dict[str, NDArray[np.float64]]:
        """Agreements, and what they are over the first row, each with its bounds."""
        low, high, _ = self.links.bounds(rows, correlation=True, **options)
        gains = rows[1:] - Agreement(rows.value[:1], rows.influence[:1])
        less, more, _ = self.links.bounds(gains, correlation=False, **options)
        sides = {"": gains.value, "_low": less, "_high": more}
        return {
            name: rows.value,
            f"{name}_low": low,
            f"{name}_high": high,
            **{f"{name}_over_none{end}": np.append(np.nan, side) for end, side in sides.items()},
        }
