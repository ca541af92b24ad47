"""Variants of a model against the intact one, as a table with the same columns in every study."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertology.metrics import Metric
from bertology.stats import Estimate, PairedEffects, mean_interval, rank_correlation
from bertology.stats.paired import influences
from bertology.stats.row_blocks import RowBlocks

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "beats_constant_answer",
    "effects_table",
    "example_losses",
    "extreme",
    "mean_effect",
    "over_rows",
    "share_of_harmless",
]

Floats = NDArray[np.float64]

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
_EFFECT = ("difference", "simultaneous_low", "simultaneous_high")


def effects_table(effects: PairedEffects, names: Mapping[str, ArrayLike]) -> pd.DataFrame:
    """One row per variant: `names` (what was changed), scores, differences, intervals, tests.

    `sure`: the difference is significant after correction for all rows of the table.
    """
    import pandas as pd

    columns = {**names, **{c: getattr(effects, c) for c in _COLUMNS}}
    return pd.DataFrame({**columns, "sure": effects.p_adjusted < 1 - effects.level})


def over_rows(
    table: pd.DataFrame,
    number: Callable[[pd.Series[float]], float],
    columns: tuple[str, str, str],
    *,
    n: int,
    level: float,
) -> Estimate:
    """A number computed from all rows, such as the maximum, and the same for the rows' bounds.

    `columns` are values, lower and upper bounds, which hold for all rows together. If `number`
    never decreases when a value increases, the interval covers the true number, even though the
    row was chosen after looking at the data.
    """
    value, low, high = (float(number(table[column])) for column in columns)
    return Estimate(value, low, high, n, level)


def extreme(table: pd.DataFrame, *, n: int, level: float, largest: bool = True) -> Estimate:
    """The largest gain (or loss, as a positive number); the interval allows for the choice."""
    if largest:
        return over_rows(table, lambda x: x.max(), _EFFECT, n=n, level=level)
    effect, low, high = _EFFECT
    return over_rows(
        -table[list(_EFFECT)], lambda x: x.max(), (effect, high, low), n=n, level=level
    )


def share_of_harmless(table: pd.DataFrame, margin: float, *, n: int, level: float) -> Estimate:
    """The share of rows whose loss is smaller than `margin`, with bounds that hold for all rows."""
    return over_rows(table, lambda x: (x > -margin).mean(), _EFFECT, n=n, level=level)


_FEWEST = 3  # examples, for a correlation to be more than a line through two points


def beats_constant_answer(
    predictions: ArrayLike, labels: ArrayLike, *, classes: bool, metric: str = "accuracy"
) -> bool:
    """Whether predictions are surely better than always giving the most frequent answer.

    For numbers: whether they surely rank the examples better than chance; and so for two classes
    scored by Matthews' correlation, by which every constant answer is worth 0.
    """
    given, wanted = np.asarray(predictions), np.asarray(labels)
    correlated = metric == "matthews" and len(np.unique(wanted)) == 2
    if correlated or not classes:
        if len(given) < _FEWEST:
            return False
        constant = np.ptp(given) == 0 or np.ptp(wanted) == 0
        return not constant and rank_correlation(given, wanted).low > 0
    kinds, counts = np.unique(wanted, return_counts=True)
    most_frequent = kinds[counts == counts.max()]  # of several, one drawn at random
    better = (given == wanted) - np.isin(wanted, most_frequent) / len(most_frequent)
    return bool(mean_interval(better).low > 0)


def example_losses(logits: NDArray[np.floating], labels: Floats) -> Floats:
    """(V, N) cross-entropy of each example, or its squared error where there is one output."""
    wide = logits.astype(np.float64)
    if wide.shape[-1] == 1:
        return np.asarray((wide[..., 0] - labels) ** 2)
    shifted = wide - wide.max(-1, keepdims=True)
    chosen = np.take_along_axis(shifted, labels.astype(int)[None, :, None], -1)[..., 0]
    return np.asarray(np.log(np.exp(shifted).sum(-1)) - chosen)


def mean_effect(
    metric: Metric, base: Floats, variants: Floats | RowBlocks, level: float
) -> Estimate:
    """The effect of a variant drawn at random: the mean over variants, over examples."""
    psi, _ = influences(metric, base, variants)
    return mean_interval(psi.mean(axis=0), level)
