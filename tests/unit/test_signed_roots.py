"""How much evidence an error rate takes: Student's law where many values make a mean."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bertology.stats.crossed import bounds_over
from bertology.stats.partial_means import partial_means
from bertology.stats.signed_roots import SignedRoots

TAIL = math.log(0.025)


def test_values_that_make_the_mean_are_counted() -> None:
    rng = np.random.default_rng(0)
    rows = np.stack([rng.standard_normal(3000), np.arange(3000) < 12, np.arange(3000) < 1500])
    freedom = SignedRoots.of(rows).freedom
    assert freedom[0] == pytest.approx(1000, rel=0.15)  # a third
    assert freedom[1] == pytest.approx(11, abs=0.1)  # the twelve rare ones
    assert freedom[2] == pytest.approx(2999)


def test_few_rare_values_and_none_keep_chernoffs_bound() -> None:
    rows = np.zeros((3, 100))
    rows[1, 0] = rows[2, :50] = 1
    none, one, half = SignedRoots.of(rows).budget(TAIL)
    assert none == one == -TAIL
    assert 1.9 < half < 2.4


def test_a_budget_leaves_its_tail() -> None:
    rows = np.random.default_rng(1).exponential(size=(5, 80))
    rows[3] = rows[3] > 2
    rows[4] = 1
    roots = SignedRoots.of(rows)
    for tail in (0.025, 1e-4, 1e-9):
        evidence = roots.budget(math.log(tail))
        assert np.exp(roots.log_tail(evidence)) == pytest.approx(np.full(5, tail))


def test_missing_values_change_nothing() -> None:
    x = np.random.default_rng(2).random((1, 50)).round(1)
    gaps = np.concatenate([x, np.full((1, 30), np.nan)], axis=1)
    assert SignedRoots.of(gaps).freedom == pytest.approx(SignedRoots.of(x).freedom)
    assert SignedRoots.of(gaps).half_step == pytest.approx(SignedRoots.of(x).half_step)


@pytest.mark.parametrize(("truth", "n"), [(0.02, 100), (0.1, 100), (0.5, 100), (0.5, 200)])
def test_shares_keep_their_promise_where_answers_are_rare(truth: float, n: int) -> None:
    """At Student's width from a hundred on, the first of them missed in 15 %."""
    hits = np.random.default_rng(3).binomial(n, truth, 4000)
    counts, often = np.unique(hits, return_counts=True)
    rows = (np.arange(n) < counts[:, None]).astype(float)
    found = partial_means(rows, among=1, support=(0.0, 1.0))
    missed = (found.alone_low > truth) | (found.alone_high < truth)
    assert often[missed].sum() / 4000 <= 0.05
    ends = np.array([bounds_over(row, (0.0, 1.0), 0.95) for row in rows])
    missed = (ends[:, 0] > truth) | (ends[:, 1] < truth)
    assert often[missed].sum() / 4000 <= 0.05


def test_many_values_have_hardly_wider_bounds_than_students() -> None:
    rows = np.random.default_rng(4).standard_normal((200, 400))
    found = partial_means(rows, among=1)
    width = (found.alone_high - found.alone_low) / (found.high - found.low)
    assert np.median(width) < 1.05  # with Chernoff's bound 1.4


@pytest.mark.parametrize("n", [100, 200, 1000])
def test_losses_that_were_not_seen_are_allowed_for_in_influences(n: int) -> None:
    """In one of eleven samples no loss is seen; by the law of the others one in ten missed."""
    rng, lost = np.random.default_rng(5), 2.4 / n
    gained = rng.normal(lost / (1 - lost), 0.01, (1000, n))
    rows = np.where(rng.random((1000, n)) < lost, -1.0, gained)
    ends = np.array([bounds_over(row, (-1.0, 1.0), 0.95) for row in rows])
    assert ((ends[:, 0] > 0) | (ends[:, 1] < 0)).mean() <= 0.05


def test_what_was_not_seen_costs_many_values_little() -> None:
    rows = np.random.default_rng(6).choice([1.0, -1.0, 0.0], (50, 200), p=[0.1, 0.1, 0.8])
    some, all_ends = SignedRoots.of(rows), SignedRoots.within(rows, -1.0, 1.0)
    assert all_ends.budget(TAIL) == pytest.approx(some.budget(TAIL), rel=0.05)
