"""Runs of crossed seeds on the same examples: what their scores say of seeds, of luck, of time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from bertology.errors import DataError
from bertology.metrics import find_metric
from bertology.results.comparison import beats_constant_answer
from bertology.stats import Estimate
from bertology.stats.best_of_runs import BestOfRuns, Stopping, halves
from bertology.stats.paired import jackknife
from bertology.stats.rank_agreement import Agreement, PairLinks, rank_agreement
from bertology.stats.variance_components import Components, components, spread

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

Floats = NDArray[np.float64]

EFFECTS = {
    "initialisation": "rows",
    "order": "columns",
    "rest": "rest",
    "all runs": "runs",
}
"""What readers call the effects of a two-way design."""
_LUCK, _SHARED = "luck of the examples, by run", "luck of the examples, all runs"
_FEWEST = 3  # seeds of each kind: with fewer, none can be left out of two


@dataclass(frozen=True)
class SeedRuns:
    """Answers (I, J, shares, N) by seed of weights, seed of order, and share of the training."""

    predictions: Floats
    labels: Floats
    shares: tuple[float, ...]
    metric: str
    classes: bool
    diverged: NDArray[np.bool_]
    level: float = 0.95
    deals: int = 10

    @classmethod
    def read(
        cls,
        measured: Mapping[tuple[int, int], xr.Dataset],
        metric: str,
        *,
        level: float,
        deals: int,
    ) -> SeedRuns:
        """Parts by their seeds of weights and of order."""
        rows, columns = (sorted({place[at] for place in measured}) for at in (0, 1))
        first = measured[rows[0], columns[0]]
        labels = first["labels"].to_numpy().astype(np.float64)
        if any(not np.array_equal(labels, part["labels"].to_numpy()) for part in measured.values()):
            raise DataError(
                "The scored examples changed between two parts of this study.",
                hint="Do all of it again with force=True (--force).",
            )
        grid = [[measured[i, j] for j in columns] for i in rows]
        return cls(
            np.array([[part["predictions"].to_numpy() for part in row] for row in grid], float),
            labels,
            tuple(float(share) for share in first["share"].to_numpy()),
            metric,
            str(first.attrs["kind"]) != "regression",
            np.array([[bool(part["diverged"]) for part in row] for row in grid]),
            level,
            deals,
        )

    # Scores ------------------------------------------------------------------------------------

    @property
    def final(self) -> Floats:
        """The last answers (I, J, N)."""
        return self.predictions[:, :, -1]

    @property
    def grid(self) -> tuple[int, int]:
        """How many seeds of weights and of order there are."""
        return self.predictions.shape[0], self.predictions.shape[1]

    def _statistics(self, answers: Floats) -> Floats:
        """(…, N, K) of answers (…, N)."""
        of = find_metric(self.metric)
        flat = np.stack([of.statistics(a, self.labels) for a in answers.reshape(-1, len(self))])
        return flat.reshape(*answers.shape, -1)

    def __len__(self) -> int:
        return self.labels.size

    @cached_property
    def values(self) -> Floats:
        """(I, J, N): what each example adds to the final score of a run; the mean is the score."""
        of, runs = find_metric(self.metric), self._statistics(self.final)
        flat = runs.reshape(-1, *runs.shape[2:])
        found = jackknife(of, flat) + of.finish(flat.sum(axis=1))[:, None]
        return found.reshape(self.final.shape)

    @cached_property
    def failed(self) -> NDArray[np.bool_]:
        """Which runs are not surely better than the most frequent answer."""
        found = [
            not beats_constant_answer(a, self.labels, classes=self.classes, metric=self.metric)
            for a in self.final.reshape(-1, len(self))
        ]
        return np.array(found).reshape(self.grid) | self.diverged

    def constant_score(self, answer: float) -> float:
        """What always giving one answer scores."""
        return find_metric(self.metric).score(np.full(len(self), answer), self.labels)

    def table(self, metrics: Sequence[str]) -> pd.DataFrame:
        """A row for each run: its seeds, scores, and whether it failed."""
        import pandas as pd

        return pd.DataFrame(
            {"initialisation": i, "order": j}
            | {m: find_metric(m).score(self.final[i, j], self.labels) for m in metrics}
            | {"failed": bool(self.failed[i, j]), "diverged": bool(self.diverged[i, j])}
            for i, j in np.ndindex(*self.grid)
        )

    # Variances ---------------------------------------------------------------------------------

    @cached_property
    def _components(self) -> Components:
        return components(self.values, level=self.level)

    def spreads(self) -> dict[str, Estimate | None]:
        """Standard deviations that claims are judged on."""
        found = {name: spread(self._components.variance[key]) for name, key in EFFECTS.items()}
        enough = min(self.grid) >= _FEWEST
        names = {"all runs": "run_spread"}
        return {names.get(n, f"{n}_spread"): e if enough else None for n, e in found.items()}

    def components(self) -> pd.DataFrame:
        """A row for each effect; `share` is that of the variance of runs on these examples."""
        import pandas as pd

        of = self._components
        runs, luck = max(of.variance["runs"].value, 0.0), max(of.luck["runs"], 0.0)
        whole = (runs + luck) or math.nan
        rows = []
        for name, key in EFFECTS.items():
            found = spread(of.variance[key])
            rows.append(
                {"component": name, "spread": found.value, "low": found.low, "high": found.high,
                 "share": max(of.variance[key].value, 0.0) / whole,
                 "p": of.p.get(key, math.nan)}
            )  # fmt: skip
        for name, variance, share in ((_LUCK, luck, luck / whole), (_SHARED, of.shared, math.nan)):
            rows.append(
                {"component": name, "spread": math.sqrt(variance), "low": math.nan,
                 "high": math.nan, "share": share, "p": math.nan}
            )  # fmt: skip
        return pd.DataFrame(rows)

    # The best of k, and stopping ---------------------------------------------------------------

    @cached_property
    def _picks(self) -> NDArray[np.bool_]:
        return halves(len(self), deals=self.deals)

    def _on(self, chosen: NDArray[np.bool_], share: int) -> Floats:
        """Scores (deals, I, J) on chosen examples (deals, N), after a share of the training."""
        rows = self._statistics(self.predictions[:, :, share])
        sums = np.einsum("dn,ijnk->dijk", chosen.astype(np.float64), rows)
        return find_metric(self.metric).finish(sums)

    @cached_property
    def best(self) -> BestOfRuns:
        """The final scores, where examples pick and where they score."""
        last = len(self.shares) - 1
        return BestOfRuns(
            self.values,
            self._picks,
            self._on(self._picks, last),
            self._on(~self._picks, last),
            level=self.level,
        )

    def best_table(self) -> pd.DataFrame:
        """The expected best of k runs, where it is picked and elsewhere, and gains over one run."""
        import pandas as pd

        lowest, highest = find_metric(self.metric).within
        rows = []
        for k in range(1, self.best.most + 1):
            row: dict[str, float] = {"runs": k}
            for name, found in (
                ("picked", self.best.picked(k)),
                ("elsewhere", self.best.elsewhere(k)),
            ):
                low, high = max(found.low, lowest), min(found.high, highest)
                row |= {name: found.value, f"{name}_low": low, f"{name}_high": high}
            for name, found in (
                ("picked_gain", self.best.picked_gain(k)),
                ("gain", self.best.gain(k)),
            ):
                row |= {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
            rows.append(row)
        return pd.DataFrame(rows)

    def nearest(self, share: float) -> int:
        """The look that is nearest to a share of the training."""
        return int(np.abs(np.array(self.shares) - share).argmin())

    def stopping(self) -> list[Stopping]:
        """The poorer half stopped at each look; none where there are too few seeds."""
        if self.best.most < 2:
            return []
        return [
            self.best.stopping(self._on(self._picks, at), share)
            for at, share in enumerate(self.shares)
        ]

    @cached_property
    def _agreement(self) -> Agreement:
        """Scores at each look with the final ones on other examples, over deals."""
        last = len(self.shares) - 1
        final = self._on(~self._picks, last).reshape(len(self._picks), -1)
        early = np.stack(
            [self._on(self._picks, at).reshape(len(final), -1) for at in range(last + 1)], axis=1
        )  # (deals, shares, runs)
        found = [rank_agreement(e, f) for e, f in zip(early, final, strict=True)]
        # Runs are what is drawn, and each is in all deals: what it does to their mean is the mean.
        return Agreement(
            np.mean([one.value for one in found], axis=0),
            np.mean([one.influence for one in found], axis=0),
        )

    @property
    def _links(self) -> PairLinks:
        """Runs that share a seed are not independent."""
        return PairLinks.of([(("weights", i), ("order", j)) for i, j in np.ndindex(*self.grid)])

    def correlation(self, at: int) -> Estimate | None:
        """The rank correlation at one look; None where there are too few seeds."""
        if min(self.grid) < _FEWEST:
            return None
        row, seeds = self._agreement[at : at + 1], min(self.grid)
        value = float(row.value[0])
        # One kind of seed may decide all; so there are no more independent runs than of these.
        half = float(stdtrit(seeds - 1, (1 + self.level) / 2) * self._links.error(row.influence)[0])
        inner = min(max(value, -1 + 1e-9), 1 - 1e-9)
        # On Fisher's scale, so that bounds stay between -1 and 1.
        half, middle = half / (1 - inner**2), math.atanh(inner)
        low, high = math.tanh(middle - half), math.tanh(middle + half)
        return Estimate(
            value, min(low, value), max(high, value), seeds, self.level, "seeds",
            remedy="more seeds and more examples would narrow it",
        )  # fmt: skip

    def stopping_table(self, stopped: Sequence[Stopping]) -> pd.DataFrame:
        """A row for each look."""
        import pandas as pd

        rows = []
        for at, share in enumerate(self.shares):
            row: dict[str, float] = {"share": share}
            found: dict[str, Estimate | None] = {"correlation": self.correlation(at)}
            if stopped:
                row["saving"] = stopped[at].saving
                found |= {"loss": stopped[at].loss, "gain": stopped[at].gain}
            for name, one in found.items():
                ends = (math.nan,) * 3 if one is None else (one.value, one.low, one.high)
                row |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
            rows.append(row)
        columns = ["share", "correlation", "correlation_low", "correlation_high", "saving"]
        columns += [f"{n}{end}" for n in ("loss", "gain") for end in ("", "_low", "_high")]
        return pd.DataFrame(rows, columns=columns)
