"""What probes told of sentences with negative polarity items, and comparisons of what they tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.stats import Estimate, mean_interval
from bertology.stats.cross_fitting import cross_fitted, picked_on_other_half
from bertology.studies.cloze.npi_licensing.paradigms import FACTORS, Paradigms
from bertology.studies.designs.probe_scores import among_copies

if TYPE_CHECKING:
    import xarray as xr

Floats = NDArray[np.float64]
ACCEPTABLE = "acceptable"
TASKS = (ACCEPTABLE, *FACTORS)
SEEN, NEW = "seen", "new"  # whether probes trained on the environment, or on the item
_FOLDS = 5
_FEWEST = 5  # units; with fewer, not even all signs alike would be sure


def labels_of(known: Paradigms) -> NDArray[np.int64]:
    """(N, 8): of each task, for both ways to train."""
    return np.tile(np.column_stack([known.label, known.factors]), 2)


def folds_of(known: Paradigms, seed: int) -> NDArray[np.int64]:
    """(N, 8): some paradigms of all environments for `seen`; for `new` a whole environment.

    Items stand in all environments: whether there is one is asked where the item is new.
    """
    _, item = np.unique(known.item, return_inverse=True)
    order = np.random.default_rng(seed).permutation(item.max() + 1)
    environment, npi = (_numbers(names) for names in (known.environment, known.npi))
    mixed = order[item] % _FOLDS
    return np.column_stack([*[mixed] * 4, *[environment] * 3, npi])


def _numbers(names: NDArray[np.str_]) -> NDArray[np.int64]:
    """Of each name one; all -1 where there is only one."""
    known, found = np.unique(names, return_inverse=True)
    return found if len(known) > 1 else np.full(len(names), -1)


def unit_means(values: Floats, units: NDArray[np.str_]) -> tuple[list[str], Floats]:
    """Names of units (U,), and means (…, U) of values (…, N) over what each has; NaN of nothing."""
    names, number = np.unique(units, return_inverse=True)
    told = np.isfinite(values)
    found = np.full((*values.shape[:-1], len(names)), np.nan)
    for at in range(len(names)):
        here = number == at
        count = told[..., here].sum(axis=-1)
        total = np.where(told[..., here], values[..., here], 0.0).sum(axis=-1)
        found[..., at] = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return [str(name) for name in names], found


@dataclass(frozen=True)
class Leanings:
    """What probes of one model lean to, where they did not train."""

    known: Paradigms
    values: Floats  # (tasks, ways to train, layers with the input first, N)

    @classmethod
    def of(cls, part: xr.Dataset, known: Paradigms) -> Leanings:
        """Of a measured part."""
        found = part["leaning"].to_numpy().astype(float)  # (tasks of both ways, layers, N)
        return cls(known, found.reshape(2, len(TASKS), *found.shape[1:]).swapaxes(0, 1))

    def right(self, task: str, trained: str) -> Floats:
        """(layers, N): 1 where the right side is leant to; NaN where nothing was asked."""
        leaning = self.values[TASKS.index(task), (SEEN, NEW).index(trained)]
        truth = labels_of(self.known)[:, TASKS.index(task)]
        return np.where(np.isnan(leaning), np.nan, (leaning > 0) == (truth == 1))

    def acceptability(self, trained: str) -> Floats:
        """(N,): leanings of the layer that was best on the other half of paradigms."""
        leaning = self.values[0, (SEEN, NEW).index(trained), 1:]
        items, scores = unit_means(self.right(ACCEPTABLE, trained)[1:], self.known.item)
        picked = picked_on_other_half(scores.T[:, None])[:, 0]
        number = np.searchsorted(items, self.known.item)
        return np.asarray(leaning[picked[number], np.arange(leaning.shape[1])], float)

    def best(self, task: str, units: NDArray[np.str_]) -> Floats:
        """(U,): right answers in new surroundings, at the layer picked on the other units."""
        _, scores = unit_means(self.right(task, NEW)[1:], units)
        return cross_fitted(scores.T[:, None])[0][:, 0]


def better_told(
    one: str, other: str, of: Leanings, copies: Sequence[Leanings], *, by: str, level: float
) -> Estimate | None:
    """How much better a task is told than another, beyond copies with shuffled weights.

    `by` says what is new where `one` is asked, and so what the interval is over: a probe that takes
    a new word for the wrong thing errs in all sentences that have it.
    """
    units: NDArray[np.str_] = getattr(of.known, by)
    if len(np.unique(units)) < _FEWEST:
        return None
    more = of.best(one, units) - of.best(other, units)
    chance = np.array([copy.best(one, units) - copy.best(other, units) for copy in copies])
    beyond = more - chance.mean(axis=0)
    if not np.isfinite(beyond).all():
        return None
    found = mean_interval(beyond, level).counting(_UNITS[by])
    return among_copies(found, chance.mean(axis=1).tolist())


_UNITS: Mapping[str, str] = {"environment": "environments", "npi": "items"}
