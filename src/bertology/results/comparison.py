"""Variants of a model against the intact one, as a table every study words alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bertology.stats import Estimate, PairedEffects, mean_interval, rank_correlation

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["beats_constant_answer", "effects_table", "extreme"]

_COLUMNS = (
    "score",
    "score_low",
    "score_high",
    "difference",
    "low",
    "high",
    "simultaneous_low",
    "simultaneous_high",
    "p",
    "p_adjusted",
)


def effects_table(effects: PairedEffects, names: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    """One row per variant: `names` (what was changed), scores, differences, intervals, tests.

    `sure` says that the difference is there after correction for all rows of the table.
    """
    import pandas as pd

    columns = {**names, **{c: getattr(effects, c) for c in _COLUMNS}}
    return pd.DataFrame({**columns, "sure": effects.p_adjusted < 1 - effects.level})


def extreme(table: pd.DataFrame, *, n: int, level: float, largest: bool = True) -> Estimate:
    """The largest gain (or loss, as a positive number) in a table, fit to be claimed.

    The interval runs from the largest lower to the largest upper simultaneous bound: it covers
    the largest true effect although the row was picked by looking.
    """
    sign = 1 if largest else -1
    low, high = ("simultaneous_low", "simultaneous_high")[::sign]
    value, below, above = (float((sign * table[c]).max()) for c in ("difference", low, high))
    return Estimate(value, below, above, n, level)


def beats_constant_answer(predictions: Any, labels: Any, *, classes: bool) -> bool:
    """Whether predictions are surely better than always giving the most frequent answer.

    For numbers: whether they surely rank the examples better than chance.
    """
    given, wanted = np.asarray(predictions), np.asarray(labels)
    if not classes:
        constant = np.ptp(given) == 0 or np.ptp(wanted) == 0
        return not constant and rank_correlation(given, wanted).low > 0
    _, counts = np.unique(wanted, return_counts=True)
    most_frequent = np.unique(wanted)[counts.argmax()]
    better = (given == wanted).astype(float) - (wanted == most_frequent)
    return bool(mean_interval(better).low > 0)
