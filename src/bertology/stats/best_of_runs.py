"""The best of k runs, and poor runs that are stopped early: what is gained, and what is lost.

Runs are crossed: every seed of one kind with every seed of the other. Who starts k runs takes k new
seeds of each kind; so the expected best of k is the mean over all sets of k runs of which no two
share a seed. That is a U-statistic and has no bias, for k up to the fewer of the two kinds of seed.
Drawing runs with replacement, as is often done, counts the same run twice and is too low.

The run that is picked is best on the examples that pick it, and by luck too: on other examples it
is scored lower. So half of the examples picks (and says which runs are stopped), the other half
scores, in several deals into halves.

Means are over draws of such sets. Leaving out a seed is leaving out the draws that have it; from
that come errors by jackknife over the seeds of both kinds (what both share is counted once, as for
clusters that are crossed), and from what each run counts in the mean an error over examples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from bertology.arrays import Floats, Ints
from bertology.errors import DataError
from bertology.stats.intervals import Estimate, check_level

_DRAWS = 6000  # sets of runs


def halves(examples: int, *, deals: int = 10, seed: int = 0) -> NDArray[np.bool_]:
    """(2 × deals, examples): which examples pick; each deal counts both ways round."""
    if examples < 4:
        raise DataError(f"Examples that pick and that score need four in all. Got {examples}.")
    rng = np.random.default_rng([seed, 5])
    picks = np.zeros((2 * deals, examples), dtype=bool)
    for at in range(deals):
        picks[2 * at, rng.permutation(examples)[: examples // 2]] = True
        picks[2 * at + 1] = ~picks[2 * at]
    return picks


@dataclass(frozen=True)
class Stopping:
    """The poorer half of k runs is stopped after a share of the training."""

    share: float
    saving: float
    """The share of all training that is not done."""
    loss: Estimate
    """How much worse the best run is than if none had been stopped."""
    gain: Estimate
    """How much better it is than the best of as few whole runs as cost the same."""


@dataclass(frozen=True)
class _Mean:
    """A mean over draws (P,), and what each run counts in it: (deals, I × J)."""

    values: Floats
    weights: Floats
    of: int
    """How many runs of a draw it looks at."""

    def __sub__(self, other: _Mean) -> _Mean:
        return _Mean(
            self.values - other.values, self.weights - other.weights, max(self.of, other.of)
        )

    def mixed(self, other: _Mean, share: float) -> _Mean:
        """Between two: so much of the other."""
        values = (1 - share) * self.values + share * other.values
        weights = (1 - share) * self.weights + share * other.weights
        return _Mean(values, weights, max(self.of, other.of))


@dataclass(frozen=True)
class BestOfRuns:
    """Runs (I, J), the examples' parts in their scores (I, J, N), and which examples pick (D, N).

    `picking` are scores (D, I, J) on the examples that pick, `scoring` on the others.
    """

    values: Floats
    picks: NDArray[np.bool_]
    picking: Floats
    scoring: Floats
    level: float = 0.95
    draws: int = _DRAWS
    seed: int = 0
    _orders: tuple[Ints, Ints] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_level(self.level, "best_of_runs")
        i, j, n = self.values.shape
        if min(i, j) < 2 or self.picks.shape[1] != n or self.picking.shape[1:] != (i, j):
            raise DataError(
                "The best of some runs needs a grid of at least two by two. "
                f"Got {self.values.shape}, {self.picks.shape} and {self.picking.shape}."
            )
        rng = np.random.default_rng([self.seed, 6])
        orders = tuple(
            rng.permuted(np.tile(np.arange(size), (self.draws, 1)), axis=1) for size in (i, j)
        )
        object.__setattr__(self, "_orders", orders)

    @property
    def most(self) -> int:
        """As many runs as there may be in a set, with one seed left over to leave out."""
        return int(min(self.values.shape[:2])) - 1

    @cached_property
    def _cells(self) -> Ints:
        """(P, most): the runs of each draw, in random order; any first k are a draw of k."""
        rows, columns = (order[:, : self.most] for order in self._orders)
        found: Ints = rows * self.values.shape[1] + columns
        return found

    # Best of k ---------------------------------------------------------------------------------

    def picked(self, k: int) -> Estimate:
        """The expected best score of k runs, on the examples that pick it: all of them."""
        best, gain = self._picked(k)
        skewed, over = gain if k > 1 else None, np.ones((1, self._examples))
        return self._estimate(best, skewed=skewed, over=over)

    def picked_gain(self, k: int) -> Estimate:
        """How much better that is than one run; some of it is the luck of the examples."""
        _, gain = self._picked(k)
        skewed, over = gain if k > 1 else None, np.ones((1, self._examples))
        return self._estimate(gain, skewed=skewed, over=over)

    def _picked(self, k: int) -> tuple[_Mean, _Mean]:
        """The best of k where it is picked, and its gain over one run."""
        scores = self.values.mean(axis=2).reshape(1, -1)
        best, one = (self._best(scores, scores, size) for size in (k, 1))
        return best, best - one

    def elsewhere(self, k: int) -> Estimate:
        """The expected score on other examples of the run that is best of k where it is picked."""
        best = self._mean(k)
        return self._estimate(best, skewed=best - self._mean(1) if k > 1 else None)

    def gain(self, k: int) -> Estimate:
        """How much better that run is than one run, on other examples."""
        gain = self._mean(k) - self._mean(1)
        return self._estimate(gain, skewed=gain if k > 1 else None)

    @cached_property
    def _means(self) -> dict[int, _Mean]:
        return {}

    def _mean(self, k: int) -> _Mean:
        if k not in self._means:
            flat = [x.reshape(len(x), -1) for x in (self.picking, self.scoring)]
            self._means[k] = self._best(flat[0], flat[1], k)
        return self._means[k]

    def _best(self, by: Floats, scores: Floats, k: int) -> _Mean:
        """Of the first k runs of each draw the best one by `by` (D, runs), scored by `scores`."""
        chosen = self._cells[:, :k][
            np.arange(self.draws)[None, :], by[:, self._cells[:, :k]].argmax(axis=2)
        ]  # (D, P); the order of runs is random, so the first of equal ones is any of them
        return self._of(chosen, scores, k)

    def _of(self, chosen: Ints, scores: Floats, k: int) -> _Mean:
        values = np.take_along_axis(scores, chosen, axis=1).mean(axis=0)
        runs = scores.shape[1]
        weights = np.stack([np.bincount(row, minlength=runs) for row in chosen]) / self.draws
        return _Mean(values, weights, k)

    # Stopping ----------------------------------------------------------------------------------

    @property
    def started(self) -> int:
        """Of how many runs the poorer half is stopped: an even number, half of the seeds or so.

        Sets of nearly all seeds overlap so much that little is known of other seeds.
        """
        return 2 * max(1, int(min(self.values.shape[:2])) // 4)

    def stopping(self, early: Floats, share: float) -> Stopping:
        """`early` (D, I, J) are scores after a share of the training, where examples pick."""
        k, by = self.started, self.picking.reshape(len(self.picking), -1)
        kept = k // 2
        saving = (1 - share) / 2
        cells = self._cells[:, :k]
        seen = early.reshape(len(early), -1)[:, cells]  # (D, P, k)
        ranks = np.argsort(-seen, axis=2, kind="stable")[:, :, :kept]
        finished = np.take_along_axis(
            np.broadcast_to(cells, (len(seen), *cells.shape)), ranks, axis=2
        )
        final = np.take_along_axis(by[:, None, :], finished, axis=2)
        at = final.argmax(axis=2)[..., None]
        chosen = np.take_along_axis(finished, at, axis=2)[..., 0]
        stopped = self._of(chosen, self.scoring.reshape(len(by), -1), k)
        affordable = k * (1 - saving)
        whole = math.floor(affordable + 1e-9)
        same = self._mean(whole)
        if whole < k:
            same = same.mixed(self._mean(whole + 1), affordable - whole)
        loss = self._mean(k) - stopped
        return Stopping(
            share,
            saving,
            self._estimate(loss, skewed=loss),
            self._estimate(stopped - same),
        )

    # How sure ----------------------------------------------------------------------------------

    @property
    def _examples(self) -> int:
        return int(self.values.shape[2])

    def _estimate(
        self, mean: _Mean, *, skewed: _Mean | None = None, over: Floats | None = None
    ) -> Estimate:
        """`skewed`: the part of it that grows with the spread of runs.

        With few seeds a spread is often found too small, and then so is its error. Above, the arm
        of seeds is therefore that of a logarithm, which is at most 1.7 times as long.
        """
        seeds = min(self.values.shape[:2])
        # Each half is scored as if it were the whole, so its examples count double.
        shares = 2.0 * ~self.picks if over is None else over
        z = self.values.reshape(-1, self._examples)
        parts = (shares * (mean.weights @ z)).mean(axis=0)
        error = float(parts.std(ddof=1) / math.sqrt(parts.size))
        arm = float(stdtrit(parts.size - 1, (1 + self.level) / 2)) * error
        of_seeds = float(stdtrit(seeds - 1, (1 + self.level) / 2)) * self._error(mean)
        value, half = float(mean.values.mean()), math.hypot(arm, of_seeds)
        above = math.hypot(arm, of_seeds * (1.0 if skewed is None else _longer(of_seeds, skewed)))
        unit, n = ("seeds", seeds) if of_seeds > arm else ("examples", parts.size)
        lasting = min(arm, of_seeds) / half if half else 0.0
        return Estimate(
            value,
            value - half,
            value + above,
            n,
            self.level,
            unit,
            lasting=lasting,
            remedy="more seeds and more examples would narrow it",
            freedom=float(seeds - 1),
        )

    def _error(self, mean: _Mean) -> float:
        """The standard error over seeds of both kinds."""
        rows, columns = (
            _left_out(mean.values, np.argsort(order, axis=1) >= mean.of) for order in self._orders
        )
        runs = self.values.shape[0] * self.values.shape[1]
        cells = self._cells[:, : mean.of]
        inside = np.zeros((self.draws, runs), dtype=bool)
        np.put_along_axis(inside, cells, True, axis=1)
        both = _left_out(mean.values, ~inside)
        return math.sqrt(max(rows, columns, rows + columns - both))


def _longer(arm: float, skewed: _Mean) -> float:
    """How many times as long the upper arm is as the lower."""
    size = float(skewed.values.mean())
    ratio = min(1.0, arm / size) if size > 0 else 1.0
    return math.expm1(ratio) / ratio if ratio else 1.0


def _left_out(values: Floats, without: NDArray[np.bool_]) -> float:
    """The jackknife's variance of a mean; `without` (P, things): draws that do not have them."""
    counts = without.sum(axis=0)
    if not counts.all():
        raise DataError("A seed is in every set of runs that was drawn: give more seeds.")
    means = (values @ without) / counts
    n = means.size
    return float((n - 1) / n * ((means - means.mean()) ** 2).sum())
