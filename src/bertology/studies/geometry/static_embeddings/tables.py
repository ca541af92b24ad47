"""Answers of static vectors as scores: by layer and method, the best, and what they are beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from bertology.arrays import Floats
from bertology.stats import Estimate
from bertology.stats.layer_orders import first_less_second_half, in_this_order
from bertology.stats.rank_agreement import Agreement, PairLinks, together
from bertology.studies.designs.tables import labelled_table
from bertology.studies.geometry.shared.pair_scores import (
    Against,
    Picked,
    Ranks,
    Score,
    Shares,
    Turns,
    least_of,
)

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

CHANCE = "shuffled weights at their best"


class Distilled:
    """What a model's part of the study says, beside copies of chance.

    Answers are (method, score, layer, item) of both; the first layer is what enters the model.
    """

    def __init__(
        self,
        model: xr.Dataset,
        copies: Sequence[Floats],
        links: PairLinks,
        *,
        options: Mapping[str, Any],
    ) -> None:
        self.model, self.copies, self.links, self.options = model, copies, links, options
        self.answers = model["answers"].to_numpy()
        self.beside = model["beside"].to_numpy()  # base, score, item
        self.methods, self.scores, self.bases = (
            [str(x) for x in model[name].to_numpy()] for name in ("method", "score", "base")
        )
        self.layers = [int(x) for x in model["layer"].to_numpy()]
        self.items = self.answers.shape[-1]
        judged = model["judged"].to_numpy().astype(np.float64)
        self.judged = judged if len(self.scores) == 1 else None
        self.score: Score = Shares() if self.judged is None else Ranks(judged)
        self.turns = Turns(links, self.score)
        self.every = np.ones(self.items, bool)

    def told(self, rows: Floats) -> Agreement:
        """Scores of rows (V, N)."""
        return self.score(rows, self.every)

    def best(self, score: int = 0, answers: Floats | None = None) -> Picked:
        """The best layer and method, the input of the first layer left out."""
        return self.turns.best(self._inner(score, answers))

    def _inner(self, score: int = 0, answers: Floats | None = None) -> Floats:
        """All methods and layers (V, N), the input of the first layer left out."""
        some = self.answers if answers is None else answers
        return some[:, score, 1:].reshape(-1, self.items)

    def _chance(self, score: int, methods: slice = slice(None)) -> list[Agreement]:
        return [self.best(score, copy[methods]).told for copy in self.copies]

    # What claims are judged on --------------------------------------------------------------------

    @cached_property
    def of_best(self) -> dict[str, tuple[Agreement, Against]]:
        """The best layer and method: what it is set against, and the difference.

        All are scored on the same questions as what was picked.
        """
        best, chance = self.best().told, self._chance(0)
        bases = [self.turns.fixed(row[0]) for row in self.beside]
        found = {
            name: (other, Against(best - other))
            for name, other in zip(self.bases, bases, strict=True)
        }
        return found | {CHANCE: (together(chance).mean(), Against.copies(best, chance))}

    def distilled_gain(self) -> Estimate:
        """The best layer and method, less the input embeddings; beyond shuffled weights."""
        gain, beyond = (
            self.of_best[name][1].estimate(self.links, self.options["level"])
            for name in (self.bases[0], CHANCE)
        )
        return gain.with_controls({CHANCE: beyond})

    def over_given(self) -> Estimate | None:
        """The best layer and method, less the best of the files; None without any."""
        if len(self.bases) < 2:
            return None
        gains = [self.of_best[name][1] for name in self.bases[1:]]
        return least_of(gains, self.links, level=self.options["level"])

    def component_gain(self) -> Estimate | None:
        """First components less means, over all layers."""
        if len(self.methods) < 2:
            return None
        mean, component = (self.told(of[0, 1:]).mean() for of in self.answers[:2])
        return self.links.estimate(component - mean, level=self.options["level"])

    def lower_over_upper(self) -> Estimate | None:
        """Means over contexts in the lower half of the layers, less those in the upper half."""
        half = (len(self.layers) - 1) // 2
        if not half:
            return None
        rows = self.answers[0, 0, 1:]
        low, high = (self.told(some).mean() for some in (rows[:half], rows[-half:]))
        found = self.links.estimate(low - high, level=self.options["level"])
        return in_this_order(found, self.told(rows).value, first_less_second_half)

    # Tables ---------------------------------------------------------------------------------------

    def comparisons(self) -> pd.DataFrame:
        """What the best layer and method is set against: a claim rests on the first gain."""
        picked = self.best()
        method, layer = divmod(picked.row, len(self.layers) - 1)
        level, count = self.options["level"], len(self.of_best)
        gains = [gain.estimate(self.links, level) for _, gain in self.of_best.values()]
        return labelled_table(
            {"against": list(self.of_best)},
            {
                "method": [self.methods[method]] * count,
                "layer": [self.layers[1 + layer]] * count,
                "best": [float(picked.told.value[0])] * count,
                "value": [float(other.value[0]) for other, _ in self.of_best.values()],
                "gain": [one.value for one in gains],
                "gain_low": [one.low for one in gains],
                "gain_high": [one.high for one in gains],
            },
        )

    def by_layer(self) -> pd.DataFrame:
        """One row for each score, method and layer."""
        rows = self.answers.swapaxes(0, 1)  # score, method, layer, item
        told = [self.told(of.reshape(-1, self.items)) for of in rows]
        sides = [self._bounds(one) for one in told]
        chance = np.mean(
            [
                [[self.score.values(of, self.every) for of in method] for method in copy]
                for copy in self.copies
            ],
            axis=0,
        ).swapaxes(0, 1)
        return labelled_table(
            {"score": self.scores, "method": self.methods, "layer": self.layers},
            {
                "value": np.concatenate([one.value for one in told]),
                "value_low": np.concatenate([low for low, _ in sides]),
                "value_high": np.concatenate([high for _, high in sides]),
                "shuffled": chance,
            },
        )

    def by_vectors(self) -> pd.DataFrame:
        """The best of each method, cross-fitted, beside the table, files and shuffled weights."""
        import pandas as pd

        found = []
        for at, score in enumerate(self.scores):
            names, layers, rows, chance = [], [], [], []
            for number, method in enumerate(self.methods):
                own = slice(number, number + 1)
                picked = self.best(at, self.answers[own])
                names.append(f"distilled, {method}")
                layers.append(float(self.layers[1 + picked.row]))
                rows.append(picked.told)
                chance.append(float(together(self._chance(at, own)).value.mean()))
            for base, answers in zip(self.bases, self.beside, strict=True):
                names.append(base)
                layers.append(np.nan)
                rows.append(self.turns.fixed(answers[at]))
                chance.append(np.nan)
            every = together(rows)
            low, high = self._bounds(every)
            table = rows[len(self.methods)]
            gains = together([one - table for one in rows])
            less, more, _ = self.links.bounds(gains, correlation=False, **self.options)
            frame = pd.DataFrame(
                {
                    "score": score,
                    "vectors": names,
                    "best_layer": layers,
                    "value": every.value,
                    "value_low": low,
                    "value_high": high,
                    "over_input": gains.value,
                    "over_input_low": less,
                    "over_input_high": more,
                    "shuffled": chance,
                }
            )
            found.append(frame)
        return pd.concat(found, ignore_index=True)

    def by_section(self) -> pd.DataFrame:
        """Analogies by section: what was picked on other ones, and the input embeddings."""
        import pandas as pd

        groups = self.model["group"].to_numpy().astype(str)
        rows = []
        for at, score in enumerate(self.scores):
            inner = self._inner(at)
            best = self.turns.answers(inner, self.turns.best(inner).rows)
            for name in sorted(set(groups)):
                own = (groups == name) & np.isfinite(best)
                rows.append(
                    {
                        "score": score,
                        "section": name,
                        "n": int(own.sum()),
                        "distilled": float(best[own].mean()) if own.any() else np.nan,
                        "input": float(self.beside[0, at][own].mean()) if own.any() else np.nan,
                    }
                )
        return pd.DataFrame(rows)

    def coverage(self) -> pd.DataFrame:
        """Shares of words and of questions that each source has."""
        sources = [str(x) for x in self.model["source"].to_numpy()]
        columns = {
            name: self.model[f"{name}_known"].to_numpy().astype(float)
            for name in ("words", "items")
        }
        return labelled_table({"vectors": sources}, columns)

    def _bounds(self, rows: Agreement) -> tuple[Floats, Floats]:
        low, high, _ = self.links.bounds(rows, correlation=self.judged is not None, **self.options)
        if self.judged is None:
            return np.clip(low, 0, 1), np.clip(high, 0, 1)
        return low, high
