"""Shares named by a classifier that errs: planted shares are found again, intervals hold."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.stats import bounded_mean_bounds
from bertology.stats.named_shares import Mistakes, NamedShares

TABLE = np.array([[0.9, 0.05, 0.05], [0.1, 0.85, 0.05], [0.25, 0.05, 0.7]])


def checked(table: np.ndarray, count: int, seed: int, models: int = 3) -> Mistakes:
    chance = np.random.default_rng(seed)
    seen = chance.choice(3, count)
    named = np.array([chance.choice(3, p=table[t]) for t in seen])
    return Mistakes(seen, named, np.arange(count) % models, np.arange(count) // 6, 3)


def named_by(table: np.ndarray, truth: np.ndarray, examples: int, seed: int) -> np.ndarray:
    chance = np.random.default_rng(seed)
    names = chance.multinomial(60, truth @ table, size=examples)
    return np.asarray(names / 60)


def test_planted_shares_are_found_again() -> None:
    truth = np.array([0.3, 0.3, 0.4])
    named = named_by(TABLE, truth, 300, 0)
    assert abs(named[:, 2].mean() - 0.4) > 0.05  # what is named is wrong
    found = NamedShares(named, checked(TABLE, 3000, 1))
    assert np.allclose(found.shares, truth, atol=0.03)
    assert found.shares.sum() == pytest.approx(1)
    share = found.of(2)
    assert share.low < 0.4 < share.high
    assert found.of(0, 1).value == pytest.approx(1 - share.value)
    assert found.of(0, 1, 2).low == pytest.approx(1)


def test_a_class_that_is_not_there_may_be_zero() -> None:
    named = named_by(TABLE, np.array([0.6, 0.4, 0.0]), 300, 2)
    assert named[:, 2].mean() > 0.04
    share = NamedShares(named, checked(TABLE, 500, 3)).of(2)
    assert share.low == 0
    assert share.value < 0.03


def test_without_mistakes_the_interval_is_that_over_examples() -> None:
    named = named_by(np.eye(3), np.array([0.3, 0.3, 0.4]), 50, 4)
    many = NamedShares(named, checked(np.eye(3), 6000, 5)).of(2)
    low, high = bounded_mean_bounds(named[:, 2][None], None, low=0, high=1, budget=np.log(40))
    assert many.value == pytest.approx(named[:, 2].mean(), abs=1e-3)
    assert (many.low, many.high) == pytest.approx((low[0], high[0]), abs=5e-3)
    assert (many.n, many.unit) == (50, "examples")


def test_the_larger_source_of_error_is_counted() -> None:
    named = named_by(TABLE, np.array([0.3, 0.3, 0.4]), 400, 6)
    few = NamedShares(named, checked(TABLE, 90, 7)).of(2)
    assert (few.n, few.unit) == (90, "labelled items")
    wide = few.high - few.low
    sure = NamedShares(named, checked(TABLE, 3000, 7)).of(2)
    assert sure.high - sure.low < wide / 2


def test_examples_that_are_all_alike_are_not_certain() -> None:
    share = NamedShares(np.tile([0.5, 0.5, 0.0], (5, 1)), checked(np.eye(3), 600, 8)).of(0)
    assert share.high - share.low > 0.3


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    chance, hits, plain = np.random.default_rng(9), [], []
    for i in range(40):
        truth = chance.dirichlet([4, 3, 3])
        tables = [np.stack([chance.dirichlet(40 * row) for row in TABLE]) for _ in range(4)]
        parts = [checked(table, 170, 100 * i + m, models=1) for m, table in enumerate(tables[:3])]
        mistakes = Mistakes(
            np.concatenate([p.seen for p in parts]), np.concatenate([p.named for p in parts]),
            np.repeat([0, 1, 2], 170), np.concatenate([p.texts for p in parts]), 3,
        )  # fmt: skip
        named = named_by(tables[3], truth, 100, i)
        found = NamedShares(named, mistakes).of(2)
        hits.append(found.low <= truth[2] <= found.high)
        low, high = bounded_mean_bounds(named[:, 2][None], None, low=0, high=1, budget=np.log(40))
        plain.append(low[0] <= truth[2] <= high[0])
    assert np.mean(hits) > 0.9  # 40 draws of what should be 0.95
    assert np.mean(plain) < 0.4  # over examples alone
