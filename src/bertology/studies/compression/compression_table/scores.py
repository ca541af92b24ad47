"""What smaller models keep of a teacher's score, how sure; and what they save."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats
from bertology.metrics import find_metric
from bertology.stats import Estimate, repeated
from bertology.stats.crossed import crossed_difference, crossed_score
from bertology.studies.compression.compression_table.rows import METHOD, SMALL, TEACHER, Row
from bertology.studies.designs.scored_runs import ScoredRuns, least

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

LEAST_SMALLER = 1.5
"""How many times smaller on the disk a model must be to be a small one."""
FEWEST = 4  # examples, of which one half picks the best that the other scores
_NEAR = 1.15  # sizes that differ by less are taken for the same
_PICKED, _AGAINST = "the best, picked on the other half", "compared with it"
_SAME_NUMBERS = ("half",)  # methods that store what is there in fewer bits, and lose nothing by it


@dataclass(frozen=True)
class Flips:
    """Shares of the examples, means over seeds; NaN where answers are numbers."""

    changed: Estimate | None
    """Another answer than the teacher's."""
    lost: float
    """Right before, and wrong now."""
    won: float
    net: Estimate | None
    """Won less lost, paired."""
    moved: float
    """How far numbers moved, in standard deviations of the labels."""


@dataclass(frozen=True)
class Picked:
    """The best of some rows, by the other half of the seeds on the other half of the examples."""

    rows: tuple[tuple[str, str], ...]
    """By seed: what is scored on the first and on the second half."""
    among: tuple[str, ...]
    """Rows that it was picked from."""

    @property
    def counts(self) -> dict[str, int]:
        """How often each row was picked, the most frequent first."""
        told = [name for pair in self.rows for name in pair]
        names = sorted(dict.fromkeys(told), key=lambda name: -told.count(name))
        return {name: told.count(name) for name in names}

    @property
    def names(self) -> list[str]:
        """Rows that were picked, the most frequent first."""
        return list(self.counts)


