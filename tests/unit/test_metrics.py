"""Scores agree with scikit-learn and SciPy, also on subsets and on degenerate data."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats as scipy_stats
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from bertology.errors import DataError, UnknownNameError
from bertology.metrics import METRICS, find_metric

sizes = st.integers(1, 40)
binary_pairs = sizes.flatmap(lambda n: arrays(np.int64, (2, n), elements=st.integers(0, 1)))
class_pairs = sizes.flatmap(lambda n: arrays(np.int64, (2, n), elements=st.integers(0, 4)))
number_pairs = st.integers(3, 40).flatmap(
    lambda n: arrays(np.float64, (2, n), elements=st.integers(-50, 50).map(lambda i: i / 10))
)


def reference(name: str, predictions: np.ndarray, targets: np.ndarray) -> float:
    """What scikit-learn or SciPy say; undefined is 0."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        match name:
            case "accuracy":
                return float(accuracy_score(targets, predictions))
            case "f1":
                return float(f1_score(targets, predictions, zero_division=0))
            case "matthews":
                return float(matthews_corrcoef(targets, predictions))
            case "pearson":
                value = scipy_stats.pearsonr(predictions, targets).statistic
            case _:
                value = scipy_stats.spearmanr(predictions, targets).statistic
    return float(np.nan_to_num(value))


@settings(deadline=None, max_examples=60)
@given(class_pairs)
def test_accuracy_of_any_classes(pair: np.ndarray) -> None:
    assert METRICS["accuracy"].score(*pair) == pytest.approx(reference("accuracy", *pair))


@pytest.mark.parametrize("name", ["accuracy", "f1", "matthews"])
@settings(deadline=None, max_examples=60)
@given(pair=binary_pairs)
def test_two_classes_agree_with_scikit_learn(name: str, pair: np.ndarray) -> None:
    assert METRICS[name].score(*pair) == pytest.approx(reference(name, *pair), abs=1e-12)


@pytest.mark.parametrize("name", ["pearson", "spearman"])
@settings(deadline=None, max_examples=60)
@given(pair=number_pairs)
def test_correlations_agree_with_scipy(name: str, pair: np.ndarray) -> None:
    assert METRICS[name].score(*pair) == pytest.approx(reference(name, *pair), abs=1e-9)


@pytest.mark.parametrize("name", ["accuracy", "f1", "matthews", "pearson"])
@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10_000))
def test_weighting_rows_is_repeating_examples(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    predictions, targets = rng.integers(0, 2, (2, 30))
    weights = rng.multinomial(30, np.full(30, 1 / 30))
    metric = METRICS[name]
    quick = metric.finish(weights @ metric.statistics(predictions, targets))
    slow = metric.score(np.repeat(predictions, weights), np.repeat(targets, weights))
    assert quick == pytest.approx(slow, abs=1e-9)


def test_finish_takes_any_leading_shape() -> None:
    rng = np.random.default_rng(0)
    for metric in METRICS.values():
        rows = metric.statistics(*rng.integers(0, 2, (2, 50)))
        assert metric.finish(np.broadcast_to(rows.sum(0), (3, 2, rows.shape[1]))).shape == (3, 2)
        assert rows.shape[1] <= 6


@pytest.mark.parametrize("name", ["f1", "matthews"])
def test_undefined_scores_are_zero(name: str) -> None:
    assert METRICS[name].score([0, 0, 0], [0, 0, 0]) == 0
    assert METRICS[name].score([0, 0, 0], [1, 1, 1]) == 0


@pytest.mark.parametrize("name", ["pearson", "spearman"])
def test_constant_predictions_do_not_correlate(name: str) -> None:
    assert METRICS[name].score([0.1, 0.1, 0.1], [1.0, 2.0, 3.0]) == 0


@pytest.mark.parametrize(
    ("name", "predictions", "targets", "says"),
    [
        ("accuracy", [], [], "at least one"),
        ("accuracy", [1, 0], [1], r"shape \(2,\) and targets of shape \(1,\)"),
        ("accuracy", [[0.1, 0.9]], [1], "not logits"),
        ("accuracy", ["yes"], ["no"], "class ids"),
        ("pearson", [1.0, np.nan], [1.0, 2.0], "prediction of example 1 is nan"),
        ("spearman", [1.0, 2.0], [np.inf, 2.0], "target of example 0 is inf"),
        ("f1", [0, 2], [0, 1], "Got class 2"),
        ("matthews", [0, 1], [0, -1], "Got class -1"),
    ],
)
def test_bad_input_is_named(
    name: str, predictions: list[float], targets: list[float], says: str
) -> None:
    with pytest.raises(DataError, match=says):
        METRICS[name].score(predictions, targets)


def test_unknown_metric_offers_the_nearest() -> None:
    assert find_metric("f1") is METRICS["f1"]
    with pytest.raises(UnknownNameError, match="accuracy"):
        find_metric("acuracy")
