"""Variants of a model against the intact one, as a table with the same columns in every study."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from bertology.arrays import Floats
from bertology.results.ranking import Ranking, strongest_first
from bertology.stats import Estimate, PairedEffects, mean_interval, rank_correlation
from bertology.stats.answer_flips import small_loss_p
from bertology.stats.intervals import distinct, evidence_against_zero
from bertology.stats.multiplicity import fewest_false

if TYPE_CHECKING:
    import pandas as pd

    from bertology.stats.paired import Balances


_COLUMNS = (
    "score",
    "score_low",
    "score_high",
    "difference",
    "low",
    "high",
    "simultaneous_low",
    "simultaneous_high",
    "alone_low",
    "alone_high",
    "p",
    "p_adjusted",
    "sure",
)
_SHOWN = (
    *("difference", "simultaneous_low", "simultaneous_high", "p_adjusted", "sure"),
    *("loss_balance", "loss_balance_low", "loss_balance_high", "loss_p_adjusted", "loss_sure"),
    "loss_difference",
)
CHANGE: Ranking = "|difference|"
"""What tables of effects are ranked by."""
_EFFECT = ("difference", "simultaneous_low", "simultaneous_high")
_MOST = 0.5
_BALANCE = ("loss_balance", "loss_balance_low", "loss_balance_high")


def effects_table(effects: PairedEffects, names: Mapping[str, ArrayLike]) -> pd.DataFrame:
    """One row per variant: `names` (what was changed), scores, differences, intervals, tests.

    `sure`: the difference is significant after correction for all rows of the table. Then, and
    only then, `simultaneous_low` and `simultaneous_high` lie on the same side of 0.
    """
    import pandas as pd

    return pd.DataFrame({**names, **{c: getattr(effects, c) for c in _COLUMNS}})


def loss_columns(losses: Balances) -> dict[str, NDArray[np.generic]]:
    """Whether the loss rises in more examples than it falls, as further columns of the table.

    `loss_balance`: the share of examples whose loss rises less the share whose loss falls. Bounds,
    p-values and `loss_sure` are as those of the score.
    """
    return {
        "loss_balance": losses.value,
        "loss_balance_low": losses.low,
        "loss_balance_high": losses.high,
        "loss_alone_low": losses.alone_low,
        "loss_alone_high": losses.alone_high,
        "loss_p_adjusted": losses.p_adjusted,
        "loss_sure": losses.sure,
    }


def effects_shown(table: pd.DataFrame) -> pd.DataFrame:
    """A table of effects to be read: rows whose score surely changes first, the largest change of
    it before others, and where the same answers change those whose loss changes more.

    After the names of a row come what happens to the score and to the loss, each with its corrected
    bounds, its adjusted p-value and whether it is sure. Bounds that are not corrected are left out.
    """
    by_loss = table.assign(size=table["loss_balance"].abs()).sort_values(
        ["loss_sure", "size"], ascending=False, kind="stable"
    )
    columns = [str(name) for name in table.columns]
    names = columns[: columns.index("score")]
    corrected = {f"simultaneous_{end}": f"difference_{end}" for end in ("low", "high")}
    kept = [*names, *_SHOWN, "score", "p", *(c for c in ("first_order",) if c in columns)]
    return strongest_first(by_loss, CHANGE)[kept].rename(columns=corrected)


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


def extreme(
    table: pd.DataFrame, *, n: int, level: float, largest: bool = True, loss: bool = False
) -> Estimate:
    """The largest gain that any row has (or the largest loss, as a positive number).

    Value and lower bound are of one row: the one with the largest effect, among sure ones if there
    are any. Lower bounds hold for all rows together, so some row surely has as much. The upper
    bound is the highest of all rows, with no correction for their number (`alone_high`): it is
    enough that the bound of the truly largest holds.

    Whether any row gains is what tests decided, so the smallest of their p-values is kept
    (`Estimate.tested`): it decides at other levels too, at which other rows may be sure.

    `loss`: of the balance of examples whose loss rises or falls, in place of the score. A table may
    have no `alone_low` and `alone_high`; the upper bound is then wider than need be. Without
    adjusted p-values the bounds alone decide.
    """
    names = _BALANCE if loss else _EFFECT
    ends = ("loss_alone_low", "loss_alone_high") if loss else ("alone_low", "alone_high")
    ends = ends if ends[1] in table else names[1:]
    value, low, high, below, above = (table[c].to_numpy() for c in (*names, *ends))
    if not largest:
        value, low, above = -value, -high, -below
    at = int(np.where((low > 0) | (low.max() <= 0), value, -np.inf).argmax())
    best = float(value[at]) + 0.0  # no minus before a zero
    tests = "loss_p_adjusted" if loss else "p_adjusted"
    tested = None
    if tests in table and best > 0:
        tested = 0.0, float(table[tests].to_numpy()[value > 0].min())
    return Estimate(best, min(low[at], best), max(above.max(), best), n, level, tested=tested)


def share_of_harmless(
    influence: Floats, reach: Floats, margin: float, level: float = 0.95, *, flips: bool
) -> Estimate:
    """The share of variants whose loss of score is smaller than `margin`.

    `influence` (V, N) and `reach` (V,) are those of `stats.paired.influences`; `flips`: these are
    answers that turn right or wrong, for which exact tests are known. At least so many variants are
    harmless, at most so many, by closed tests: to count them takes less than to name them. `needed`
    is about how many examples would tell whether these are most, and `tested` the p-value of that.
    """
    shifted, n = influence + margin, influence.shape[1]
    means = shifted.mean(axis=1)
    # The unseen examples that would contradict lie at the far end of what one example can do.
    worst = np.where(means > 0, np.maximum(reach - margin, 1e-12), reach + margin)
    evidence = evidence_against_zero(*distinct(shifted), reach=worst)
    p = np.exp(-evidence)
    if flips:
        worse, better = ((np.rint(influence) == way).sum(axis=1) for way in (-1, 1))
        p = np.where(
            means > 0,
            small_loss_p(worse, better, n, margin),
            small_loss_p(better, worse, n, -margin),
        )
    root, score = np.sqrt(2 * evidence), -ndtri(np.minimum(p, 1 - 1e-12))

    def shares(times: float, error: float) -> tuple[float, float]:
        """At least, and at most; were there so many times as many examples like these."""
        # The root of the likelihood grows as that of n, and what a test lacks of it shrinks so.
        expected = ndtr((root - score) / times**0.5 - root * times**0.5)
        harmless, harmful = (
            fewest_false(np.where(side, expected, 1.0), error / 2) / len(p)
            for side in (means > 0, means <= 0)
        )
        return harmless, 1 - harmful

    def most_are_told(times: float, error: float) -> bool:
        low, high = shares(times, error)
        return low > _MOST or high < _MOST

    error, more, errors = 1 - level, np.geomspace(1, 1000, 300), np.geomspace(1e-6, 1, 300)
    at = bisect_left(more, True, key=lambda times: most_are_told(times, error))
    needed = int(np.ceil(n * more[at])) if at < more.size else None
    at = bisect_left(errors, True, key=lambda chance: most_are_told(1, chance))
    least = float(errors[min(at, errors.size - 1)])
    return Estimate(
        float((means > 0).mean()),
        *shares(1, error),
        n,
        level,
        needed=needed,
        tested=(_MOST, least),
        counted=True,
    )


_GATE = 0.95
_FEWEST = 6  # examples: four or five are in the right order by chance in one of sixteen samples


def beats_constant_answer(
    predictions: ArrayLike, labels: ArrayLike, *, classes: bool, metric: str = "accuracy"
) -> bool:
    """Whether predictions are surely better than always giving the most frequent answer.

    For numbers: whether they surely rank the examples better than chance; and so for two classes
    scored by Matthews' correlation, by which every constant answer is worth 0.
    """
    return against_constant_answer(predictions, labels, classes=classes, metric=metric) > 0


def against_constant_answer(
    predictions: ArrayLike, labels: ArrayLike, *, classes: bool, metric: str = "accuracy"
) -> int:
    """1 if predictions surely beat a constant answer, -1 if they are surely worse, else 0."""
    given, wanted = np.asarray(predictions), np.asarray(labels)
    correlated = metric == "matthews" and len(np.unique(wanted)) == 2
    if correlated or not classes:
        if len(given) < _FEWEST or np.ptp(given) == 0 or np.ptp(wanted) == 0:
            return 0
        return _side(rank_correlation(given, wanted))
    kinds, counts = np.unique(wanted, return_counts=True)
    most_frequent = kinds[counts == counts.max()]  # of several, one drawn at random
    better = (given == wanted) - np.isin(wanted, most_frequent) / len(most_frequent)
    # A few that are all alike have no spread, and no test of signs would call them sure.
    alike = 2.0 ** (1 - np.count_nonzero(better)) >= 1 - _GATE
    return 0 if better.size < 2 or alike else _side(mean_interval(better, _GATE))


def _side(found: Estimate) -> int:
    """On which side of 0 an interval lies; 0 where it holds it."""
    return int(found.low > 0) - int(found.high < 0)


def example_losses(logits: NDArray[np.floating], labels: Floats) -> Floats:
    """(V, N) cross-entropy of each example, or its squared error where there is one output."""
    wide = logits.astype(np.float64)
    if wide.shape[-1] == 1:
        return np.asarray((wide[..., 0] - labels) ** 2)
    shifted = wide - wide.max(-1, keepdims=True)
    chosen = np.take_along_axis(shifted, labels.astype(int)[None, :, None], -1)[..., 0]
    return np.asarray(np.log(np.exp(shifted).sum(-1)) - chosen)
