"""Scores of many variants against one baseline, paired over the same examples.

Three questions, three answers (why not one: see below):

- *How sure is each number?* `low`/`high` are percentile bootstrap intervals; baseline and all
  variants share each resample. They are pointwise and describe the resampling only: a variant
  that never changed a prediction gets [0, 0], because no resample can show what did not occur.
- *Does this one variant differ?* `p` is the two-sided paired randomisation test: each example's
  change keeps its size and gets a random sign. For accuracy it is McNemar's exact test.
- *What may be claimed after looking at all of them?* `simultaneous_low`/`simultaneous_high` and
  `p_adjusted` hold for all variants together with probability `level`. The bounds exclude 0
  exactly where `p_adjusted` is below 1 - `level`.

One method cannot serve all three. Disabling a head flips 1-3 % of a few hundred examples; the
bootstrap then resamples a handful of flips, and its intervals miss far too often exactly where
the best of 144 heads is picked. The simultaneous ones go another way:

1. The jackknife turns the difference of any metric into a mean of per-example influences (for
   accuracy they are the differences -1, 0, 1 themselves).
2. Each mean gets the bounds of `intervals.bounded_mean_bounds`, which allow for flips that were
   not seen, up to the largest one the metric permits: this is what protects F1 and Matthews,
   where many small gains may hide a few large losses that did not turn up in the sample.
3. How many nats those bounds spend comes from the maximum of the variants' correlated
   t-statistics, so that correlated heads cost less than Bonferroni would charge.
4. For accuracy, whether a variant differs at all is decided by exact tests, which find more
   (`answer_flips`). Where such a test is significant and the bounds of step 2 are not, the bound
   on the side of 0 moves to 0: it says on which side the difference lies, and no more.

So `simultaneous_low > 0` for a variant says more than `low > 0`, and a variant that never moved
has a simultaneous interval of positive width. The price is an interval about 15 % wider, by
calculation, than max-T alone where the sample is large, and much wider where few answers change;
`benchmarks/ablation_power.py` simulates error rates and power, a short version is among the tests.

`alone_low`/`alone_high` are bounds of the kind of step 2 for one variant that was not picked. The
largest of all `alone_high` bounds the largest difference from above: no correction is needed, for
it is enough that the bound of the truly largest one is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, log_ndtr, ndtri_exp

from bertology.arrays import Floats
from bertology.errors import DataError, ParameterError
from bertology.metrics import Metric
from bertology.stats.answer_flips import flip_tests
from bertology.stats.intervals import (
    ONE_SIDE,
    Estimate,
    bounded_mean_bounds,
    check_level,
    distinct,
    evidence_against_zero,
    percentile_interval,
)
from bertology.stats.multiplicity import RowBlocks, in_blocks, max_statistics, step_down

_HELD = 500_000  # numbers in one chunk of weights or sums: 4 MB
_SIGNS = 4_000_000  # signs drawn at once, a byte each


@dataclass(frozen=True)
class Simultaneous:
    """Bounds and p-values that hold for all variants together; bounds of each one alone."""

    low: Floats
    high: Floats
    p: Floats
    critical: float
    """The max-T critical value, in standard deviations."""
    alone_low: Floats
    alone_high: Floats


@dataclass(frozen=True)
class PairedEffects:
    """What each variant does to the score; all arrays are (V,). See the module's text."""

    base: Estimate
    score: Floats
    score_low: Floats
    score_high: Floats
    difference: Floats
    low: Floats
    high: Floats
    simultaneous_low: Floats
    simultaneous_high: Floats
    alone_low: Floats
    alone_high: Floats
    p: Floats
    p_adjusted: Floats
    n: int
    level: float

    @property
    def sure(self) -> NDArray[np.bool_]:
        """Which differ, after correction for all of them."""
        return self.p_adjusted < 1 - self.level


def bootstrap_weights(n: int, resamples: int, seed: int = 0) -> NDArray[np.float32]:
    """How often each of `n` examples falls into each resample: (resamples, n), rows sum to n."""
    for name, value in (("n", n), ("resamples", resamples)):
        if value < 1:
            raise ParameterError(name, "bootstrap_weights", "be at least 1", value)
    return np.concatenate(list(_weights(n, resamples, seed)))


