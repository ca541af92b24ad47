"""Spearman's correlation of many scores with one judgement, over pairs that may share a text.

Where a word or a text is in several pairs, these are not independent: what is odd about it is in
all of them. The correlation is turned into a mean of influences, one for each pair (von Mises; with
the part that ranks are of the sample too), and the variance of that mean counts the products of all
pairs that share a text (the dyadic cluster-robust variance of Aronow, Samii and Assenova 2015; as
in a jackknife, what a text does is set against the pairs without it). Where no text repeats, it is
the usual one over pairs. Bounds for many rows together come from a Gaussian multiplier bootstrap
that draws one number for each text that repeats, and else for each pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, stdtr, stdtrit

from bertology.arrays import Floats, Ints
from bertology.errors import DataError
from bertology.stats.intervals import Estimate

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_HELD = 500_000  # numbers drawn at once
_FEWEST = 5  # pairs


@dataclass(frozen=True)
class Agreement:
    """Correlations (V,), and the influence of each pair on each (V, N), with mean 0.

    Of a mean over several deals, in which something was picked on some pairs and scored on others,
    influences are (V, deals, N): those of one deal hold what was picked as given, and a mean over
    deals varies no more than one deal does, but not surely as little as if all were given.
    """

    value: Floats
    influence: Floats
    shares: bool = False
    """Of right answers: where none was seen to change, some still may (the rule of three)."""

    def __sub__(self, other: Agreement) -> Agreement:
        return Agreement(
            self.value - other.value, self.influence - other.influence, self.shares or other.shares
        )

    def __getitem__(self, rows: Sequence[int] | Ints | slice) -> Agreement:
        return Agreement(self.value[rows], self.influence[rows], self.shares)

    def mean(self) -> Agreement:
        """The mean of all rows, as one row."""
        value, influence = self.value.mean(keepdims=True), self.influence.mean(axis=0)[None]
        return Agreement(value, influence, self.shares)


def together(some: Sequence[Agreement]) -> Agreement:
    """All rows of several."""
    return Agreement(
        np.concatenate([one.value for one in some]),
        np.concatenate([one.influence for one in some]),
        any(one.shares for one in some),
    )


def rank_values(scores: Floats, judged: Floats) -> Floats:
    """Spearman's correlation of each row (V, N) with `judged` (N,), and no influences."""
    from scipy.stats import rankdata

    x, y = rankdata(scores, axis=1), rankdata(judged)
    x, y = x - x.mean(axis=1, keepdims=True), y - y.mean()
    scale = np.sqrt((x * x).sum(axis=1) * (y @ y))
    found: Floats = (x @ y) / np.where(scale > 0, scale, np.inf)
    return found


def rank_agreement(scores: ArrayLike, judged: ArrayLike) -> Agreement:
    """Spearman's correlation of each row of `scores` (V, N) with `judged` (N,); ties share ranks.

    A constant side has no order: the correlation is then 0.
    """
    from scipy.stats import rankdata  # here, because it is slow to import

    rows, wanted = np.atleast_2d(np.asarray(scores, np.float64)), np.asarray(judged, np.float64)
    n = wanted.size
    if wanted.ndim != 1 or rows.shape[1] != n or n < _FEWEST:
        raise DataError(
            f"A rank correlation needs one judgement for each score, {_FEWEST} or more. Got scores "
            f"of shape {rows.shape} and judgements of shape {wanted.shape}."
        )
    if not (np.isfinite(rows).all() and np.isfinite(wanted).all()):
        raise DataError("Scores and judgements must be finite numbers.")
    y = (rankdata(wanted) - (n + 1) / 2) / n
    spread_y = float((y * y).mean())
    of_y = y * y + 2 * _above(wanted, y) - 3 * spread_y
    value, influence = np.zeros(len(rows)), np.zeros(rows.shape)
    for at, row in enumerate(rows):
        x = (rankdata(row) - (n + 1) / 2) / n
        spread_x = float((x * x).mean())
        if min(spread_x, spread_y) <= 0:
            continue
        both, scale = float((x * y).mean()), (spread_x * spread_y) ** 0.5
        of_both = x * y + _above(row, y) + _above(wanted, x) - 3 * both
        of_x = x * x + 2 * _above(row, x) - 3 * spread_x
        value[at] = both / scale
        influence[at] = of_both / scale - value[at] / 2 * (of_x / spread_x + of_y / spread_y)
    return Agreement(value, influence)


def _above(values: Floats, weights: Floats) -> Floats:
    """For each value the mean over all of the weights of larger values; equal ones count half."""
    order = np.argsort(values, kind="stable")
    ordered, total = values[order], np.concatenate([[0.0], np.cumsum(weights[order])])
    below = total[np.searchsorted(ordered, values, "left")]
    up_to = total[np.searchsorted(ordered, values, "right")]
    found: Floats = (total[-1] - up_to + (up_to - below) / 2) / values.size
    return found


