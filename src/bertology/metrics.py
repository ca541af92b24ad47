"""Task scores as functions of per-example sufficient statistics.

Every metric here is `finish(sum of rows)`, where `statistics` gives one row of K numbers for
each example. A score on any subset, resample or weighting of the examples is then one vector
product, `finish(weights @ rows)`, and the bootstrap of hundreds of variants is one matrix product.

Scores that are not defined (no positive example, a constant prediction) are 0, as scikit-learn
gives for F1 and Matthews.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bertology.arrays import Bools, Floats
from bertology.errors import DataError, UnknownNameError


@dataclass(frozen=True)
class Metric:
    """A score that depends on the examples only through the sum of their statistics."""

    name: str
    statistics: Callable[[ArrayLike, ArrayLike], Floats]
    """(N,) predictions, (N,) targets -> (N, K) rows."""
    finish: Callable[[Floats], Floats]
    """(..., K) sums of rows -> (...) scores."""
    higher_is_better: bool = True
    discrete: bool = True
    """Whether predictions are class ids, so that a prediction either changes or stays the same."""
    counts_right: bool = False
    """Whether it is the share of right answers, so that only flips tell two scores apart."""
    lowest: float = 0.0
    """The lowest possible score; the highest is 1."""

    @property
    def within(self) -> tuple[float, float]:
        """Where scores lie."""
        return self.lowest, 1.0

    @property
    def in_hundred(self) -> str:
        """`accuracy (%)`: what a hundred times the score is called; a correlation is no share."""
        return f"{self.name} ({'× 100' if self.lowest < 0 else '%'})"

    @property
    def differences_within(self) -> tuple[float, float]:
        """Where differences of two scores lie."""
        return self.lowest - 1, 1 - self.lowest

    def score(self, predictions: ArrayLike, targets: ArrayLike) -> float:
        """The score over all examples given."""
        return float(self.finish(self.statistics(predictions, targets).sum(axis=0)))


def find_metric(name: str) -> Metric:
    """The metric called `name`; an UnknownNameError offers the nearest names."""
    if name not in METRICS:
        raise UnknownNameError("metric", name, METRICS)
    return METRICS[name]


def judged_metric(metrics: Sequence[str]) -> str:
    """Accuracy; but not where classes are so uneven that a task leaves it."""
    return "accuracy" if "accuracy" in metrics and metrics[0] != "matthews" else metrics[0]


def _pair(name: str, predictions: ArrayLike, targets: ArrayLike) -> tuple[Floats, Floats]:
    given, wanted = np.asarray(predictions), np.asarray(targets)
    if given.ndim != 1 or given.shape != wanted.shape or not given.size:
        raise DataError(
            f"{name} needs one prediction for each target, at least one of them. Got predictions "
            f"of shape {given.shape} and targets of shape {wanted.shape}.",
            hint="Give two lists of the same length: class ids or numbers, not logits.",
        )
    try:
        pair = given.astype(np.float64), wanted.astype(np.float64)
    except ValueError:
        raise DataError(
            f"{name} needs numbers, but some predictions or targets are text.",
            hint="Map labels to class ids first.",
        ) from None
    for what, values in zip(("prediction", "target"), pair, strict=True):
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            raise DataError(
                f"{name}: the {what} of example {bad[0]} is {values[bad[0]]}, not a number "
                f"({bad.size} of {values.size} are like this).",
                hint="Drop examples without a label, or repair the model that predicts NaN.",
            )
    return pair


def _binary(name: str, predictions: ArrayLike, targets: ArrayLike) -> tuple[Bools, Bools]:
    given, wanted = _pair(name, predictions, targets)
    for values in (given, wanted):
        odd = values[(values != 0) & (values != 1)]
        if odd.size:
            raise DataError(
                f"{name} is for two classes, ids 0 and 1. Got class {odd[0]:g}.",
                hint="Use 'accuracy' for tasks with more classes.",
            )
    return given == 1, wanted == 1


def _ratio(above: Floats, below: Floats) -> Floats:
    """above / below, and 0 where below is 0."""
    out = np.zeros(np.broadcast_shapes(np.shape(above), np.shape(below)))
    return np.divide(above, below, out=out, where=np.asarray(below) > 0)


def _accuracy_statistics(predictions: ArrayLike, targets: ArrayLike) -> Floats:
    given, wanted = _pair("accuracy", predictions, targets)
    return np.stack([given == wanted, np.ones(given.size)], axis=1).astype(np.float64)


def _accuracy(sums: Floats) -> Floats:
    return _ratio(sums[..., 0], sums[..., 1])


def _f1_statistics(predictions: ArrayLike, targets: ArrayLike) -> Floats:
    given, wanted = _binary("f1", predictions, targets)
    # F1 = 2 TP / (predicted positives + true positives of the data): two columns are enough.
    return np.stack([2.0 * (given & wanted), given * 1.0 + wanted], axis=1)


def _f1(sums: Floats) -> Floats:
    return _ratio(sums[..., 0], sums[..., 1])


def _matthews_statistics(predictions: ArrayLike, targets: ArrayLike) -> Floats:
    given, wanted = _binary("matthews", predictions, targets)
    cells = [given & wanted, given & ~wanted, ~given & wanted, ~given & ~wanted]
    return np.stack(cells, axis=1).astype(np.float64)


def _matthews(sums: Floats) -> Floats:
    tp, fp, fn, tn = np.moveaxis(sums, -1, 0)
    # Square roots before the product: four counts of a large corpus would lose digits.
    scale = np.sqrt((tp + fp) * (tp + fn)) * np.sqrt((tn + fp) * (tn + fn))
    return _ratio(tp * tn - fp * fn, scale)


def _moments(x: Floats, y: Floats) -> Floats:
    return np.stack([np.ones(x.size), x, y, x * x, y * y, x * y], axis=1)


def _pearson_statistics(predictions: ArrayLike, targets: ArrayLike) -> Floats:
    return _moments(*_pair("pearson", predictions, targets))


def _spearman_statistics(predictions: ArrayLike, targets: ArrayLike) -> Floats:
    """Ranks are taken once, over the sample given here, and resamples reuse them.

    A resample's score is thus the Pearson correlation of the full sample's ranks, which differs
    from re-ranking by a term that vanishes with N. Give the whole sample, never parts of it.
    """
    from scipy.stats import rankdata  # here, because it is slow to import

    x, y = _pair("spearman", predictions, targets)
    middle = (x.size + 1) / 2
    return _moments((rankdata(x) - middle) / x.size, (rankdata(y) - middle) / x.size)


def _correlation(sums: Floats) -> Floats:
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    spread_x, spread_y = n * xx - x * x, n * yy - y * y
    # For constant values, the tiny spread that remains is a rounding error.
    flat = (spread_x <= 1e-12 * n * xx) | (spread_y <= 1e-12 * n * yy)
    scale = np.where(flat, 0.0, np.sqrt(np.maximum(spread_x, 0) * np.maximum(spread_y, 0)))
    return np.clip(_ratio(n * xy - x * y, scale), -1.0, 1.0)


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("accuracy", _accuracy_statistics, _accuracy, counts_right=True),
        Metric("f1", _f1_statistics, _f1),
        Metric("matthews", _matthews_statistics, _matthews, lowest=-1.0),
        Metric("pearson", _pearson_statistics, _correlation, discrete=False, lowest=-1.0),
        Metric("spearman", _spearman_statistics, _correlation, discrete=False, lowest=-1.0),
    )
}
