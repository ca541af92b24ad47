"""Numbers of pairs of languages (source × target), of which there are only a dozen languages.

Every language is in many pairs, so pairs are not independent. A mean over pairs is told with
Student's interval over languages: of one source over its targets, of several by leaving out one
language at a time, as source and as target (the jackknife). A relation between two such matrices is
Spearman's correlation over the targets of each source, averaged over sources; how often as much
comes by chance is told by giving languages the places of others in one matrix, in rows and columns
alike (Mantel 1967). The partial relation takes out what others tell of both, in ranks.

`shared_ranks` asks whether the same heads rank high in each language.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtrit

from bertology.arrays import Bools, Floats, Ints
from bertology.stats.intervals import Estimate, mean_interval

FEWEST = 5
"""Targets of a source below which no relation is told: of four, no order is rare enough."""
_PERMUTED = 999


def over_languages(values: Floats, sources: Sequence[int], level: float) -> Estimate | None:
    """The mean of (sources, languages) where there is a number; None over fewer than two.

    `sources` are the places of the rows among the languages.
    """
    there = np.isfinite(values)
    if len(values) == 1:
        found = values[there]
        return mean_interval(found, level).counting("languages") if len(found) > 1 else None
    used = [one for one in range(values.shape[1]) if there[:, one].any() or one in sources]
    return _jackknifed(lambda left: _mean(values, sources, left), used, level)


def shared_ranks(
    halves: Floats, *, level: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> tuple[Floats, Estimate | None]:
    """Do the same heads rank high in each language? Correlations of all pairs, and their mean.

    `halves` are values (languages, 2, layers, heads), each over one half of the items. One
    language's first half is compared with another's second, and the other way round, so that no
    item makes two languages alike; on the diagonal stands how well a language agrees with itself.
    Heads are ranked among all and compared within their layer: that some layers matter more
    makes no heads alike. The mean over pairs has the jackknife's interval over languages, and
    shuffling the heads of each layer and language decides on which side of 0 it lies.
    """
    from scipy.stats import rankdata

    n, _, layers, heads = halves.shape
    ranks = rankdata(halves.reshape(n, 2, -1), axis=-1).reshape(halves.shape)
    ranks = ranks - ranks.mean(axis=-1, keepdims=True)
    sizes = np.sqrt((ranks**2).sum(axis=(2, 3), keepdims=True))
    ranks = np.divide(ranks, sizes, out=np.zeros_like(ranks), where=sizes > 0)
    flat = ranks.reshape(n, 2, -1)
    crossed = flat[:, 0] @ flat[:, 1].T
    found = (crossed + crossed.T) / 2
    apart = np.where(np.eye(n, dtype=bool), np.nan, found)
    estimate = over_languages(apart, range(n), level)
    if estimate is None:
        return found, None
    rng, pairs, value = np.random.default_rng(seed), n * (n - 1), float(np.nanmean(apart))
    own, as_much = float(np.trace(crossed)), 0
    both = ranks.transpose(0, 2, 3, 1)  # (languages, layers, heads, halves)
    for _ in range(resamples):
        order = rng.random((n, layers, heads)).argsort(axis=-1)
        sums = np.take_along_axis(both, order[..., None], axis=2).sum(axis=0).reshape(-1, 2)
        as_much += abs(float(sums[:, 0] @ sums[:, 1]) - own) >= abs(value) * pairs - 1e-9
    ends = replace(estimate, low=max(estimate.low, -1.0), high=min(estimate.high, 1.0))
    tested = replace(ends, tested=(0.0, (as_much + 1) / (resamples + 1)))
    return found, tested.at_level(level)


def _mean(values: Floats, sources: Sequence[int], left: int | None) -> float:
    kept = values[[s != left for s in sources]]
    kept = kept if left is None else np.delete(kept, left, axis=1)
    return float(np.nanmean(kept)) if np.isfinite(kept).any() else math.nan


def _jackknifed(
    of: Callable[[int | None], float], used: Sequence[int], level: float
) -> Estimate | None:
    without = np.array([of(one) for one in used])
    without, whole = without[np.isfinite(without)], float(of(None))
    n = len(without)
    if n < 3 or math.isnan(whole):
        return None
    error = math.sqrt((n - 1) / n * float(((without - without.mean()) ** 2).sum()))
    half = error * float(stdtrit(n - 1, (1 + level) / 2))
    return Estimate(whole, whole - half, whole + half, n, level, "languages")


@dataclass(frozen=True)
class Pairs:
    """What is known of the languages of some sources: (sources, languages) each, NaN for none."""

    values: Floats
    sources: Sequence[int]

    def relation(
        self,
        known: Floats,
        others: Sequence[Floats] = (),
        *,
        level: float = 0.95,
        seed: int = 0,
    ) -> Estimate | None:
        """How `values` rise with `known` (languages, languages), beyond what `others` tell.

        The interval is Fisher's over the targets of one source (Bonett and Wright's error for
        ranks), or the jackknife's over languages, and says no more than the permutation test does.
        None where targets are too few, or one side is the same for all.
        """
        languages = self.values.shape[1]
        found = self._mean(known, others, None)
        if math.isnan(found):
            return None
        if len(self.values) == 1:
            n = int(np.isfinite(self.values).sum())
            freedom = n - 3 - len(others)
            if freedom < 2:
                return None
            half = math.sqrt((1 + found**2 / 2) / freedom) * float(
                stdtrit(freedom, (1 + level) / 2)
            )
            far = math.atanh(min(max(found, -0.999), 0.999))
            estimate = Estimate(
                found, min(math.tanh(far - half), found), max(math.tanh(far + half), found),
                n, level, "languages", freedom=freedom,
            )  # fmt: skip
        else:
            made = _jackknifed(
                lambda left: self._mean(known, others, left), range(languages), level
            )
            if made is None:
                return None
            estimate = replace(made, low=max(made.low, -1.0), high=min(made.high, 1.0))
        p = self._chance(known, others, found, np.random.default_rng(seed))
        tested = replace(estimate, tested=(0.0, p))
        return tested.at_level(level)

    def value(self, known: Floats, others: Sequence[Floats] = ()) -> float:
        """The relation alone; NaN where there is none."""
        return self._mean(known, others, None)

    def _mean(self, known: Floats, others: Sequence[Floats], left: int | None) -> float:
        """The mean over sources, without one language."""
        as_they_are: Ints = np.arange(self.values.shape[1])[None]
        return float(self._moved(known, others, as_they_are, left)[0])

    def _moved(
        self, known: Floats, others: Sequence[Floats], orders: Ints, left: int | None = None
    ) -> Floats:
        """(P,) means over sources, of `known` with languages in other places (P, languages)."""
        rows = []
        for row, source in zip(self.values, self.sources, strict=True):
            sides = [row, *(one[source] for one in others)]
            kept: Bools = np.asarray(np.isfinite(sides).all(axis=0) & self._told(known))
            kept[[source] if left is None else [source, left]] = False
            targets = np.flatnonzero(kept)
            if source == left or len(targets) < FEWEST:
                continue
            moved = known[orders[:, [source]], orders[:, targets]]  # (P, targets)
            if np.isfinite(moved).all():
                rows.append(_ranked(row[targets], moved, [one[source, targets] for one in others]))
        if not rows:
            return np.full(len(orders), np.nan)
        there = np.isfinite(rows)
        total = np.where(there, rows, 0.0).sum(axis=0)
        return np.where(there.any(axis=0), total / np.maximum(there.sum(axis=0), 1), np.nan)

    def _told(self, known: Floats) -> Bools:
        """The languages of which it is known."""
        found: Bools = np.asarray(np.isfinite(known).any(axis=0))
        return found

    def _chance(
        self, known: Floats, others: Sequence[Floats], found: float, rng: np.random.Generator
    ) -> float:
        """The two-sided p of the permutation test, the order that was seen among them.

        Only languages that are asked change places, and a single source keeps its own.
        """
        used = np.flatnonzero(np.isfinite(self.values).any(axis=0))
        alone = len(self.values) == 1
        used = used[used != self.sources[0]] if alone else np.union1d(used, list(self.sources))
        used = used[self._told(known)[used]]
        orders: Ints = np.tile(np.arange(self.values.shape[1]), (_PERMUTED, 1))
        orders[:, used] = rng.permuted(np.tile(used, (_PERMUTED, 1)), axis=1)
        drawn = self._moved(known, others, orders)
        return float((np.abs(drawn) >= abs(found) - 1e-12).sum() + 1) / (_PERMUTED + 1)


def partial_ranks(one: Floats, other: Floats, others: Sequence[Floats]) -> float:
    """Spearman's correlation beyond what others tell; NaN where a side does not vary."""
    return float(_ranked(one, other[None], others)[0])


def _ranked(one: Floats, rows: Floats, others: Sequence[Floats]) -> Floats:
    """Of one side with each row of the other (P, n)."""
    from scipy.stats import rankdata

    given = np.column_stack([np.ones(len(one)), *(rankdata(other) for other in others)])
    left = np.eye(len(one)) - given @ np.linalg.pinv(given)
    mine, theirs = left @ rankdata(one), rankdata(rows, axis=1) @ left
    sizes = np.linalg.norm(mine) * np.linalg.norm(theirs, axis=1)
    least = 1e-9 * len(one) ** 2
    return np.where(sizes > least, theirs @ mine / np.where(sizes > least, sizes, 1.0), np.nan)