@dataclass(frozen=True)
class CompressionScores:
    """Answers of all rows, and what is told of their models, by name and seed."""

    runs: ScoredRuns
    rows: Mapping[str, Row]
    facts: Mapping[str, Sequence[Mapping[str, Any]]]
    """Attributes of the parts of each row, by seed."""
    judged: str
    constant: float
    numbers: bool = False
    """Whether answers are numbers, which are never quite the same."""

    def mean(self, name: str, fact: str) -> float:
        """A number of a row's models, the mean over seeds; those that diverged have none."""
        found = np.array([float(one[fact]) for one in self.facts[name]])
        there = found[np.isfinite(found)]
        return float(there.mean()) if len(there) else math.nan

    def times(self, name: str, fact: str) -> float:
        """How many times as much of it the teacher has."""
        return self.mean(TEACHER, fact) / self.mean(name, fact)

    def learnt(self, name: str = TEACHER) -> bool:
        """Whether a row surely beats a constant answer."""
        return self.runs.learnt(name, self.judged, self.constant)

    def learnt_nothing(self, name: str) -> bool:
        """Whether a row was trained, and is not surely better for it than a constant answer.

        What was not trained, but rounded or cut, lost what it does not have any more.
        """
        return self.mean(name, "epochs") != 0 and not self.learnt(name)

    def kept(self, name: str, *, above: bool = False) -> Estimate | None:
        """The share of the teacher's score; or of what it has above a constant answer."""
        key = (name, TEACHER, "kept", str(above))
        if key not in self._known:
            floor = self.constant if above else 0.0
            self._known[key] = self.runs.kept(name, TEACHER, self.judged, floor=floor)
        return self._known[key]

    @cached_property
    def _known(self) -> dict[tuple[str, ...], Estimate | None]:
        """What was computed once: tables, claims and the best of all ask for the same."""
        return {}

    def kept_surely(self, name: str) -> Estimate | None:
        """The same for claims; its control is a constant answer.

        Where the teacher is a little better than such an answer, the answer has nine tenths of its
        score, and would bear out that nine tenths are kept.
        """
        return self._beyond_constant(name, self.kept(name), self.runs)

    def _beyond_constant(
        self, name: str, found: Estimate | None, runs: ScoredRuns
    ) -> Estimate | None:
        beyond = runs.over_constant(name, self.judged, self.constant)
        return found and found.with_controls({"a constant answer": beyond})

    def over(self, one: str, other: str) -> Estimate | None:
        """How much higher one row scores, over seeds and examples."""
        if (one, other) not in self._known:
            self._known[one, other] = self.runs.difference(
                one, other, self.judged, in_seeds=True, once=True
            )
        return self._known[one, other]

    def over_alone(self, name: str) -> Estimate | None:
        """How much higher a student scores than the better one of its shape without a teacher."""
        names = self.rows[name].alone
        return least(self.over(name, other) for other in names) if names else None

    def flips(self, name: str) -> Flips:
        """Which answers are others than the teacher's."""
        labels = self.runs.labels
        own, before = (self.runs.predictions[n] for n in (name, TEACHER))
        if self.numbers:
            moved = float(np.abs(own - before).mean() / labels.std())
            return Flips(None, math.nan, math.nan, None, moved)
        accuracy = find_metric("accuracy")
        same = np.stack([accuracy.statistics(a, b) for a, b in zip(own, before, strict=True)])
        agreed = crossed_score(accuracy, same, level=self.runs.level)
        changed = replace(agreed, value=1 - agreed.value, low=1 - agreed.high, high=1 - agreed.low)
        right, was = (x == labels for x in (own, before))
        sides = (self.runs.statistics(n, "accuracy") for n in (name, TEACHER))
        net = crossed_difference(accuracy, *sides, level=self.runs.level, once=True)
        if len(own) < 2:
            changed, net = (replace(e, low=math.nan, high=math.nan) for e in (changed, net))
        lost, won = float((was & ~right).mean()), float((~was & right).mean())
        return Flips(changed, lost, won, net, math.nan)

    # The best of several ------------------------------------------------------------------------

    def small(self) -> list[str]:
        """Rows of methods whose models are small enough, and not the same numbers in 16 bits."""
        return [
            name
            for name, row in self.rows.items()
            if row.kind == METHOD
            and row.methods != _SAME_NUMBERS
            and self.times(name, "bytes") >= LEAST_SMALLER
        ]

    def students(self) -> list[str]:
        """Rows of students that have baselines of the same shape."""
        known = self.runs.predictions
        return [
            name
            for name, row in self.rows.items()
            if row.alone and all(other in known for other in row.alone)
        ]

    def picked(self, names: Sequence[str]) -> Picked | None:
        """The best of these rows, by examples and seeds that do not score it.

        Seeds of even and of odd number pick for each other. If all other seeds picked for each one,
        nearly the same runs would pick everywhere, and runs of the best would not be as independent
        as their interval takes them for. With one seed there are no others, and examples alone
        decide.
        """
        if not names or len(self.runs.labels) < FEWEST:
            return None
        half, seeds = self._half, self._seeds
        scores = {name: (self._scores(name, half), self._scores(name, ~half)) for name in names}

        def best(seed: int, on: int) -> str:
            by = [k for k in range(seeds) if k % 2 != seed % 2] or [seed]
            return max(names, key=lambda name: float(scores[name][on][by].mean()))

        rows = tuple((best(k, 1), best(k, 0)) for k in range(seeds))
        return Picked(rows, tuple(names))

    @property
    def _seeds(self) -> int:
        return len(self.runs.predictions[TEACHER])

    @property
    def _half(self) -> NDArray[np.bool_]:
        """Which examples are in the first half."""
        return np.asarray(np.random.default_rng(0).permutation(len(self.runs.labels)) % 2 == 0)

    def _scores(self, name: str, some: NDArray[np.bool_]) -> Floats:
        """The score of each run on some examples."""
        metric, labels = find_metric(self.judged), self.runs.labels[some]
        said = self.runs.predictions[name][:, some]
        return np.array([metric.score(row, labels) for row in said])

    def _joined(self, rows: Sequence[tuple[str, str]]) -> Floats:
        """Answers (seeds, examples) of one row on the first half and of another on the second.

        Numbers get the same mean and spread in both halves: a correlation does not ask for them in
        one model, and must not for two.
        """
        half = self._half
        found = np.empty((len(rows), len(half)))
        for k, pair in enumerate(rows):
            for name, some in zip(pair, (half, ~half), strict=True):
                own = self.runs.predictions[name][k][some]
                found[k, some] = _standard(own) if self.numbers else own
        return found

    def kept_by(self, picked: Picked) -> Estimate | None:
        """The share of the teacher's score that the best row keeps.

        Another row than the one that was picked may be the best. So it surely keeps less than some
        share only where every row does: the upper bound is the highest of theirs.
        """
        runs = self._with({_PICKED: self._joined(picked.rows)})
        found = self._beyond_constant(_PICKED, runs.kept(_PICKED, TEACHER, self.judged), runs)
        return _reaching(found, [self.kept(name) for name in picked.among])

    def best_over_alone(self, picked: Picked) -> Estimate | None:
        """How much higher the best student scores than each model of its size without a teacher.

        These are those of its shape, run by run, and other small models of its size. The upper
        bound is the highest of all students'.
        """
        starts = range(len(self.rows[picked.rows[0][0]].alone))
        others = [
            self._joined([(self.rows[a].alone[at], self.rows[b].alone[at]) for a, b in picked.rows])
            for at in starts
        ]
        others += [self.runs.predictions[name] for name in self._of_size(picked)]
        best = self._joined(picked.rows)
        found = least(
            self._with({_PICKED: best, _AGAINST: other}).difference(
                _PICKED, _AGAINST, self.judged, in_seeds=True, once=True
            )
            for other in others
        )
        return _reaching(found, [self.over_alone(name) for name in picked.among])

    def _of_size(self, picked: Picked) -> list[str]:
        """Small models that were pre-trained, as large as one of the students that were picked."""
        sizes = [self.mean(name, "parameters") for name in picked.names]
        return [
            name
            for name, row in self.rows.items()
            if row.kind == SMALL
            and any(1 / _NEAR <= self.mean(name, "parameters") / size <= _NEAR for size in sizes)
        ]

    def _with(self, more: Mapping[str, Floats]) -> ScoredRuns:
        return replace(self.runs, predictions={**self.runs.predictions, **more})


