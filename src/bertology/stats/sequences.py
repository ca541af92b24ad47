"""Intervals that may be looked at as often as one likes, and be stopped at will.

A gambler who bets on the next value being above or below m multiplies his capital by
1 + bet * (value - m); if m is the true mean his capital is a fair game, and by Ville's inequality
it ever reaches 1/alpha with probability alpha at most. The means against which he has not grown
that rich form a confidence sequence (Waudby-Smith & Ramdas 2023).

The gambler here spreads his money over all constant bets (Cover's universal portfolio with the
Beta(1/2, 1/2) weights), so his log capital after n values is no less than that of the best
constant bet in hindsight minus log(sqrt(pi) * Gamma(n + 1) / Gamma(n + 1/2)), which is about
half of log(pi * n). (Orabona & Jun 2024.) The best constant bet in hindsight is the likelihood
bound of `intervals.bounded_mean_bounds`, so nothing is tuned, the order of values within a block
does not matter, and no grid of candidate means is needed. Bets may go up to the point of ruin,
which plug-in bets must avoid; with rare changes of -1 and 1 this is what counts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from bertology.errors import DataError, ParameterError
from bertology.stats.intervals import check_level, upper_mean_bound

__all__ = ["ConfidenceSequence"]

Floats = NDArray[np.float64]


class ConfidenceSequence:
    """Anytime-valid intervals for the means of `variants` streams of values in [low, high].

    Each stream's mean lies in its interval at all times together with probability `level`;
    for a promise over all streams give level = 1 - alpha / variants. Values must be
    independent draws in an order that does not depend on them (shuffle the examples first).

    Memory does not grow with the number of values: they are counted in `bins` cells of the
    range, rounded down for the lower bound and up for the upper, so rounding can only widen.
    """

    def __init__(
        self,
        variants: int,
        *,
        low: float = -1.0,
        high: float = 1.0,
        level: float = 0.95,
        bins: int = 2000,
    ) -> None:
        if variants < 1:
            raise ParameterError("variants", "ConfidenceSequence", "be at least 1", variants)
        if not low < high:
            raise ParameterError("low", "ConfidenceSequence", f"be below high ({high})", low)
        if bins < 2:
            raise ParameterError("bins", "ConfidenceSequence", "be at least 2", bins)
        self.level = check_level(level, "ConfidenceSequence")
        self._low, self._high, self._bins = low, high, bins
        self._down = np.zeros((variants, bins + 1), dtype=np.int64)
        self._up = np.zeros((variants, bins + 1), dtype=np.int64)
        self._used = [np.zeros(0, dtype=np.int64)] * 2  # cells that hold anything, down and up
        self._bounds = np.tile([low, high], (variants, 1)).astype(np.float64)  # (V, 2)
        self.seen = np.zeros(variants, dtype=np.int64)

    @property
    def variants(self) -> int:
        """How many streams are followed."""
        return len(self.seen)

    def update(self, values: ArrayLike, active: ArrayLike | None = None) -> None:
        """Add `values` (n, A), one column for each stream that `active` (V,) marks or lists."""
        which = np.arange(self.variants)[slice(None) if active is None else np.asarray(active)]
        block = np.asarray(values, dtype=np.float64)
        if block.ndim != 2 or block.shape[1] != which.size:
            raise DataError(
                f"A block must have one column for each of the {which.size} active streams. "
                f"Got shape {block.shape}."
            )
        outside = ~((block >= self._low) & (block <= self._high))
        if outside.any():
            raise DataError(
                f"Values must lie in [{self._low:g}, {self._high:g}]. Got {block[outside][0]:g}."
            )
        if not block.size:
            return
        place = (block - self._low) * (self._bins / (self._high - self._low))
        # A value within rounding of a cell's edge is that edge: -1, 0 and 1 stay exact.
        edge = np.rint(place)
        place = np.where(np.abs(place - edge) < 1e-6, edge, place)
        rows = np.broadcast_to(which, block.shape)
        rounded = (np.floor(place).astype(np.int64), np.ceil(place).astype(np.int64))
        for side, (counts, cells) in enumerate(zip((self._down, self._up), rounded, strict=True)):
            np.add.at(counts, (rows, cells), 1)
            self._used[side] = np.union1d(self._used[side], cells)
        self.seen[which] += block.shape[0]
        self._narrow(which)

    def _narrow(self, which: NDArray[np.int64]) -> None:
        n = self.seen[which].astype(np.float64)
        regret = 0.5 * np.log(np.pi) + gammaln(n + 1) - gammaln(n + 0.5)
        budget = regret - np.log1p(-self.level)
        low, high, width = self._low, self._high, self._high - self._low
        lower = -upper_mean_bound(
            -(low + width * np.tile(self._used[0], (which.size, 1)) / self._bins),
            self._down[np.ix_(which, self._used[0])],
            low=-high,
            high=-low,
            budget=budget,
        )
        upper = upper_mean_bound(
            low + width * np.tile(self._used[1], (which.size, 1)) / self._bins,
            self._up[np.ix_(which, self._used[1])],
            low=low,
            high=high,
            budget=budget,
        )
        # Valid at all times together, so earlier bounds still count.
        self._bounds[which, 0] = np.maximum(self._bounds[which, 0], lower)
        self._bounds[which, 1] = np.minimum(self._bounds[which, 1], upper)

    def interval(self) -> tuple[Floats, Floats]:
        """The bounds (V,), (V,) that all values so far allow."""
        return self._bounds[:, 0].copy(), self._bounds[:, 1].copy()
