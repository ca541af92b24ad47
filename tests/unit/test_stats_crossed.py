"""Runs and examples crossed: intervals hold the truth, also where one side varies much more."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr

from bertology.metrics import find_metric
from bertology.stats import Estimate
from bertology.stats.crossed import crossed_difference

ACCURACY = find_metric("accuracy")


def drawn(
    rng: np.random.Generator,
    seeds: int,
    n: int,
    spreads: tuple[float, float],
    own: float = 0.7,
    *,
    once: bool = False,
) -> tuple[Estimate, float]:
    """Two methods whose seeds spread by `spreads`; examples are easy or hard. And the truth.

    Examples are hard for both methods, and by `own` for one of them.
    A run is right where a normal number lies below a border; so the truth is one of the normal law.
    """
    ease, labels = rng.normal(size=n), np.ones(n)
    sides, truths = [], []
    for border, spread in zip((0.9, 0.6), spreads, strict=True):
        luck = rng.normal(0, spread, (seeds, 1)) if spread else np.zeros((seeds, 1))
        hard = ease + own * rng.normal(size=n)
        right = hard + luck + rng.normal(0, 0.5, (seeds, n)) < border
        sides.append(np.stack([ACCURACY.statistics(row.astype(float), labels) for row in right]))
        truths.append(ndtr(border / math.sqrt(1.25 + spread**2 + own**2)))
    return crossed_difference(ACCURACY, *sides, once=once), truths[0] - truths[1]


@pytest.mark.parametrize(
    ("seeds", "n", "spreads", "once"),
    [
        (5, 200, (0.4, 0.02), False),
        (3, 150, (0.02, 0.1), False),
        (5, 800, (0.05, 0.05), False),
        (3, 150, (0.02, 0.1), True),
        (5, 200, (0.02, 0.02), True),
    ],
)
def test_intervals_hold_the_truth_at_every_level(
    seeds: int, n: int, spreads: tuple[float, float], once: bool
) -> None:
    """`benchmarks/crossed_coverage.py` has 1,000 designs of each kind."""
    rng, times, missed = np.random.default_rng(seeds * n), 150, [0, 0]
    for _ in range(times):
        found, truth = drawn(rng, seeds, n, spreads, once=once)
        stricter = found.at_level(1 - 0.05 / 6)
        missed[0] += not found.low <= truth <= found.high
        missed[1] += not stricter.low <= truth <= stricter.high
    assert missed[0] <= 13  # 95 %: 7.5 are expected at most
    assert missed[1] <= 5


def test_the_arm_of_few_seeds_grows_as_theirs_does() -> None:
    """Examples make the interval wide; at a higher level five seeds still count as five."""
    found, _ = drawn(np.random.default_rng(4), 5, 150, (0.1, 0.1))
    assert found.unit == "examples"
    assert found.lasting > 0.3
    assert found.freedom is not None
    assert 4 <= found.freedom < 100
    both = found.high - found.low
    wide = found.at_level(0.9999)
    assert (wide.high - wide.low) / both > 2.2  # normal quantiles alone would give 1.98
    alone, _ = drawn(np.random.default_rng(4), 5, 150, (0.0, 0.0))
    assert alone.freedom is not None


def test_what_seeds_and_examples_do_together_may_count_once() -> None:
    """Answers are all of luck: the arm of seeds has it already, and examples alone stay a floor."""
    for seed in range(5):
        twice, _ = drawn(np.random.default_rng(seed), 3, 200, (0.05, 0.05))
        once, _ = drawn(np.random.default_rng(seed), 3, 200, (0.05, 0.05), once=True)
        assert twice.low < once.low < once.value == twice.value < once.high < twice.high
    same = np.repeat(np.random.default_rng(0).random((2, 1, 200)) < 0.8, 3, axis=1).astype(float)
    one, other = (np.stack([ACCURACY.statistics(row, np.ones(200)) for row in of]) for of in same)
    still = crossed_difference(ACCURACY, one, other, once=True)
    assert still == crossed_difference(ACCURACY, one, other)  # runs agree: only examples tell


def test_it_can_be_counted_in_seeds() -> None:
    rng = np.random.default_rng(4)
    easy = rng.random((2, 1, 150)) + 0.2 * rng.random((2, 5, 150))
    one, other = (
        np.stack([ACCURACY.statistics((row < 0.8).astype(float), np.ones(150)) for row in of])
        for of in easy
    )
    plain = crossed_difference(ACCURACY, one, other)
    counted = crossed_difference(ACCURACY, one, other, in_seeds=True)
    assert (counted.low, counted.high) == (plain.low, plain.high)
    assert (counted.unit, counted.n) == ("seeds", 5)
    assert plain.unit == "examples"
    assert counted.lasting**2 + plain.lasting**2 == pytest.approx(1)
    many = counted.expected_at(10**5)
    shrunk = (many.high - many.low) / (counted.high - counted.low)
    assert shrunk == pytest.approx(counted.lasting, abs=0.01)
