"""Answers on pairs that mislead, by method and seed: scores, and how far heuristics are used.

Every heuristic, each of its labels, and each subcase there weighs the same, so that any constant
answer scores 50 %. Intervals count seeds, and what is drawn with the pairs: examples, or subcases
within heuristic and label where those differ by more (other templates would give other numbers).
Both are put together as squares of their arms, as in `stats/crossed.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from bertology.arrays import Floats
from bertology.errors import DataError
from bertology.metrics import find_metric
from bertology.stats import Estimate
from bertology.stats.balanced import weights_by_class
from bertology.stats.crossed import crossed_difference, crossed_score, joint_freedom
from bertology.stats.repeated import repeated
from bertology.studies.designs.trials import split_part
from bertology.studies.training.heuristics.data import ENTAILED, NOT

if TYPE_CHECKING:
    import xarray as xr

VANILLA = "vanilla"
OVERLAP = "overlap-only"
SEEDLESS = (OVERLAP,)  # nothing in them is drawn: one run is all there is
CHANCE = 0.5
_SCORE = find_metric("accuracy")  # of weighted answers: the weighted share of right ones
_BOTH = (ENTAILED, NOT)
_NEARLY_ALL = 0.99  # answers of a run that collapsed

Whole = NDArray[np.int64]


@dataclass(frozen=True)
class HeuristicRuns:
    """What was said: 1 where an answer is "not entailed", seeds first; by method."""

    said: Mapping[str, Floats]  # (S, N) of pairs that mislead
    control: Mapping[str, Floats]  # (S, M) of their controls
    task: Mapping[str, Floats]  # (S, K) of the task that was learnt
    labels: Floats  # (N,)
    task_labels: Floats  # (K,)
    group: Whole  # (N,) the number of the heuristic
    subcase: Whole  # (N,)
    controlled: Whole  # (M,) which pairs have controls
    groups: tuple[str, ...]
    subcases: tuple[str, ...]
    level: float

    @classmethod
    def read(cls, measured: Mapping[str, xr.Dataset], level: float) -> HeuristicRuns:
        """The answers of all parts."""
        first = next(iter(measured.values()))
        rows: dict[str, dict[str, dict[int, Floats]]] = {"said": {}, "control": {}, "task": {}}
        for part, found in measured.items():
            method, seed = split_part(part)
            if not np.array_equal(found["labels"], first["labels"]) or (
                found.attrs["scored_fingerprint"] != first.attrs["scored_fingerprint"]
            ):
                raise DataError(
                    "The data changed between two parts of this study.",
                    hint="Do all of it again with force=True (--force).",
                )
            for name, kept in rows.items():
                kept.setdefault(method, {})[seed] = found[name].to_numpy().astype(float)

        def stacked(name: str) -> dict[str, Floats]:
            return {m: np.stack([of[s] for s in sorted(of)]) for m, of in rows[name].items()}

        return cls(
            stacked("said"),
            stacked("control"),
            stacked("task"),
            first["labels"].to_numpy().astype(float),
            first["task_labels"].to_numpy().astype(float),
            first["group"].to_numpy(),
            first["subcase"].to_numpy(),
            first["controlled"].to_numpy(),
            tuple(str(name) for name in first["heuristic"].to_numpy()),
            tuple(str(name) for name in first["case"].to_numpy()),
            level,
        )

    def kept(self) -> xr.Dataset:
        """The answers of plain fine-tuning as a result keeps them: models are compared by them."""
        import xarray as xr

        def small(values: Floats | Whole) -> NDArray[np.int32]:
            return np.asarray(values, dtype=np.int32)

        return xr.Dataset(
            {
                "said": (("seed", "example"), small(self.said[VANILLA])),
                "control": (("seed", "place"), small(self.control[VANILLA])),
                "task": (("seed", "task_example"), small(self.task[VANILLA])),
                "labels": ("example", small(self.labels)),
                "task_labels": ("task_example", small(self.task_labels)),
                "group": ("example", small(self.group)),
                "subcase": ("example", small(self.subcase)),
                "controlled": ("place", small(self.controlled)),
            },
            {"heuristic": list(self.groups), "case": list(self.subcases)},
        )

    @classmethod
    def of_kept(cls, kept: xr.Dataset, level: float) -> HeuristicRuns:
        """The answers of plain fine-tuning that a result kept."""

        def numbers(name: str) -> Floats:
            return kept[name].to_numpy().astype(np.float64)

        return cls(
            said={VANILLA: numbers("said")},
            control={VANILLA: numbers("control")},
            task={VANILLA: numbers("task")},
            labels=numbers("labels"),
            task_labels=numbers("task_labels"),
            group=numbers("group").astype(np.int64),
            subcase=numbers("subcase").astype(np.int64),
            controlled=numbers("controlled").astype(np.int64),
            groups=tuple(map(str, kept["heuristic"].to_numpy())),
            subcases=tuple(map(str, kept["case"].to_numpy())),
            level=level,
        )

    # Weights --------------------------------------------------------------------------------------

    @property
    def seeds(self) -> int:
        """Runs of the plain model."""
        return len(self.said[VANILLA])

    @cached_property
    def strata(self) -> Whole:
        """(N,) the heuristic and the label of each pair, as one number."""
        return np.asarray(2 * self.group + self.labels.astype(int))

    def weights(self, groups: Iterable[int] | None = None, labels: Iterable[int] = _BOTH) -> Floats:
        """(N,) with the sum 1: each heuristic, label, subcase, and pair in it, weighs the same."""
        chosen = range(len(self.groups)) if groups is None else groups
        wanted = [2 * g + y for g in chosen for y in labels]
        found = np.zeros(len(self.labels))
        for stratum in wanted:
            here = self.strata == stratum
            found[here] = weights_by_class(self.subcase[here]) / len(wanted)
        return found

    def of_subcase(self, subcase: int) -> Floats:
        """(N,) the pairs of one subcase."""
        here = self.subcase == subcase
        return np.asarray(here / here.sum())

    def right(self, method: str) -> Floats:
        """(S, N) 1 where the answer is right."""
        return np.asarray(self.said[method] == self.labels, dtype=np.float64)

    # Quantities -----------------------------------------------------------------------------------

    def score(self, method: str, weights: Floats, tests: int = 1) -> Estimate:
        """The weighted share of right answers; `tests`: how many such intervals hold together."""
        return self._estimate(method, self.right(method), None, weights, tests)

    def gain(self, method: str, other: str, weights: Floats, tests: int = 1) -> Estimate:
        """How much higher the score of one method is than that of another."""
        one, two = self.right(method), self.right(other)
        return self._estimate(method, one, two, weights, tests)

    def lead(self, one: Floats, other: Floats, weights: Floats, tests: int = 1) -> Estimate:
        """How much higher the score of some runs is than that of others on the same pairs.

        Both are (S, N) shares of right answers, of plain fine-tuning; seeds are paired by place.
        """
        return self._estimate(VANILLA, one, other, weights, tests)

    def use(self, method: str, weights: Floats, tests: int = 1) -> Estimate:
        """How much oftener pairs that are not entailed are taken for entailed than controls are.

        All of them are not entailed; only in the first does the heuristic say that they are.
        """
        at = self.controlled
        kept = weights[at]
        misled, apart = 1 - self.said[method][:, at], 1 - self.control[method]
        return self._estimate(method, misled, apart, kept / kept.sum(), tests, at)

    def taught_gain(self, taught: Mapping[int, str]) -> Estimate:
        """What counterexamples to a heuristic add to the score on its pairs, their mean.

        `taught`: for heuristics, by number, the model that learnt their counterexamples.
        """
        one = np.array(self.right(VANILLA))
        for group, method in taught.items():
            here = self.group == group
            one[:, here] = self.right(method)[:, here]
        weights = self.weights(taught)
        return self._estimate(VANILLA, one, self.right(VANILLA), weights, 1)

    def task_score(self, method: str) -> Estimate:
        """The score on the task that was learnt, in two labels that weigh the same."""
        rows = _rows(self.task_right(method), weights_by_class(self.task_labels))
        return self._sure(method, crossed_score(_SCORE, rows, level=self.level))

    def task_right(self, method: str) -> Floats:
        """(S, K) 1 where the answer on the task is right."""
        return np.asarray(self.task[method] == self.task_labels, dtype=np.float64)

    def task_lead(self, one: Floats, other: Floats) -> Estimate:
        """As `lead`, on the task that was learnt."""
        weights = weights_by_class(self.task_labels)
        sides = [_rows(side, weights) for side in (one, other)]
        return self._sure(VANILLA, crossed_difference(_SCORE, *sides, level=self.level))

    def learnt(self, method: str) -> bool:
        """Whether the task was surely learnt; of one seed, whether the score is above chance."""
        return _beyond_chance(self.task_score(method))

    def taught_learnt(self, method: str, groups: Iterable[int]) -> bool:
        """Whether a model that learnt counterexamples learnt anything: they, or the task.

        With counterexamples to all heuristics, the task as it is without them was never seen.
        """
        return self.learnt(method) or _beyond_chance(self.score(method, self.weights(groups)))

    def collapsed(self, method: str) -> int:
        """How many runs give nearly all examples of the task the same answer."""
        often = self.task[method].mean(axis=1)
        return int(np.sum(np.maximum(often, 1 - often) >= _NEARLY_ALL))

    def _sure(self, method: str, found: Estimate) -> Estimate:
        """One seed says nothing of others; where nothing is drawn there are no others."""
        return found if self.seeds > 1 or method in SEEDLESS else _bare(found)

    def _estimate(
        self,
        method: str,
        one: Floats,
        other: Floats | None,
        weights: Floats,
        tests: int,
        places: Whole | None = None,
    ) -> Estimate:
        """The weighted mean of one side, or of the difference of two on the same pairs."""
        level = 1 - (1 - self.level) / tests
        at = np.arange(len(self.labels)) if places is None else places
        here = weights > 0
        sides = [side[:, here] for side in (one, *(() if other is None else (other,)))]
        weight, at = weights[here], at[here]
        means = [_rows(side.mean(axis=0, keepdims=True), weight) for side in sides]
        if other is None:
            over_examples = crossed_score(_SCORE, means[0], level=level)
            within = _SCORE.within
        else:
            over_examples = crossed_difference(_SCORE, *means, level=level)
            within = _SCORE.differences_within
        seeds = max(len(side) for side in sides)
        each = sides[0] - (0.0 if other is None else sides[1])  # (S, n)
        value = float((each @ weight).mean())
        over_seeds = repeated(each @ weight, level)
        arm = 0.0 if math.isnan(over_seeds.low) else over_seeds.high - over_seeds.value
        template, freedom = self._over_subcases(each.mean(axis=0), weight, at, level)
        below = max(value - over_examples.low, template, 0.0)
        above = max(over_examples.high - value, template, 0.0)
        drawn = (below + above) / 2
        low, high = value - math.hypot(arm, below), value + math.hypot(arm, above)
        by_template = template >= drawn
        cases = len(np.unique(self.subcase[at]))
        unit, n = ("subcases", cases) if by_template else ("examples", len(weight))
        many = drawn, freedom if by_template else len(weight) - 1.0
        found = Estimate(value, max(within[0], low), min(within[1], high), n, level, unit)
        whole = math.hypot(arm, drawn)
        if whole:
            free = joint_freedom((arm, max(seeds - 1, 1)), many, level)
            found = replace(
                found,
                freedom=free,
                lasting=arm / whole,
                remedy=f"more seeds and more {unit} would narrow it",
            )
        if arm > drawn:
            found = replace(found, unit="seeds", n=seeds, lasting=drawn / whole)
        return self._sure(method, found)

    def _over_subcases(
        self, values: Floats, weights: Floats, at: Whole, level: float
    ) -> tuple[float, float]:
        """The arm of Student's interval over subcases within heuristic and label, and its freedom.

        None (0) where no heuristic has two subcases of a label.
        """
        strata, cases = self.strata[at], self.subcase[at]
        parts = []  # squared errors of the mean, and their freedom
        for stratum in np.unique(strata):
            own = strata == stratum
            share = weights[own].sum()
            means = []
            for case in np.unique(cases[own]):
                here = own & (cases == case)
                means.append(float(values[here] @ weights[here] / weights[here].sum()))
            if len(means) > 1:
                error = share**2 * float(np.var(means, ddof=1)) / len(means)
                parts.append((error, len(means) - 1))
        squared = sum(error for error, _ in parts)
        if squared <= 0:
            return 0.0, 1.0
        # Satterthwaite's degrees of freedom
        freedom = squared**2 / sum(error**2 / free for error, free in parts)
        return float(stdtrit(freedom, (1 + level) / 2)) * math.sqrt(squared), freedom


def greatest(found: Mapping[str, Estimate]) -> Estimate | None:
    """The largest of several numbers; it is below a border where each of them surely is."""
    from bertology.studies.designs.scored_runs import least

    turned = least(replace(one, value=-one.value, low=-one.high, high=-one.low)
                   for one in found.values())  # fmt: skip
    if turned is None:
        return None
    return replace(turned, value=-turned.value, low=-turned.high, high=-turned.low)


def less(found: Estimate, by: float) -> Estimate:
    """The same number beside another zero."""
    ends = {n: getattr(found, n) - by for n in ("value", "low", "high")}
    return replace(found, **ends)


def _beyond_chance(found: Estimate) -> bool:
    """Surely; of one seed, whether the value is."""
    return (found.value if math.isnan(found.low) else found.low) > CHANCE


def _rows(right: Floats, weights: Floats) -> Floats:
    """(S, N, 2): weighted right answers, and weights."""
    return np.stack([right * weights, np.broadcast_to(weights, right.shape)], axis=-1)


def _bare(found: Estimate) -> Estimate:
    return replace(found, low=math.nan, high=math.nan)
