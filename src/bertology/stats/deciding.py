"""How far pruning goes: how sure over other seeds, and over other examples that decide it.

Pruning ends with the first step whose score falls below a share of the whole model's. The score is
that of a sample of examples, the same one for all seeds: with other examples some seeds would have
ended a step earlier or later. The examples are drawn again (bootstrap), for all seeds together, and
the rule is applied to each draw; this gives the error of examples. Student's interval over seeds
has the rest. Both are put together as squares of their arms, as in `stats/crossed.py`.

Where a draw would have kept even the last step that was tried, nobody knows how far it had gone:
its upper end is then that all is removed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bertology.arrays import Floats
from bertology.metrics import Metric
from bertology.stats.intervals import Estimate
from bertology.stats.repeated import repeated

_DRAWS = 1000
_BATCH = 100  # draws at a time


@dataclass(frozen=True)
class Deciding:
    """The answers of one seed's steps to the examples that decide, the whole model first."""

    answers: Floats  # (steps, N)
    removed: Floats  # (steps,) which share is gone in each step
    kept: int  # so many of them kept the score, the whole model counted


def removed_share(
    runs: Sequence[Deciding],
    labels: Floats,
    metric: Metric,
    *,
    keep: float,
    constant: float,
    grain: float,
    level: float = 0.95,
) -> Estimate:
    """The mean over seeds of the share that goes, over seeds and deciding examples together.

    `constant` is the answer that a score is set against, `grain` the size of one step: seeds that
    end with the same step differ by less than that, and not by nothing.
    """
    ends = np.array([run.removed[run.kept - 1] for run in runs])
    found = repeated(ends, level, within=(0.0, 1.0), grain=grain)
    if math.isnan(found.low):
        return found
    over_seeds = repeated(ends, level, grain=grain)
    below, above = _arms(runs, labels, metric, keep=keep, constant=constant, level=level)
    half = over_seeds.high - over_seeds.value
    whole, examples = math.hypot(half, (below + above) / 2), (below + above) / 2
    return replace(
        found,
        low=max(0.0, found.value - math.hypot(half, below)),
        high=min(1.0, found.value + math.hypot(half, above)),
        lasting=examples / whole if whole else 0.0,
        remedy="more seeds and more deciding examples would narrow it",
    )


def _arms(
    runs: Sequence[Deciding],
    labels: Floats,
    metric: Metric,
    *,
    keep: float,
    constant: float,
    level: float,
) -> tuple[float, float]:
    """How far the mean of the seeds lies below and above its middle, over draws of examples."""
    rng, n = np.random.default_rng(0), len(labels)
    always = metric.statistics(np.full(n, constant), labels)
    rows = [np.stack([metric.statistics(a, labels) for a in run.answers], axis=1) for run in runs]
    least, most = [], []
    for _ in range(0, _DRAWS, _BATCH):
        weights = _drawn_again(rng, n)
        lowest = np.maximum(metric.finish(weights @ always), 0.0)
        ends = [
            _ends(metric.finish(np.tensordot(weights, own, axes=1)), run, lowest, keep)
            for run, own in zip(runs, rows, strict=True)
        ]
        least.append(np.mean([low for low, _ in ends], axis=0))
        most.append(np.mean([high for _, high in ends], axis=0))
    low, high = np.concatenate(least), np.concatenate(most)
    tail = (1 - level) / 2
    middle = float(low.mean())
    below = middle - float(np.quantile(low, tail))
    return max(below, 0.0), max(float(np.quantile(high, 1 - tail)) - middle, 0.0)


def _drawn_again(rng: np.random.Generator, n: int) -> Floats:
    """(draws, n): how often each example is in each draw."""
    chosen = rng.integers(n, size=(_BATCH, n)) + n * np.arange(_BATCH)[:, None]
    found = np.bincount(chosen.ravel(), minlength=_BATCH * n)
    return found.reshape(_BATCH, n).astype(np.float64)


def _ends(scores: Floats, run: Deciding, constant: Floats, keep: float) -> tuple[Floats, Floats]:
    """(draws,): what is gone at the last kept step; and at most, where the last tried one is it."""
    first = scores[:, 0]
    floor = np.maximum(keep * first, (first + constant) / 2)
    fell = scores[:, 1:] < floor[:, None]
    steps = scores.shape[1]
    # A step after the last one that was tried stands for "none fell".
    fell = np.column_stack([fell, np.ones(len(fell), dtype=bool)])
    last = fell.argmax(axis=1)
    gone = run.removed[last]
    return gone, np.where(last == steps - 1, 1.0, gone)
