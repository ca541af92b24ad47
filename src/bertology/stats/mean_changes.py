"""Mean changes of a continuous outcome, such as the loss, for many variants over the same examples.

Disabling a head changes the loss of nearly every example a little and of some a lot. A change tells
more than a flipped answer does, but a handful of large ones must not pass for many. So the
t-statistics of all variants are compared with those that come about when every example's
changes keep their sizes and get one random sign, the same in all variants (max-T under sign flips):
a variant whose change rests on three examples can reach no small p-value, whatever its t.

`p` are Westfall and Young's step-down p-values, `low` and `high` bounds that hold for all variants
together and exclude 0 where p is below 1 - level. `alone_low` and `alone_high` are Student's, for
one variant; the largest of them bounds the largest mean, as in `stats.paired`. Means of few or very
skewed changes are the limit of it: `benchmarks/ablation_power.py` has the error rates.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from bertology.errors import DataError
from bertology.stats.intervals import check_level
from bertology.stats.multiplicity import step_down
from bertology.stats.paired import agreeing
from bertology.stats.row_blocks import RowBlocks, in_blocks

__all__ = ["MeanChanges", "mean_changes"]

Floats = NDArray[np.float64]

_SIGNS = 500_000  # signs, or statistics, looked at together


@dataclass(frozen=True)
class MeanChanges:
    """Means (V,) with bounds and p-values for all together, and bounds of each one alone."""

    value: Floats
    low: Floats
    high: Floats
    alone_low: Floats
    alone_high: Floats
    p: Floats
    n: int
    level: float

    @property
    def sure(self) -> NDArray[np.bool_]:
        """Which differ from 0, after correction for all of them."""
        return self.p < 1 - self.level


def mean_changes(
    values: Floats | RowBlocks, *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> MeanChanges:
    """The mean of each row of `values` (V, N), two examples or more."""
    check_level(level, "mean_changes")
    blocks = in_blocks(values)
    moments = [(b.mean(axis=1), (b**2).mean(axis=1), b.shape[1]) for b in blocks]
    n = moments[0][2] if moments else 0
    if n < 2:
        raise DataError(f"Mean changes need two examples or more of each variant. Got {n}.")
    mean, square = (np.concatenate([m[i] for m in moments]) for i in (0, 1))
    plain, about_mean = _under_random_signs(blocks, mean, square, resamples=resamples, seed=seed)
    error = np.sqrt(np.maximum(square - mean**2, 0) / (n - 1))
    p = step_down(np.abs(_t(mean, square, n)), plain)
    critical = float(np.quantile(about_mean.max(axis=1), level))
    low, high = agreeing(mean, mean - critical * error, mean + critical * error, p < 1 - level)
    alone = float(stdtrit(n - 1, (1 + level) / 2)) * error
    return MeanChanges(mean, low, high, mean - alone, mean + alone, p, n, level)


def _t(mean: Floats, square: Floats, n: int) -> Floats:
    """Student's t of means with these mean squares; 0 where nothing moved."""
    spread = np.sqrt(np.maximum(square - mean**2, 1e-12 * square) / (n - 1))
    found: Floats = np.divide(mean, spread, out=np.zeros_like(mean), where=spread > 0)
    return found


def _under_random_signs(
    blocks: Iterable[Floats], mean: Floats, square: Floats, *, resamples: int, seed: int
) -> tuple[Floats, Floats]:
    """|t| (R, V) when every example has a random sign: of the values, and of those about 0."""
    rng, n = np.random.default_rng([seed, 4]), next(iter(blocks)).shape[1]
    plain, about_mean = (np.empty((resamples, mean.size)) for _ in range(2))
    rows = max(1, _SIGNS // max(n, mean.size), -(-resamples // 16))
    for start in range(0, resamples, rows):
        signs = rng.integers(0, 2, size=(min(rows, resamples - start), n)) * 2.0 - 1.0
        drawn = np.concatenate([signs @ block.T for block in blocks], axis=1) / n
        some = slice(start, start + len(signs))
        plain[some] = np.abs(_t(drawn, np.broadcast_to(square, drawn.shape), n))
        drawn -= signs.mean(axis=1)[:, None] * mean
        spread = np.broadcast_to(square - mean**2, drawn.shape)
        about_mean[some] = np.abs(_t(drawn, spread, n))
    return plain, about_mean
