"""Answers on fragments and on the old task by seed: means, differences and the trend over steps.

In each fragment every label weighs the same, and every fragment does, so that a constant answer
scores exactly 1 / labels on everything. Intervals are over seeds and examples together
(`stats/crossed.py`); those of single fragments hold for all fragments together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats
from bertology.errors import DataError
from bertology.metrics import find_metric
from bertology.stats import Estimate
from bertology.stats.balanced import weights_by_class
from bertology.stats.crossed import crossed_difference, crossed_score

if TYPE_CHECKING:
    import xarray as xr

OLD = "old"  # the part that learns the old task
TAUGHT, INOCULATED, HYPOTHESIS = "taught", "inoculated", "hypothesis"
TITLES = {
    TAUGHT: "new examples only",
    INOCULATED: "inoculated",
    HYPOTHESIS: "hypothesis only",
}
_FEWEST = 5  # examples of each label: a fragment with fewer of one is not judged
_SCORE = find_metric("accuracy")  # of weighted answers: the weighted share of right ones

Key = tuple[str, int]  # a method and an amount


def part_name(fragment: int, amount: int, seed: int) -> str:
    """Fragments are numbered: their names may hold anything."""
    return f"fragment-{fragment}-amount-{amount}-seed-{seed}"


def parted(part: str) -> tuple[int, int, int]:
    """Number of the fragment (-1: the old task), amount and seed."""
    before, _, seed = part.rpartition("-seed-")
    if before == OLD:
        return -1, 0, int(seed)
    _, fragment, _, amount = before.split("-")
    return int(fragment), int(amount), int(seed)


@dataclass(frozen=True)
class FragmentRuns:
    """Which answers are right: 1 or 0, seeds first."""

    fragments: tuple[str, ...]
    group: NDArray[np.int64]  # (N,) the number of the fragment
    labels: Floats  # (N,)
    steps: Floats  # (N,) NaN: not known
    old_labels: Floats  # (M,)
    classes: int
    zero: Floats  # (S, N) before any teaching
    old: Floats  # (S, M)
    new: Mapping[Key, Floats]  # (S, N) after it
    after: Mapping[Key, Floats]  # (S, F, M) the old task after it
    level: float

    @classmethod
    def read(cls, measured: Mapping[str, xr.Dataset], level: float) -> FragmentRuns:
        """The answers of all parts."""
        parts = {parted(name): found for name, found in measured.items()}
        first = parts[-1, 0, 0]
        seeds = sorted({seed for _, _, seed in parts})
        fragments = tuple(str(name) for name in first["fragment"].to_numpy())
        group, labels = first["group"].to_numpy(), first["labels"].to_numpy().astype(float)
        old_labels = first["old_labels"].to_numpy().astype(float)
        for seed in seeds:
            own = parts[-1, 0, seed]
            if not np.array_equal(own["labels"], labels) or (
                own.attrs["train_fingerprint"] != first.attrs["train_fingerprint"]
            ):
                raise DataError(
                    "The data changed between two parts of this study.",
                    hint="Do all of it again with force=True (--force).",
                )

        def before(name: str, right: Floats) -> Floats:
            return np.stack([(parts[-1, 0, s][name].to_numpy() == right) * 1.0 for s in seeds])

        amounts = sorted({amount for _, amount, _ in parts if amount})
        new = {
            (m, k): np.zeros((len(seeds), len(labels)))
            for m in (TAUGHT, INOCULATED, HYPOTHESIS)
            for k in amounts
        }
        after = {
            (m, k): np.zeros((len(seeds), len(fragments), len(old_labels)))
            for m in (TAUGHT, INOCULATED)
            for k in amounts
        }
        for (fragment, amount, seed), found in parts.items():
            if fragment < 0:
                continue
            here, at = group == fragment, seeds.index(seed)
            said, told = found["said"].to_numpy(), found["old_said"].to_numpy()
            for i, method in enumerate(found["method"].to_numpy().tolist()):
                new[method, amount][at, here] = said[i] == labels[here]
                if (method, amount) in after:
                    after[method, amount][at, fragment] = told[i] == old_labels
        return cls(
            fragments,
            group,
            labels,
            first["steps"].to_numpy().astype(float),
            old_labels,
            int(first.attrs["classes"]),
            before("said", labels),
            before("old_said", old_labels),
            new,
            after,
            level,
        )

    # What is compared ---------------------------------------------------------------------------

    @property
    def seeds(self) -> int:
        """Runs of everything."""
        return len(self.old)

    @property
    def chance(self) -> float:
        """What any constant answer scores."""
        return 1 / self.classes

    @property
    def amounts(self) -> list[int]:
        """How many examples were taught, in order."""
        return sorted({amount for _, amount in self.new})

    @property
    def most(self) -> int:
        """The largest amount; 0 where nothing was taught."""
        return max(self.amounts, default=0)

    @cached_property
    def judged(self) -> list[int]:
        """Fragments in which every label has some examples: a constant answer scores by chance."""
        found = []
        for at in range(len(self.fragments)):
            _, counts = np.unique(self.labels[self.group == at], return_counts=True)
            if len(counts) == self.classes and counts.min() >= _FEWEST:
                found.append(at)
        return found

    def weights(self, fragments: Iterable[int]) -> Floats:
        """(N,) every fragment, and every label in it, weighs the same."""
        chosen = list(fragments)
        found = np.zeros(len(self.labels))
        for at in chosen:
            here = self.group == at
            found[here] = weights_by_class(self.labels[here]) / len(chosen)
        return found

    @cached_property
    def old_weights(self) -> Floats:
        """(M,) the same for the old task."""
        return weights_by_class(self.old_labels)

    def score(self, right: Floats, weights: Floats, tests: int = 1) -> Estimate:
        """The mean over seeds; `tests`: how many such intervals hold together."""
        here = weights > 0
        level = 1 - (1 - self.level) / tests
        return self._sure(crossed_score(_SCORE, _rows(right, weights)[:, here], level=level))

    def over(self, one: Floats, other: Floats, weights: Floats, tests: int = 1) -> Estimate:
        """How much higher one is than the other, on the same examples."""
        here, level = weights > 0, 1 - (1 - self.level) / tests
        first, second = (_rows(right, weights)[:, here] for right in (one, other))
        return self._sure(crossed_difference(_SCORE, first, second, level=level))

    def across(
        self,
        one: tuple[Floats, Floats],
        other: tuple[Floats, Floats],
        tests: int = 1,
    ) -> Estimate:
        """The same of answers on other examples; each side with its weights."""
        sides = [_rows(right, weights)[:, weights > 0] for right, weights in (one, other)]
        gaps = [np.zeros_like(side) for side in sides]
        first = np.concatenate([sides[0], gaps[1]], axis=1)
        second = np.concatenate([gaps[0], sides[1]], axis=1)
        level = 1 - (1 - self.level) / tests
        return self._sure(crossed_difference(_SCORE, first, second, level=level))

    def _sure(self, found: Estimate) -> Estimate:
        """One seed says nothing of others."""
        return found if self.seeds > 1 else replace(found, low=math.nan, high=math.nan)

    # Quantities ---------------------------------------------------------------------------------

    def zero_shot_loss(self, fragments: Sequence[int], tests: int = 1) -> Estimate:
        """How much lower the model scores on fragments than on the task that it learnt."""
        weights = self.weights(fragments)
        return self.across((self.old, self.old_weights), (self.zero, weights), tests)

    def old_gain(self) -> Estimate:
        """How much better than chance the old task was learnt."""
        return _less(self.score(self.old, self.old_weights), self.chance)

    def taught_gain(self, fragments: Sequence[int], amount: int, tests: int = 1) -> Estimate:
        """What teaching gives over no teaching.

        Its controls are a constant answer, and a bag of words that learns from hypotheses alone.
        """
        weights, taught = self.weights(fragments), self.new[INOCULATED, amount]
        return self.over(taught, self.zero, weights, tests).with_controls(
            {
                "a constant answer": _less(self.score(taught, weights, tests), self.chance),
                "the words of hypotheses": self.over(
                    taught, self.new[HYPOTHESIS, amount], weights, tests
                ),
            }
        )

    def old_after(self, method: str, fragments: Sequence[int], amount: int) -> Floats:
        """(S, M) right answers on the old task, the mean over models that learnt fragments."""
        found: Floats = self.after[method, amount][:, list(fragments)].mean(axis=1)
        return found

    def old_loss(
        self, method: str, fragments: Sequence[int], amount: int, tests: int = 1
    ) -> Estimate:
        """What the old task loses by teaching."""
        after = self.old_after(method, fragments, amount)
        return self.over(self.old, after, self.old_weights, tests)

    def saved(self, fragments: Sequence[int], amount: int) -> Estimate:
        """How much more of the old task is kept with inoculation than without."""
        one, other = (self.old_after(m, fragments, amount) for m in (INOCULATED, TAUGHT))
        return self.over(one, other, self.old_weights)

    def per_step(self, right: Floats, fragments: Sequence[int], tests: int = 1) -> Estimate | None:
        """How much accuracy changes with one step more, within fragment and label.

        The slope of a straight line; None where examples of a label never differ in their steps.
        """
        away, centred = np.zeros(len(self.labels)), np.array(right)
        for at in fragments:
            for label in np.unique(self.labels[self.group == at]):
                here = (self.group == at) & (self.labels == label) & np.isfinite(self.steps)
                if here.any():
                    away[here] = self.steps[here] - self.steps[here].mean()
                    # Only differences within count: strata may be easy or hard.
                    centred[:, here] -= right[:, here].mean()
        if not (away**2).sum():
            return None
        slopes = away / (away**2).sum()
        up, down = np.maximum(slopes, 0), np.maximum(-slopes, 0)
        scale = float(up.sum())
        found = self.across((centred, up), (centred, down), tests)
        low, high = scale * found.low, scale * found.high
        return replace(found, value=scale * found.value, low=low, high=high)


def _rows(right: Floats, weights: Floats) -> Floats:
    """(S, N, 2): weighted right answers, and weights."""
    below = np.broadcast_to(weights, right.shape)
    return np.stack([right * weights, below], axis=-1)


def _less(found: Estimate, by: float) -> Estimate:
    ends = {n: getattr(found, n) - by for n in ("value", "low", "high")}
    return replace(found, **ends)
