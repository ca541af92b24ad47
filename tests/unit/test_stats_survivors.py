"""Agreement of repeated prunings: known numbers, and intervals that keep what they promise."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from bertology.stats.survivors import (
    cochrans_q,
    fleiss_kappa,
    jackknifed_pairs,
    overlap,
    spread_over_runs,
)


def test_kappa_is_that_of_a_table_worked_by_hand() -> None:
    """Three raters, four things: 1 1 1 / 1 1 0 / 0 0 0 / 1 0 0."""
    x = np.array([[1, 1, 0, 1], [1, 1, 0, 0], [1, 0, 0, 0]])
    same = (1 + 1 / 3 + 1 + 1 / 3) / 4
    by_chance = 0.5**2 + 0.5**2
    assert fleiss_kappa(x).value == pytest.approx((same - by_chance) / (1 - by_chance))
    assert fleiss_kappa(np.tile([1, 0, 1], (4, 1))).value == 1
    assert math.isnan(fleiss_kappa(np.ones((3, 4))).value)
    assert math.isnan(fleiss_kappa(x[:2]).low)


def test_q_is_cochrans_of_a_textbook() -> None:
    """Conover's example (1999, section 4.6): Q = 2.8 for three players and twelve games."""
    rows = [
        (1, 1, 1), (1, 1, 1), (0, 1, 0), (1, 1, 0), (0, 0, 0), (1, 1, 1),
        (1, 1, 1), (1, 1, 0), (0, 0, 1), (0, 1, 0), (1, 1, 1), (1, 1, 1),
    ]  # fmt: skip
    found = cochrans_q(np.array(rows))
    assert found is not None
    assert found.q == pytest.approx(2.8)
    assert found.freedom == 2
    assert found.p_asymptotic == pytest.approx(0.2466, abs=1e-3)
    assert found.p == pytest.approx(exact_p(np.array(rows), found.q), abs=0.04)
    assert cochrans_q(np.ones((3, 4))) is None


def exact_p(x: np.ndarray, q: float) -> float:
    """Over all orders of the rows that are not all alike, in all ways."""
    mixed = [row for row in x if 0 < row.sum() < len(row)]
    ways = [sorted({tuple(np.roll(row, k)) for k in range(3)}) for row in mixed]
    base = x.sum(0) - np.sum(mixed, axis=0)
    squares = [((base + np.sum(chosen, axis=0)) ** 2).sum() for chosen in product(*ways)]
    return float(np.mean(np.array(squares) >= (x.sum(0) ** 2).sum()))


def test_overlap_is_counted_in_bits_and_set_against_chance() -> None:
    one, other = np.zeros(20, bool), np.zeros(20, bool)
    one[:10], other[5:13] = True, True
    found = overlap(np.packbits(one), np.packbits(other), 20)
    assert found.jaccard == pytest.approx(5 / 13)
    assert found.chance == pytest.approx(4 / 14)
    agree, expected = 12 / 20, (0.5 * 0.4 + 0.5 * 0.6)
    assert found.kappa == pytest.approx((agree - expected) / (1 - expected))
    assert overlap(np.packbits(one), np.packbits(one), 20).kappa == 1


def masks(rng: np.random.Generator, chances: np.ndarray, runs: int) -> np.ndarray:
    return rng.random((runs, len(chances))) < chances


@pytest.mark.parametrize("runs", [3, 5, 10])
@pytest.mark.parametrize("stable", [0.0, 0.3, 0.8])
def test_intervals_of_kappa_hold_the_truth(runs: int, stable: float) -> None:
    """Heads with chances of their own: the truth is the κ of endless seeds."""
    rng, missed, times = np.random.default_rng(runs), 0, 300
    chances = np.where(rng.random(64) < 0.4, 0.4 + 0.6 * stable, 0.4 * (1 - stable))
    share = chances.mean()
    truth = 1 - (chances * (1 - chances)).mean() / (share * (1 - share))
    for _ in range(times):
        found = fleiss_kappa(masks(rng, chances, runs))
        missed += not (math.isnan(found.low) or found.low <= truth <= found.high)
    assert missed / times < 0.09


