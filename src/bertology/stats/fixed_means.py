"""The mean of one number over a few data sets that were chosen, not drawn: how sure it is.

Nothing is said of other data sets, so how far these lie apart is no error. What is uncertain is
each number: over a few runs of its own, and over its own examples. Data sets share no example, so
that variances of examples add. Those of runs add too where runs share nothing but the number of
their seed. Where a stage before, or weights that are drawn, are the same for a seed whatever the
data (`shared`), runs of one seed may err to the same side on all data sets: then standard errors
add, which is the most that they can be together.

Degrees of freedom of the runs are Welch and Satterthwaite's, but never more than half as many again
as the data set with the fewest runs has alone. They are estimated: where one data set makes nearly
all of the error, and its few runs happen to lie close, they come out too many just where the error
comes out too small. At 95 % that hardly matters; at the level of fifteen comparisons such intervals
missed up to five times as often as they may (`benchmarks/means_over_tasks.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from bertology.arrays import Floats
from bertology.errors import DataError
from bertology.stats.crossed import joint_freedom
from bertology.stats.intervals import Estimate, check_level
from bertology.stats.repeated import repeated

MOST = 1.5  # times the fewest degrees of freedom


@dataclass(frozen=True)
class OfRuns:
    """One number of a data set: the standard errors that its runs and its examples give it."""

    value: float
    runs: int
    examples: int
    over_runs: float
    """NaN where there is one run only."""
    over_examples: float

    @classmethod
    def of(cls, found: Estimate, by_run: ArrayLike, examples: int) -> OfRuns:
        """Of a crossed interval (`stats/crossed.py`), and the number that each run gives.

        What the runs do not explain of the longer arm is of the examples.
        """
        values = np.asarray(by_run, dtype=np.float64)
        whole = max(found.high - found.value, found.value - found.low)
        if values.size < 2 or math.isnan(whole):
            return cls(found.value, values.size, examples, math.nan, math.nan)
        seeds = repeated(values, found.level)
        # Runs that agree to the last digit have no interval: examples make all of it.
        arm = 0.0 if math.isnan(seeds.low) else seeds.high - seeds.value
        left = math.sqrt(max(whole**2 - arm**2, 0.0))
        quantile = float(stdtrit(examples - 1, (1 + found.level) / 2))
        spread = float(values.std(ddof=1)) if arm else 0.0
        return cls(
            found.value, values.size, examples, spread / math.sqrt(values.size), left / quantile
        )


def mean_over_fixed(
    found: Sequence[OfRuns],
    level: float = 0.95,
    *,
    shared: bool = False,
    within: tuple[float, float] = (-math.inf, math.inf),
) -> Estimate:
    """The mean; its bounds are NaN where one of the data sets has one run only.

    Both errors are put together as squares of their arms, as those of each data set are, and so
    at every `level` anew: bounds of a few runs grow faster than those of examples.
    """
    check_level(level, "mean_over_fixed")
    if not found:
        raise DataError("A mean over data sets needs one at least. Got none.")
    value = float(np.mean([one.value for one in found]))
    fewest = min(one.runs for one in found)
    over_runs = np.array([one.over_runs for one in found])
    if np.isnan(over_runs).any():
        return Estimate(value, math.nan, math.nan, fewest, level, unit="seeds")
    over_examples = np.array([one.over_examples for one in found])
    if np.isinf(over_examples).any():  # one of the numbers may be any: so may their mean
        return Estimate(value, *within, fewest, level, unit="seeds")
    tail, n = (1 + level) / 2, len(found)
    own = np.array([one.runs - 1 for one in found], dtype=np.float64)
    least = float(own[over_runs > 0].min(initial=own.max()))
    few = least if shared else min(_welch(over_runs, own), MOST * least)
    many = _welch(over_examples, np.array([one.examples - 1 for one in found], dtype=np.float64))
    error = over_runs.sum() if shared else math.hypot(*over_runs)
    seeds = float(stdtrit(few, tail)) * float(error) / n
    examples = float(stdtrit(many, tail)) * math.hypot(*over_examples) / n
    whole = math.hypot(seeds, examples)
    return Estimate(
        value,
        max(within[0], value - whole),
        min(within[1], value + whole),
        fewest if seeds else min(one.examples for one in found),
        level,
        unit="seeds" if seeds else "examples",
        lasting=examples / whole if seeds else 0.0,
        remedy="more seeds and more examples would narrow it",
        freedom=joint_freedom((seeds, few), (examples, many), level),
    )


def _welch(errors: Floats, freedom: Floats) -> float:
    """Welch and Satterthwaite's degrees of freedom of a sum; without an error, the fewest."""
    squares = errors**2
    below = float((squares**2 / freedom).sum())
    return float(squares.sum() ** 2 / below) if below else float(freedom.min())