@dataclass(frozen=True)
class PairLinks:
    """Which two texts each pair has, by number."""

    first: Ints
    second: Ints

    @classmethod
    def of(cls, pairs: Sequence[tuple[object, object]]) -> PairLinks:
        """Texts that are equal are one."""
        numbers: dict[object, int] = {}
        found = [[numbers.setdefault(text, len(numbers)) for text in pair] for pair in pairs]
        both = np.array(found, np.int64).reshape(-1, 2)
        return cls(both[:, 0], both[:, 1])

    @cached_property
    def _numbers(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Texts and unordered pairs, each counted from 0: first, second, pair; pairs of a text."""
        names, both = np.unique(np.stack([self.first, self.second]), return_inverse=True)
        first, second = both.reshape(2, -1)
        ordered = np.sort(np.stack([first, second]), axis=0)
        pair = np.unique(ordered[0] * len(names) + ordered[1], return_inverse=True)[1].reshape(-1)
        alike = first == second
        often = np.bincount(np.concatenate([first, second[~alike]]), minlength=len(names))
        return first, second, pair, often

    @cached_property
    def units(self) -> float:
        """How many independent things there are at most: pairs, or texts where these are fewer.

        A text that is in most pairs makes them few (Carter, Schnepel and Steigerwald 2017).
        """
        _, _, pair, often = self._numbers
        texts = float(often.sum() ** 2 / (often**2).sum())
        return min(float(pair.max() + 1), max(texts, 1.0))

    @property
    def freedom(self) -> float:
        """Degrees of freedom of Student's quantiles."""
        return max(self.units - 1, 1.0)

    @cached_property
    def _shared(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Whether the first and the second text of each pair are in other pairs too."""
        first, second, _, often = self._numbers
        return often[first] > 1, (often[second] > 1) & (first != second)

    @property
    def shares_texts(self) -> bool:
        """Whether any text is in several pairs."""
        return bool(np.any(self._shared))

    @cached_property
    def _sums(self) -> tuple[csr_array, csr_array, csr_array]:
        """Sums over the pairs of each text that repeats, of pairs of two such, of equal pairs."""
        from scipy.sparse import csr_array

        first, second, pair, often = self._numbers
        n, columns = len(pair), np.arange(len(pair))
        one, two = self._shared
        rows = np.concatenate([first[one], second[two]])
        at = np.concatenate([columns[one], columns[two]])
        # What a text does to the mean is told by the mean without it.
        left = n / np.maximum(n - often[rows], 1)
        both, count = one & two, int(pair.max()) + 1
        return (
            csr_array((left, (rows, at)), shape=(len(often), n)),
            csr_array((np.ones(both.sum()), (pair[both], columns[both])), shape=(count, n)),
            csr_array((np.ones(n), (pair, columns)), shape=(count, n)),
        )

    def error(self, influence: Floats) -> Floats:
        """The standard error (V,) of the mean of each row of influences; over deals, of one."""
        n = influence.shape[-1]
        if influence.ndim > 2:
            each = self.error(influence.reshape(-1, n)).reshape(influence.shape[:2])
            found: Floats = np.sqrt((each**2).mean(axis=1))
            return found
        one, two = self._shared
        texts, twice, pairs = ((sums @ influence.T) ** 2 for sums in self._sums)
        alone = pairs.sum(axis=0)
        squares = (influence[:, ~(one | two)] ** 2).sum(axis=1)
        squares = squares + texts.sum(axis=0) - twice.sum(axis=0)
        if self.shares_texts:
            # Influences sum to zero, so sums over few texts scatter less than those over many.
            squares *= (self.units / max(self.units - 2, 1.0)) ** 2
        # Products of chance may make the sum smaller than if all pairs were independent.
        error: Floats = np.sqrt(np.maximum(squares, alone) / (n * max(n - 1, 1)))
        return error

    def _unseen(self, rows: Agreement, tail: float) -> float:
        """An arm for changes of which none was seen: of N things, a share of -log(tail) / N."""
        return -np.log(tail) / self.units if rows.shares else 0.0

    def critical(self, influence: Floats, level: float, *, resamples: int, seed: int) -> float:
        """How many standard errors bounds must reach to hold for all rows together."""
        n = influence.shape[-1]
        influence = influence.reshape(-1, n)
        one, two = self._shared
        first, second, _, often = self._numbers
        count, rng = len(often), np.random.default_rng(seed)
        largest, some = list[Floats](), max(1, _HELD // (n + count))
        for start in range(0, resamples, some):
            size = min(some, resamples - start)
            texts = rng.standard_normal((size, count))
            drawn = texts[:, first] * one + texts[:, second] * two
            drawn += rng.standard_normal((size, n)) * ~(one | two)
            largest.append(drawn @ influence.T)
        sums = np.concatenate(largest)
        spread = sums.std(axis=0)
        moved = spread > 1e-12
        if not moved.any():
            return float(stdtrit(self.freedom, (1 + level) / 2))
        normal = float(np.quantile(np.abs(sums[:, moved] / spread[moved]).max(axis=1), level))
        normal = max(normal, float(-stdtrit(1e9, (1 - level) / 2)))
        return float(stdtrit(self.freedom, ndtr(normal)))

    def estimate(self, row: Agreement, *, level: float, unit: str = "pairs") -> Estimate:
        """One row that was not picked, with Student's interval."""
        half = stdtrit(self.freedom, (1 + level) / 2) * self.error(row.influence)[0]
        half = float(np.hypot(half, self._unseen(row, (1 - level) / 2)))
        value = float(row.value[0])
        n = row.influence.shape[-1]
        return Estimate(value, value - half, value + half, n, level, unit, freedom=self.freedom)

    def bounds(
        self, rows: Agreement, *, level: float, resamples: int, seed: int, correlation: bool
    ) -> tuple[Floats, Floats, float]:
        """Bounds of all rows together, and the critical value.

        Those of a `correlation` are made on Fisher's scale, so they stay between -1 and 1.
        """
        critical = self.critical(rows.influence, level, resamples=resamples, seed=seed)
        half = critical * self.error(rows.influence)
        if not correlation:
            half = np.hypot(half, self._unseen(rows, stdtr(self.freedom, -critical)))
            return rows.value - half, rows.value + half, critical
        inner = np.clip(rows.value, -1 + 1e-9, 1 - 1e-9)
        half, middle = half / (1 - inner**2), np.arctanh(inner)
        return np.tanh(middle - half), np.tanh(middle + half), critical