def test_random_survivors_are_not_surely_stable() -> None:
    rng, sure = np.random.default_rng(0), 0
    for draw in range(200):
        x = np.stack([rng.permutation(np.arange(48) < 30) for _ in range(5)])
        found = cochrans_q(x, permutations=199, seed=draw)
        assert found is not None
        sure += found.p < 0.025
    assert sure <= 12
    x = np.tile(np.arange(48) < 30, (5, 1))
    assert cochrans_q(x, permutations=199).p == pytest.approx(1 / 200)  # type: ignore[union-attr]


def in_layers(rng: np.random.Generator, counts: list[int], each: int, runs: int) -> np.ndarray:
    """So many of each layer survive, at random."""
    kept = [[rng.permutation(np.arange(each) < n) for n in counts] for _ in range(runs)]
    return np.array(kept).reshape(runs, -1)


def test_kappa_within_layers_is_that_of_every_two_runs() -> None:
    """By its definition, pair by pair and layer by layer; one layer is the mean of Cohen's."""
    rng = np.random.default_rng(0)
    x, layers = rng.random((4, 20)) < 0.4, np.repeat([0, 1, 2], [8, 7, 5])
    beyond = possible = 0.0
    for a, b in product(range(4), repeat=2):
        for layer in range(3 if a != b else 0):
            one, other = x[a, layers == layer], x[b, layers == layer]
            chance = one.mean() * other.mean() + (1 - one.mean()) * (1 - other.mean())
            beyond += len(one) * ((one == other).mean() - chance)
            possible += len(one) * (1 - chance)
    assert fleiss_kappa(x, strata=layers).value == pytest.approx(beyond / possible)
    same = np.tile(x[0], (4, 1))
    assert fleiss_kappa(same, strata=layers).value == pytest.approx(1)
    assert math.isnan(fleiss_kappa(np.ones((4, 20)), strata=layers).value)


def test_what_is_random_within_layers_agrees_on_nothing_within_them() -> None:
    rng, layers = np.random.default_rng(3), np.repeat(range(6), 12)
    held = sure = 0
    for draw in range(100):
        x = in_layers(rng, [1, 11, 2, 10, 6, 3], 12, 5)
        within = fleiss_kappa(x, strata=layers)
        held += within.low <= 0 <= within.high
        test = cochrans_q(x, strata=layers, permutations=99, seed=draw)
        assert test is not None
        sure += test.p <= 0.02
        assert fleiss_kappa(x).low > 0.1  # they do agree on layers
        assert test.freedom == 66
    assert held >= 88
    assert sure <= 7


def test_q_within_layers_adds_up() -> None:
    rng = np.random.default_rng(1)
    x, layers = rng.random((5, 12)) < 0.5, np.repeat(range(2), 6)
    parts = [cochrans_q(x[:, layers == k]) for k in range(2)]
    whole = cochrans_q(x, strata=layers)
    assert whole is not None
    assert whole.q == pytest.approx(sum(p.q for p in parts if p))
    assert whole.freedom == 10
    fixed = np.tile(x[0], (5, 1))
    assert cochrans_q(fixed, strata=layers).p == pytest.approx(1 / 2000)  # type: ignore[union-attr]


def test_spreads_and_pairs_have_intervals_over_runs() -> None:
    rng, missed = np.random.default_rng(1), 0
    for _ in range(300):
        together = rng.normal(0, 0.05, (5, 1)) + np.zeros(20)  # all matrices move as one
        found = spread_over_runs(together)
        missed += not found.low <= 0.05 <= found.high
    assert missed / 300 < 0.08
    assert math.isnan(spread_over_runs(np.ones((4, 3))).low)
    assert spread_over_runs([[0.0, 0.0], [2.0, 0.0]]).value == pytest.approx(1.0)
    pairs = np.full((4, 4), 0.5)
    pairs[0] = pairs[:, 0] = 0.2
    found = jackknifed_pairs(pairs)
    assert found.value == pytest.approx((3 * 0.2 + 3 * 0.5) / 6)
    assert found.low < found.value < found.high
