"""Shares of classes, as a classifier that makes mistakes names them.

A classifier that takes a fifth of class a for class b shifts the shares of both. Items whose class
is known show how often it does: the table T of P(named | seen). What is named is then p = π T, so
the shares are π = p T⁻¹ (for two classes: Rogan & Gladen, 1978). The correction is linear in what
is named, so each example has a corrected share of its own, within known bounds, and the interval
over examples holds for any bounded values. T is known from a sample only, and differs between
models, also from those that were checked to the one that is asked about. So tables are drawn that
one more model could have: one of the checked models by chance, then its texts with replacement. The
two sources of error are added on each side as squares (the MOVER rule of Zou & Donner, 2008).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bertology.arrays import Floats, Ints
from bertology.stats.intervals import (
    Estimate,
    bounded_mean_bounds,
    check_level,
    percentile_interval,
)

_RESAMPLES = 1000
_KEPT = 2.0  # items by which a resampled row is drawn to the row of all, where it has few


@dataclass(frozen=True, eq=False)
class Mistakes:
    """Items whose class is known, and the class that a classifier named without knowing it."""

    seen: Ints  # (items,)
    named: Ints  # (items,)
    models: Ints  # (items,), whose items they are
    texts: Ints  # (items,), drawn together; texts of two models are two texts
    classes: int
    unit: str = "labelled items"

    @cached_property
    def table(self) -> Floats:
        """P(named | seen), rows sum to 1; half an item is added, so that nothing is impossible."""
        counts = np.zeros((self.classes, self.classes))
        np.add.at(counts, (self.seen, self.named), 1.0)
        counts += 0.5 / self.classes
        return np.asarray(counts / counts.sum(-1, keepdims=True))

    @cached_property
    def resampled(self) -> Floats:
        """(_RESAMPLES, classes, classes): tables that one more model could have."""
        chance = np.random.default_rng(0)
        whole = np.unique(np.stack([self.models, self.texts], 1), axis=0, return_inverse=True)
        groups, of_item = whole[0][:, 0], whole[1].ravel()
        counts = np.zeros((len(groups), self.classes, self.classes))
        np.add.at(counts, (of_item, self.seen, self.named), 1.0)
        owners = [np.flatnonzero(groups == m) for m in np.unique(groups)]
        weights = np.zeros((_RESAMPLES, len(groups)))
        picked = chance.multinomial(1, np.full(len(owners), 1 / len(owners)), _RESAMPLES)
        for own, times in zip(owners, picked.T, strict=True):
            even = np.full(len(own), 1 / len(own))
            weights[:, own] = chance.multinomial(times * len(own), even)
        sums = np.tensordot(weights, counts, 1) + _KEPT * self.table
        return np.asarray(sums / sums.sum(-1, keepdims=True))

    @cached_property
    def inverses(self) -> Floats:
        """(_RESAMPLES, classes, classes): what undoes the mistakes of each resampled table."""
        return np.asarray(np.linalg.inv(self.resampled), np.float64)

    @property
    def inflation(self) -> float:
        """By which the spread of m checked models is too short: the root of m / (m - 1)."""
        count = len(np.unique(self.models))
        return float(np.sqrt(count / (count - 1))) if count > 1 else 1.0


class NamedShares:
    """Shares of what was seen, of shares (examples, classes) of what was named."""

    def __init__(self, named: Floats, mistakes: Mistakes, *, level: float = 0.95) -> None:
        self._named, self._mistakes = named, mistakes
        self._level = check_level(level, "NamedShares")
        self._plain = np.linalg.inv(mistakes.table)
        kept = np.maximum(named.mean(0) @ self._plain, 0.0)
        self.shares: Floats = kept / kept.sum()
        """(classes,): corrected, none below 0, the sum is 1."""

    def of(self, *classes: int) -> Estimate:
        """The share of some classes together.

        Its `n` and unit are of the larger source of error: examples, or items that were checked.
        """
        weights = self._plain[:, list(classes)].sum(-1)  # of each class that was named
        own = self._named @ weights  # (examples,)
        budget = float(np.log(2 / (1 - self._level)))
        low, high = bounded_mean_bounds(
            own[None], None, low=weights.min(), high=weights.max(), budget=budget
        )
        middle, wider = own.mean(), self._mistakes.inflation
        least, most = percentile_interval(
            self._under_other_mistakes[:, list(classes)].sum(-1), self._level
        )
        by_examples = np.array([middle - low[0], high[0] - middle])
        by_mistakes = wider * np.maximum([middle - least, most - middle], 0.0)
        below, above = reach = np.hypot(by_examples, by_mistakes)
        value = float(self.shares[list(classes)].sum())
        ends = np.clip([middle - below, middle + above], 0.0, 1.0)
        more = by_mistakes.sum() > by_examples.sum()
        # Mistakes differ from model to model, so more items of the same models tell little more.
        stays = float(by_mistakes.sum() / reach.sum())
        return Estimate(
            value,
            min(value, ends[0]),
            max(value, ends[1]),
            len(self._mistakes.seen) if more else len(own),
            self._level,
            self._mistakes.unit if more else "examples",
            lasting=1.0 if more else min(stays, 1.0),
            remedy=f"{self._mistakes.unit} of more models would narrow it",
        )

    @cached_property
    def _under_other_mistakes(self) -> Floats:
        """(_RESAMPLES, classes): the same names under each resampled table."""
        return np.asarray(self._named.mean(0) @ self._mistakes.inverses)