def _weights(n: int, resamples: int, seed: int) -> Iterator[NDArray[np.float32]]:
    rng = np.random.default_rng([seed, 0])
    few = max(1, _HELD // n)
    rows = max(few, -(-resamples // 16))  # what they weigh is gone through for each chunk
    for start in range(0, resamples, rows):
        chunk = np.empty((min(rows, resamples - start), n), np.float32)
        for at in range(0, len(chunk), few):
            some = chunk[at : at + few]
            cells = rng.integers(n, size=some.shape) + n * np.arange(len(some))[:, None]
            some[:] = np.bincount(cells.ravel(), minlength=some.size).reshape(some.shape)
        yield chunk


def _resampled(metric: Metric, blocks: RowBlocks, *, resamples: int, seed: int) -> Floats:
    """Scores (R, V) of statistics that come as (v, N, K), all under the same resamples."""
    n = next(iter(blocks)).shape[1]
    return np.concatenate(
        [
            np.concatenate([_scores(metric, block, weights) for block in blocks], axis=1)
            for weights in _weights(n, resamples, seed)
        ]
    )


def _scores(metric: Metric, statistics: Floats, weights: NDArray[np.float32]) -> Floats:
    """(R, v) of statistics (v, N, K) under weights (R, N)."""
    variants, n, k = statistics.shape
    flat = np.ascontiguousarray(statistics.transpose(1, 0, 2)).reshape(n, variants * k)
    sums = weights.astype(np.float64) @ flat
    return metric.finish(sums.reshape(-1, variants, k))


def influences(metric: Metric, base: Floats, variants: Floats | RowBlocks) -> tuple[Floats, Floats]:
    """Per-example influences (V, N) on each difference, and the largest size (V,) one may have.

    Row v has the mean score(variant) - score(base). The largest size is what one flip can do: the
    spread between the most and the least helpful example of the baseline. Where predictions
    are continuous nothing flips, and the largest influence seen stands for it.
    """
    own_base, score = jackknife(metric, base[None]), metric.finish(base.sum(axis=0))
    psi = np.concatenate(
        [
            jackknife(metric, b) - own_base + (metric.finish(b.sum(axis=1)) - score)[:, None]
            for b in in_blocks(variants)
        ]
    )
    reach = np.maximum(psi.max(axis=1), -psi.min(axis=1))
    if metric.discrete:
        flip = np.ptp(own_base)
        # A flawless baseline shows no spread; one flip of accuracy then still counts 1.
        reach = np.maximum(reach, max(float(flip), 1.0))
    return psi, reach


def jackknife(metric: Metric, statistics: Floats) -> Floats:
    """Centred influences (V, N): how much leaving an example out changes the score, times n-1."""
    n = statistics.shape[1]
    without = metric.finish(statistics.sum(axis=1, keepdims=True) - statistics)
    centred: Floats = (1 - n) * (without - without.mean(axis=1, keepdims=True))
    return centred


def simultaneous(
    influence: Floats, reach: Floats, *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Simultaneous:
    """Bounds for the mean of each row of `influence` (V, N), good for all rows together."""
    blocks = in_blocks(influence)
    null = max_statistics(blocks, resamples=resamples, seed=seed)
    critical = float(np.quantile(null.max(axis=1), level))
    # Chernoff's exp(-budget) is set equal to the normal tail Q(c). For -1, 0, 1 differences and
    # no effect it bounds the error; for other influences it rests on the simulations.
    budget, alone = -float(log_ndtr(-critical)), float(np.log(2 / (1 - level)))
    found, at = np.empty((5, len(influence))), 0
    for block in blocks:
        some = slice(at, at + len(block))
        values, counts = distinct(block)
        bounds = partial(bounded_mean_bounds, values, counts, low=-reach[some], high=reach[some])
        found[:2, some], found[2:4, some] = bounds(budget=budget), bounds(budget=alone)
        found[4, some] = evidence_against_zero(values, counts, reach=reach[some])
        at += len(block)
    low, high, alone_low, alone_high, evidence = found
    observed = np.maximum(-ndtri_exp(-evidence), 0.0)
    return Simultaneous(low, high, step_down(observed, null), critical, alone_low, alone_high)


def _agreeing(
    value: Floats, low: Floats, high: Floats, sure: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """Bounds that exclude 0 exactly where a test did, which may see more or less than they do."""
    above, below = sure & (value > 0), sure & (value < 0)
    lower = np.where(above, np.maximum(low, ONE_SIDE), np.minimum(low, 0.0))
    upper = np.where(below, np.minimum(high, -ONE_SIDE), np.maximum(high, 0.0))
    return lower, upper


@dataclass(frozen=True)
class Balances:
    """Shares of examples that rise less shares that fall (V,), with bounds and exact tests."""

    value: Floats
    low: Floats
    high: Floats
    alone_low: Floats
    alone_high: Floats
    p_adjusted: Floats
    level: float

    @property
    def sure(self) -> NDArray[np.bool_]:
        """Which differ from 0, after correction for all of them."""
        return self.p_adjusted < 1 - self.level


def balances(
    signs: Floats, *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Balances:
    """Of `signs` (V, N): 1 where an example rises, -1 where it falls, 0 where neither matters."""
    check_level(level, "balances")
    strict = simultaneous(signs, np.ones(len(signs)), level=level, resamples=resamples, seed=seed)
    _, p = flip_tests(signs, resamples=resamples, seed=seed)
    value = signs.mean(axis=1)
    low, high = _agreeing(value, strict.low, strict.high, p < 1 - level)
    return Balances(value, low, high, strict.alone_low, strict.alone_high, p, level)


def _randomisation_p(influence: Floats, *, resamples: int, seed: int) -> Floats:
    """Two-sided p (V,) of each mean when every example's sign is random."""
    rng = np.random.default_rng([seed, 2])
    n = influence.shape[1]
    size = np.abs(influence.sum(axis=1)) * (1 - 1e-9)  # equal sums may differ by rounding
    at_least = np.ones(influence.shape[0])
    rows, some = max(1, _SIGNS // n), max(1, _HELD // n)
    for start in range(0, resamples, rows):
        shape = (min(rows, resamples - start), n)
        drawn = rng.integers(0, 2, size=shape, dtype=np.int8)
        for at in range(0, len(drawn), some):
            signs = drawn[at : at + some] * 2.0 - 1.0
            at_least += (np.abs(signs @ influence.T) >= size).sum(axis=0)
    p: Floats = at_least / (1 + resamples)
    return p


def _checked(base: Floats, variants: Floats | RowBlocks) -> tuple[Floats, RowBlocks]:
    base = np.asarray(base, dtype=np.float64)
    if not isinstance(variants, RowBlocks):
        variants = np.asarray(variants, dtype=np.float64)
    blocks = in_blocks(variants)
    first = next(iter(blocks), np.zeros(0))
    fits = base.ndim == 2 and first.ndim == 3 and first.shape[1:] == base.shape
    if not fits or base.shape[0] < 2:
        raise DataError(
            "A paired comparison needs statistics (N, K) of the baseline and (V, N, K) of at "
            f"least one variant over the same N >= 2 examples. Got {base.shape} and "
            f"{variants.shape if isinstance(variants, np.ndarray) else first.shape}.",
            hint="Both come from metric.statistics(predictions, targets).",
        )
    return base, blocks


def paired_bootstrap(
    metric: Metric,
    base_stats: Floats,
    variant_stats: Floats | RowBlocks,
    *,
    resamples: int = 2000,
    level: float = 0.95,
    seed: int = 0,
) -> PairedEffects:
    """Score every variant and its difference to the baseline, as the module's text says."""
    check_level(level, "paired_bootstrap")
    if resamples < 1:
        raise ParameterError("resamples", "paired_bootstrap", "be at least 1", resamples)
    base_stats, variants = _checked(base_stats, variant_stats)
    n = base_stats.shape[0]
    everything = RowBlocks(lambda: chain([base_stats[None]], variants))
    scores = np.concatenate([metric.finish(block.sum(axis=1)) for block in everything])
    drawn = _resampled(metric, everything, resamples=resamples, seed=seed)
    score_low, score_high = percentile_interval(drawn, level)
    low, high = percentile_interval(drawn[:, 1:] - drawn[:, :1], level)
    psi, reach = influences(metric, base_stats, variants)
    strict = simultaneous(psi, reach, level=level, resamples=resamples, seed=seed)
    if metric.counts_right:
        p, adjusted = flip_tests(np.rint(psi), resamples=resamples, seed=seed)
    else:
        p = _randomisation_p(psi, resamples=resamples, seed=seed)
        adjusted = np.maximum(strict.p, p)
    difference = scores[1:] - scores[0]
    all_low, all_high = _agreeing(difference, strict.low, strict.high, adjusted < 1 - level)
    return PairedEffects(
        base=Estimate(scores[0], score_low[0], score_high[0], n, level),
        score=scores[1:],
        score_low=score_low[1:],
        score_high=score_high[1:],
        difference=difference,
        low=low,
        high=high,
        simultaneous_low=all_low,
        simultaneous_high=all_high,
        alone_low=strict.alone_low,
        alone_high=strict.alone_high,
        p=p,
        p_adjusted=adjusted,
        n=n,
        level=level,
    )


# How sure a score is, over the examples that it was measured on.


def score_interval(
    metric: Metric,
    statistics: NDArray[np.float64],
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Estimate:
    """The score of `statistics` (N, K), as `metric.statistics` gives them, with its interval.

    A share of right answers has Clopper and Pearson's exact interval, other scores that of a
    bootstrap over examples. Where no resample differs (no answer is wrong), the bounds of a mean
    that lies where scores lie stand for it: no resample can show an error that did not occur.
    """
    check_level(level, "score_interval")
    n = len(statistics)
    if not n:
        raise DataError("A score needs at least one example.")
    value, tail = float(metric.finish(statistics.sum(axis=0))), (1 - level) / 2
    if metric.counts_right:
        right = round(value * n)
        low = betaincinv(right, n - right + 1, tail) if right else 0.0
        high = betaincinv(right + 1, n - right, 1 - tail) if right < n else 1.0
        return Estimate(value, low, high, n, level)
    drawn = metric.finish(bootstrap_weights(n, resamples, seed).astype(np.float64) @ statistics)
    low, high = (float(end) for end in percentile_interval(drawn, level))
    if low == high:
        lowest, highest = metric.within
        ends = bounded_mean_bounds(
            np.array([[value]]), np.array([[n]]), low=lowest, high=highest, budget=-np.log(tail)
        )
        low, high = (float(end[0]) for end in ends)
    return Estimate(value, min(low, value), max(high, value), n, level)
