"""Answers of static vectors as scores: by layer and method, the best, and what they are beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertology.stats import Estimate
from bertology.stats.rank_agreement import Agreement, PairLinks, together
from bertology.studies.designs.pair_scores import (
    Against,
    best_of,
    halves,
    least_of,
    of_ranks,
    of_shares,
)
from bertology.studies.designs.tables import labelled_table

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["Distilled"]

Floats = NDArray[np.float64]


class Distilled:
    """What a model's part of the study says, beside copies (score, layer, item) of chance."""

    def __init__(
        self,
        model: xr.Dataset,
        copies: Sequence[Floats],
        links: PairLinks,
        *,
        options: Mapping[str, Any],
    ) -> None:
        self.model, self.copies, self.links, self.options = model, copies, links, options
        self.answers = model["answers"].to_numpy().astype(np.float64)  # method, score, layer, item
        self.beside = model["beside"].to_numpy().astype(np.float64)  # base, score, item
        self.methods, self.scores, self.bases = (
            [str(x) for x in model[name].to_numpy()] for name in ("method", "score", "base")
        )
        self.layers = [int(x) for x in model["layer"].to_numpy()]
        self.items = self.answers.shape[-1]
        judged = model["judged"].to_numpy().astype(np.float64)
        self.judged = judged if len(self.scores) == 1 else None
        self.score = of_shares() if self.judged is None else of_ranks(judged)
        self.second = halves(links)
        self.every = np.ones(self.items, bool)

    def told(self, rows: Floats) -> Agreement:
        """Scores of rows (V, N)."""
        return self.score(rows, self.every)

    def best(self, rows: Floats) -> tuple[int, Agreement]:
        """The best row, picked on one half and scored on the other."""
        return best_of(rows, self.score, self.second)

    def _inner(self, score: int = 0) -> Floats:
        """All methods and layers (V, N), the input of the first layer left out."""
        return self.answers[:, score, 1:].reshape(-1, self.items)

    def _chance(self, score: int = 0) -> list[Agreement]:
        return [self.best(copy[score, 1:])[1] for copy in self.copies]

    # What claims are judged on --------------------------------------------------------------------

    def distilled_gain(self) -> Estimate:
        """The best layer and method, less the table of input embeddings, or shuffled weights."""
        best = self.best(self._inner())[1]
        table = self.told(self.beside[:1, 0])
        gains = [Against(best - table), Against.copies(best, self._chance())]
        return least_of(gains, self.links, level=self.options["level"])

    def over_given(self) -> Estimate | None:
        """The best layer and method, less the best of the files; None without any."""
        if len(self.bases) < 2:
            return None
        best = self.best(self._inner())[1]
        gains = [Against(best - self.told(row[:1])) for row in self.beside[1:]]
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
        return self.links.estimate(low - high, level=self.options["level"])

    # Tables ---------------------------------------------------------------------------------------

    def by_layer(self) -> pd.DataFrame:
        """One row for each score, method and layer."""
        rows = self.answers.swapaxes(0, 1)  # score, method, layer, item
        told = [self.told(of.reshape(-1, self.items)) for of in rows]
        sides = [self._bounds(one) for one in told]
        chance = np.full(rows.shape[:3], np.nan)
        chance[:, 0] = np.mean(
            [[self.told(of).value for of in copy] for copy in self.copies], axis=0
        )
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
            names, layers, rows = [], [], []
            for method, of in zip(self.methods, self.answers, strict=True):
                layer, picked = self.best(of[at, 1:])
                names.append(f"distilled, {method}")
                layers.append(float(self.layers[1 + layer]))
                rows.append(picked)
            for base, answers in zip(self.bases, self.beside, strict=True):
                names.append(base)
                layers.append(np.nan)
                rows.append(self.told(answers[at][None]))
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
                    "gain": gains.value,
                    "gain_low": less,
                    "gain_high": more,
                }
            )
            chance = float(np.mean([one.value[0] for one in self._chance(at)]))
            frame["shuffled"] = np.where(np.isnan(layers), np.nan, chance)
            found.append(frame)
        return pd.concat(found, ignore_index=True)

    def by_section(self) -> pd.DataFrame:
        """Analogies by section: the layer of the most right answers, and the input embeddings."""
        import pandas as pd

        groups = self.model["group"].to_numpy().astype(str)
        rows = []
        for at, score in enumerate(self.scores):
            best = self._inner(at)[self.best(self._inner(at))[0]]
            for name in sorted(set(groups)):
                own = groups == name
                rows.append(
                    {
                        "score": score,
                        "section": name,
                        "n": int(own.sum()),
                        "distilled": float(best[own].mean()),
                        "input": float(self.beside[0, at][own].mean()),
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
