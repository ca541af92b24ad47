"""Checkerboards: the same as counting them one by one; intervals cover; sums are worth a half."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.special import stdtrit
from scipy.stats import binomtest

from bertology.errors import DataError
from bertology.stats.checkerboards import checkerboards, weighted


def plain(scores: np.ndarray, labels: np.ndarray) -> tuple[float, int]:
    """One after the other."""
    right = boards = 0.0
    for a, b in combinations(range(len(labels)), 2):
        for p, q in combinations(range(labels.shape[1]), 2):
            four = labels[a, p], labels[b, q], labels[a, q], labels[b, p]
            if four == (1, 1, 0, 0) or four == (0, 0, 1, 1):
                sign = 1 if four[0] else -1
                more = scores[a, p] + scores[b, q] - scores[a, q] - scores[b, p]
                boards += 1
                right += 0.5 if abs(more) < 1e-9 else sign * more > 0
    return right / boards, int(boards)


@pytest.mark.parametrize("shape", [(9, 5), (5, 9)])
def test_as_counted_one_by_one(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    labels = (rng.random(shape) < 0.5).astype(float)
    labels[rng.random(shape) < 0.1] = np.nan
    scores = rng.normal(size=(2, *shape))
    found = checkerboards(scores, labels)
    for way in range(2):
        assert (found.value[way], found.boards) == pytest.approx(plain(scores[way], labels))
        assert found.things[way].sum() == pytest.approx(0, abs=1e-12)
        assert found.attributes[way].sum() == pytest.approx(0, abs=1e-12)


def test_things_of_other_folds_are_not_compared() -> None:
    rng = np.random.default_rng(1)
    labels, scores = (rng.random((16, 6)) < 0.5).astype(float), rng.normal(size=(16, 6))
    folds = np.arange(16) % 2
    found = checkerboards(scores[None], labels, folds=folds)
    one, other = (plain(scores[folds == f], labels[folds == f]) for f in (0, 1))
    boards = one[1] + other[1]
    assert found.boards == boards
    assert found.value[0] == pytest.approx((one[0] * one[1] + other[0] * other[1]) / boards)


def test_a_sum_of_what_each_has_alone_is_worth_one_half() -> None:
    rng = np.random.default_rng(2)
    labels = (rng.random((20, 10)) < np.linspace(0.1, 0.9, 10)).astype(float)
    scores = 1000 * rng.normal(size=(20, 1)) + 10 * rng.normal(size=(1, 10))
    assert checkerboards(scores[None], labels).value[0] == 0.5
    assert checkerboards(scores[None] + labels, labels).value[0] == 1


def test_intervals_cover_where_things_and_attributes_are_drawn() -> None:
    """Labels and scores share a few dimensions by chance, as those of a random model do."""
    rng, missed = np.random.default_rng(3), 0
    for _ in range(100):
        things, attributes = rng.normal(size=(2, 30, 2)), rng.normal(size=(2, 10, 2))
        labels, scores = (t @ a.T for t, a in zip(things, attributes, strict=True))
        found = checkerboards(scores[None], (labels > 0.7).astype(float)).estimate(0)
        assert found is not None
        missed += not found.low < 0.5 < found.high
    assert missed / 100 < 0.08


@pytest.mark.parametrize("sign", [1, -1, 0])
def test_few_boards_that_all_agree_leave_much_open(sign: int) -> None:
    """Four boards of four things and two attributes are one board that stands alone."""
    labels = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], dtype=float)
    found = checkerboards(sign * labels[None], labels)
    assert (found.boards, found.apart) == (4, 1)
    share = found.estimate(0)
    assert share is not None
    assert share.value == (1 + sign) / 2
    assert (share.low, share.high) == pytest.approx(
        {1: (0.025, 1), -1: (0, 0.975), 0: (0.0125, 0.9875)}[sign]
    )
    gain = found.gain(found, 0, 0, level=0.95)
    assert gain is not None
    assert (gain.low, gain.high) == pytest.approx((-0.975, 0.975))
    short = weighted([(0.5, found, 0), (0.5, found, 0), (-1.0, found, 0)])
    assert short is not None
    assert (short.low, short.high) == pytest.approx((-0.975, 0.975))


@pytest.mark.parametrize("n", [4, 8, 20])
def test_boards_that_agree_are_counted_as_in_the_sign_test(n: int) -> None:
    """A thing for each attribute: n / 2 of the boards have nothing in common."""
    labels = np.eye(n)
    found = checkerboards(labels[None], labels)
    share = found.estimate(0, level=0.95)
    assert share is not None
    exact = binomtest(n // 2, n // 2).proportion_ci(method="exact")
    assert (share.low, share.high) == pytest.approx((exact.low, 1))


def test_one_unit_in_all_boards_leaves_few_that_stand_alone() -> None:
    """One thing has the first attribute, nine have others: no two boards share nothing."""
    labels = np.eye(10)
    labels[1:, 1:] = np.where(np.eye(9) > 0, 1, np.nan)
    labels[0, 1:] = 0
    found = checkerboards(labels[None], labels)
    assert found.boards == 9
    assert found.apart < 2


def test_counting_adds_nothing_where_boards_differ() -> None:
    rng = np.random.default_rng(5)
    labels = (rng.random((60, 40)) < 0.4).astype(float)
    scores = labels + 2 * rng.normal(size=labels.shape)
    found = checkerboards(scores[None], labels)
    share = found.estimate(0)
    assert share is not None
    things, attributes = found.things[0], found.attributes[0]
    spread = np.sqrt(60 / 59 * (things**2).sum() + 40 / 39 * (attributes**2).sum())
    assert share.high - share.value == pytest.approx(float(stdtrit(39, 0.975)) * spread)
    assert share.value - share.low == pytest.approx(share.high - share.value)


def test_sums_of_shares_and_what_has_no_boards() -> None:
    rng = np.random.default_rng(4)
    labels, scores = (rng.random((12, 6)) < 0.5).astype(float), rng.normal(size=(1, 12, 6))
    one = checkerboards(scores, labels)
    found = weighted([(0.5, one, 0), (0.5, one, 0), (-1.0, one, 0)])
    assert found is not None
    assert found.value == pytest.approx(0)
    assert found.low < 0 < found.high
    gain = one.gain(one, 0, 0, level=0.95)
    assert gain is not None
    assert gain.low < gain.value == 0 < gain.high
    none = checkerboards(scores, np.ones((12, 6)))
    assert none.estimate(0) is None
    assert weighted([(1.0, none, 0)]) is None
    with pytest.raises(DataError, match="must be of the labels' shape"):
        checkerboards(scores[0], labels)