def _standard(numbers: Floats) -> Floats:
    spread = float(numbers.std())
    return np.asarray((numbers - numbers.mean()) / (spread or 1.0))


def _reaching(found: Estimate | None, others: Iterable[Estimate | None]) -> Estimate | None:
    """An estimate whose upper bound is no lower than those of the others."""
    if found is None or math.isnan(found.high):
        return found
    highs = [one.high for one in others if one is not None and not math.isnan(one.high)]
    return replace(found, high=max([found.high, *highs]))


def speed_ups(spent: xr.DataArray, level: float) -> dict[tuple[str, str, int], Estimate]:
    """How many times as fast as the teacher, by row, device and batch size; over rounds.

    Ratios are of the same round, so that what slows the machine slows both; their logarithms have
    Student's interval.
    """
    found = {}
    for row in spent["row"].to_numpy().tolist():
        for device in spent["device"].to_numpy().tolist():
            for size in spent["size"].to_numpy().tolist():
                both = spent.sel(row=row, device=device, size=size).to_numpy()
                if not np.isfinite(both).all():  # its training diverged
                    continue
                ratio = repeated(np.log(both[0] / both[1]), level)
                value, low, high = (math.exp(x) for x in (ratio.value, ratio.low, ratio.high))
                one = Estimate(value, low, high, ratio.n, level, unit="rounds")
                found[str(row), str(device), int(size)] = one
    return found


def speed_table(speeds: Mapping[tuple[str, str, int], Estimate]) -> pd.DataFrame:
    """One row for each model, device and size of batches."""
    import pandas as pd

    rows = [
        {"row": row, "device": device, "batch": size}
        | {"faster": e.value, "faster_low": e.low, "faster_high": e.high, "rounds": e.n}
        for (row, device, size), e in speeds.items()
    ]
    columns = ["row", "device", "batch", "faster", "faster_low", "faster_high", "rounds"]
    return pd.DataFrame(rows, columns=columns)
