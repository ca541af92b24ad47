"""Answers of several methods on the same examples, by seed: means and differences, how sure.

Intervals are over seeds and examples together (`stats/crossed.py`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats
from bertology.errors import DataError
from bertology.metrics import find_metric
from bertology.results.answers import listed
from bertology.results.drawing import Drawing
from bertology.stats import Estimate, least_of
from bertology.stats.crossed import crossed_difference, crossed_ratio, crossed_score
from bertology.studies.designs.tables import bounded
from bertology.studies.designs.trials import TrialsResult, split_part

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.data.corpus import Corpus

_NEARLY_ALL = 0.99  # of the examples
_PREDICTIONS, _LABELS = "predictions", "labels"  # variables (example) of each part


class ScoredRunsResult(TrialsResult):
    """A result whose first table has one row for each method and metric."""

    def methods_drawing(
        self,
        name: str,
        title: str,
        names: Mapping[str, str],
        caption: str,
        *,
        constants: Mapping[str, float] | None = None,
    ) -> Drawing:
        """Means of all methods with their intervals, one panel for each metric.

        `constants` are what a constant answer scores, by metric.
        """
        metrics = list(dict.fromkeys(self.table()["metric"]))
        level = 100 * float(self.facts["level"])
        return self.dots(
            name,
            title,
            {metric: find_metric(metric).in_hundred for metric in metrics},
            caption,
            names=names,
            constants=constants,
            note=f"Means over {self.facts['seeds']} seeds with {level:.0f} % intervals over seeds "
            "and examples (hollow: none).",
        )


def answered(
    predictions: Mapping[str, Floats], corpus: Corpus, train: Corpus, **facts: object
) -> xr.Dataset:
    """One part: what methods say of each example, what is right, and what they learnt from."""
    import xarray as xr

    assert corpus.task is not None
    labels = np.asarray(corpus.labels, dtype=np.float64)
    said = np.stack([np.asarray(row, dtype=np.float64) for row in predictions.values()])
    return xr.Dataset(
        {_PREDICTIONS: (("method", "example"), said), _LABELS: ("example", labels)},
        {"method": list(predictions)},
        {
            "task": corpus.task.name,
            "metrics": " ".join(corpus.task.metrics),
            "train_size": len(train),
            "train_fingerprint": train.fingerprint,
            **facts,
        },
    )


@dataclass(frozen=True)
class ScoredRuns:
    """Predictions (seeds, examples) by method; one row where nothing is drawn."""

    predictions: Mapping[str, Floats]
    labels: Floats
    level: float
    seedless: Collection[str] = ()

    @classmethod
    def read(
        cls,
        measured: Mapping[str, xr.Dataset],
        level: float,
        seedless: Collection[str] = (),
        order: Sequence[str] = (),
    ) -> ScoredRuns:
        """Parts whose names end with their seed; methods in the `order` given."""
        rows: dict[str, dict[int, Floats]] = {}
        labels: Floats | None = None
        for part, found in measured.items():
            _, seed = split_part(part)
            said = found[_PREDICTIONS].to_numpy().astype(np.float64)
            for method, row in zip(found["method"].to_numpy().tolist(), said, strict=True):
                rows.setdefault(str(method), {})[seed] = row
            own = found[_LABELS].to_numpy().astype(np.float64)
            if labels is not None and not np.array_equal(labels, own):
                raise DataError(
                    "The scored examples changed between two parts of this study.",
                    hint="Do all of it again with force=True (--force).",
                )
            labels = own
        assert labels is not None
        names = [*(name for name in order if name in rows), *(n for n in rows if n not in order)]
        stacked = {name: np.stack([rows[name][k] for k in sorted(rows[name])]) for name in names}
        return cls(stacked, labels, level, seedless)

    def statistics(self, method: str, metric: str) -> Floats:
        """(seeds, examples, K), as the metric wants them."""
        of = find_metric(metric)
        return np.stack([of.statistics(row, self.labels) for row in self.predictions[method]])

    def score(self, method: str, metric: str) -> Estimate:
        """The mean score; one run of a method that draws something has no interval."""
        found = crossed_score(
            find_metric(metric), self.statistics(method, metric), level=self.level
        )
        return found if self._sure(method) else _bare(found)

    def difference(
        self, one: str, other: str, metric: str, *, in_seeds: bool = False, once: bool = False
    ) -> Estimate | None:
        """How much higher one method is than another, by seed; None if one was not run.

        With `in_seeds`, what would settle a question is counted in seeds; with `once`, what seeds
        and examples do together is counted once (`crossed_difference`).
        """
        if not {one, other} <= self.predictions.keys():
            return None
        found = crossed_difference(
            find_metric(metric),
            self.statistics(one, metric),
            self.statistics(other, metric),
            level=self.level,
            in_seeds=in_seeds,
            once=once,
        )
        return found if self._sure(one) and self._sure(other) else _bare(found)

    def kept(self, one: str, other: str, metric: str, *, floor: float = 0.0) -> Estimate | None:
        """Which share of the score of another method one has, by seed; None if one was not run.

        With a `floor`, such as the score of a constant answer, what is above it is compared.
        """
        if not {one, other} <= self.predictions.keys():
            return None
        sides = (self.statistics(name, metric) for name in (one, other))
        found = crossed_ratio(find_metric(metric), *sides, level=self.level, floor=floor)
        if math.isnan(found.value):
            return None
        return found if self._sure(one) and self._sure(other) else _bare(found)

    def over_constant(self, method: str, metric: str, constant: float) -> Estimate:
        """How much higher it scores than a constant answer; one run does so over its examples."""
        of = crossed_score(find_metric(metric), self.statistics(method, metric), level=self.level)
        low, high = of.low - constant, of.high - constant
        return replace(of, value=of.value - constant, low=low, high=high)

    def learnt(self, method: str, metric: str, constant: float) -> bool:
        """Whether it surely beats a constant answer; where such an answer has no score, it may."""
        return math.isnan(constant) or self.over_constant(method, metric, constant).low > 0

    def collapsed(self, method: str) -> NDArray[np.bool_]:
        """Which runs of a method give nearly all examples the same answer, as a failed training."""
        said = self.predictions[method]
        if set(np.unique(self.labels)) >= set(np.unique(said)):
            often = [np.unique(row, return_counts=True)[1].max() / len(row) for row in said]
            return np.array(often) >= _NEARLY_ALL
        return np.asarray(said.std(axis=1) < (1 - _NEARLY_ALL) * self.labels.std())

    def _sure(self, method: str) -> bool:
        return method in self.seedless or len(self.predictions[method]) > 1

    def table(
        self, column: str, metrics: Iterable[str], *, reference: str | None = None
    ) -> pd.DataFrame:
        """One row for each method and metric, with the difference to a reference."""
        import pandas as pd

        rows = []
        for metric in metrics:
            for method, found in self.predictions.items():
                mean = self.score(method, metric)
                by_seed = find_metric(metric).finish(self.statistics(method, metric).sum(axis=1))
                row = {
                    column: method, "metric": metric, "mean": mean.value, "low": mean.low,
                    "high": mean.high, "seeds": len(found),
                    "spread": by_seed.std(ddof=1) if len(found) > 1 else math.nan,
                }  # fmt: skip
                compared = None if method == reference else reference
                over = compared and self.difference(method, compared, metric)
                if over:
                    name = f"over_{str(reference).replace('-', '_')}"
                    row |= bounded(name, over)
                rows.append(row)
        return pd.DataFrame(rows)

    def runs(self, column: str, metrics: Sequence[str]) -> pd.DataFrame:
        """One row for each run, with its scores."""
        import pandas as pd

        return pd.DataFrame(
            {column: method, "seed": seed}
            | {m: find_metric(m).score(row, self.labels) for m in metrics}
            for method, found in self.predictions.items()
            for seed, row in enumerate(found)
        )


def learnt_nothing(names: Collection[str]) -> str:
    """Why arms are not judged that were trained and do not surely beat a constant answer.

    All studies have this one gate: what was not learnt (in few updates, say) tells nothing of the
    way in which it was to be learnt, neither for a claim nor against it.
    """
    do = "do" if len(names) > 1 else "does"
    return f"not judged: {listed(names)} {do} not surely beat a constant answer"


def _bare(found: Estimate) -> Estimate:
    return replace(found, low=math.nan, high=math.nan)


def least(differences: Iterable[Estimate | None]) -> Estimate | None:
    """The smallest of several numbers, each with its interval; None if one was not measured."""
    found = list(differences)
    known = [one for one in found if one is not None]
    if not known or len(known) < len(found):
        return None
    return least_of(known)
