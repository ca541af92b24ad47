"""Many tests at once: Holm, and the maximum over correlated statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertology.arrays import Floats
from bertology.errors import DataError

# Rows of an array that is too large for memory: a few rows at a time, as often as needed.

_HELD = 1 << 17  # numbers in one block of an array: 1 MB


@dataclass(frozen=True)
class RowBlocks:
    """Rows by examples, (v, N, …) at a time; `make` starts again for every iteration."""

    make: Callable[[], Iterable[NDArray[Any]]]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return iter(self.make())


def in_blocks(rows: NDArray[Any] | RowBlocks) -> RowBlocks:
    """An array as blocks of a few rows, so that copies of a block are small."""
    if isinstance(rows, RowBlocks):
        return rows
    step = max(1, _HELD // max(1, int(np.prod(rows.shape[1:]))))
    return RowBlocks(lambda: (rows[at : at + step] for at in range(0, len(rows), step)))


def _checked(p: ArrayLike) -> Floats:
    values = np.asarray(p, dtype=np.float64)
    if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
        raise DataError(
            f"p-values must be one list of numbers between 0 and 1. Got shape {values.shape}"
            + (f", from {values.min():g} to {values.max():g}." if values.size else ".")
        )
    return values


def holm(p: ArrayLike) -> Floats:
    """Holm's adjusted p-values: the family-wise error is controlled under any dependence."""
    values = _checked(p)
    order = np.argsort(values, kind="stable")
    scaled = values[order] * np.arange(values.size, 0, -1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return adjusted


def fewest_false(p: ArrayLike, error: float) -> int:
    """How many of the tested hypotheses are false at least, but for a chance of `error`.

    By closed testing with Simes' test (Hommel; Goeman and Solari), so a test of every partial
    conjunction (Benjamini and Heller): the largest set of hypotheses that could all be true is
    looked for. It needs p-values that do not depend on each other, or go up and down together as
    those of heads over the same examples do. Rüger's combination (twice the median, say) needs
    neither and never finds more; `benchmarks/harmless_heads.py` compares them.
    """
    values = np.sort(_checked(p))
    for size in range(values.size, 0, -1):
        largest = values[values.size - size :]  # the set of this size that is hardest to reject
        if (largest > error * np.arange(1, size + 1) / size).all():
            return int(values.size - size)
    return int(values.size)


def max_statistics(
    influences: Sequence[Floats] | RowBlocks, *, resamples: int, seed: int
) -> Floats:
    """|t| (resamples, V) of every variant under the joint null, by the Gaussian multiplier.

    Each column is exactly |N(0, 1)| and the columns are correlated as the variants' influences
    (V, N) are over the examples: the same normal weight falls on an example in every variant. A
    variant that never moved has no correlation to speak of and counts as independent. The
    influences come in blocks of variants, (v, N) each, and are gone through more than once.
    """
    rng = np.random.default_rng([seed, 1])
    still, n = [], 0
    for block in influences:
        still.append(_units(block)[1])
        n = block.shape[1]
    never = np.concatenate(still)
    out = np.empty((resamples, never.size))
    # As few weights at once as are 4 MB, but no more than sixteen times through the influences.
    rows = max(1, 500_000 // max(n, 1), -(-resamples // 16))
    for start in range(0, resamples, rows):
        weights = rng.standard_normal((min(rows, resamples - start), n))
        columns = [weights @ _units(block)[0].T for block in influences]
        out[start : start + rows] = np.concatenate(columns, axis=1)
    out[:, never] = rng.standard_normal((resamples, int(never.sum())))
    return np.abs(out, out=out)


def _units(influence: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Rows about their means and of length 1, and which rows never moved."""
    unit = influence - influence.mean(axis=1, keepdims=True)
    spread = np.sqrt(np.einsum("vn,vn->v", unit, unit))
    largest = np.abs(influence).max(axis=1, initial=0)
    still = spread <= 1e-12 * np.maximum(largest, 1e-300) * influence.shape[1]
    unit /= np.where(still, 1.0, spread)[:, None]
    return unit, still


def step_down(observed: Floats, null: Floats) -> Floats:
    """Westfall and Young's step-down p-values of `observed` (V,) against `null` (R, V)."""
    order = np.argsort(-observed, kind="stable")
    # The k-th largest competes with the maximum over itself and all smaller ones.
    maxima = np.maximum.accumulate(null[:, order[::-1]], axis=1)[:, ::-1]
    p = (1 + (maxima >= observed[order]).sum(axis=0)) / (1 + null.shape[0])
    adjusted = np.empty_like(observed)
    adjusted[order] = np.maximum.accumulate(p)
    return adjusted
