"""Exact tests of flips, alone and for many variants, against plain computations."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, binomtest, multinomial

from bertology.errors import DataError
from bertology.metrics import METRICS
from bertology.results.comparison import beats_constant_answer, extreme, share_of_harmless
from bertology.stats import Estimate, paired_bootstrap
from bertology.stats.answer_flips import flip_tests, mcnemar, small_loss_p
from bertology.stats.multiplicity import fewest_false
from bertology.stats.paired import balances


def test_one_mcnemar_test_is_scipys() -> None:
    for better, worse in [(0, 0), (1, 0), (3, 3), (2, 9), (0, 12), (40, 71), (500, 420)]:
        wanted = binomtest(better, better + worse).pvalue if better + worse else 1.0
        assert mcnemar(better, worse) == pytest.approx(wanted, rel=1e-9)


def brute_force(changes: np.ndarray) -> np.ndarray:
    """Westfall and Young's step-down of the smallest p, over all signs of the examples."""

    def exact(rows: np.ndarray) -> np.ndarray:
        return mcnemar((rows > 0).sum(-1), (rows < 0).sum(-1))

    observed = exact(changes)
    signs = np.array(list(product((-1, 1), repeat=changes.shape[1])))
    null = np.array([exact(changes * s) for s in signs])  # (2^N, V)
    order, found, most = np.argsort(observed), np.ones(len(changes)), 0.0
    for at, one in enumerate(order):
        rest = null[:, order[at:]].min(axis=1)
        most = max(most, float((rest <= observed[one] * (1 + 1e-12)).mean()))
        found[one] = most
    return found


def test_smallest_p_is_that_of_all_signs() -> None:
    rng = np.random.default_rng(0)
    changes = rng.choice([-1.0, 0.0, 1.0], p=[0.2, 0.4, 0.4], size=(5, 10))
    changes[0] = [1, 1, 1, 1, 1, 1, 1, 0, 0, 1]
    p, adjusted = flip_tests(changes, resamples=20_000)
    np.testing.assert_allclose(p, mcnemar((changes > 0).sum(1), (changes < 0).sum(1)))
    np.testing.assert_allclose(adjusted, np.maximum(brute_force(changes), p), atol=0.015)
    assert p[0] == pytest.approx(2 * 0.5**8)
    assert adjusted[0] < 5 * p[0]  # less than Bonferroni charges


def test_what_never_flips_costs_nothing() -> None:
    rng = np.random.default_rng(0)
    changes = np.zeros((144, 400))
    changes[3, :8] = -1
    p, adjusted = flip_tests(changes, resamples=4000)
    assert p[3] == pytest.approx(2 * 0.5**8)
    assert adjusted[3] < 0.02  # Bonferroni: 1
    assert (np.delete(adjusted, 3) == 1).all()
    with pytest.raises(DataError, match="-1, 0 or 1"):
        flip_tests(rng.normal(size=(2, 5)))


def swept(rng: np.random.Generator, planted: int) -> tuple[np.ndarray, np.ndarray]:
    """Right answers of an intact model and of 144 heads, the first of which loses `planted`."""
    base = rng.random(400) < 0.9
    fragile = rng.gamma(1.0, 1.0, 400) * np.where(base, 0.5 / 0.9, 0.5 / 0.1)
    rates = np.array([0.002, 0.005, 0.01])[np.arange(144) % 3]
    heads = base ^ (rng.random((144, 400)) < rates[:, None] * fragile)
    if planted:
        heads[0] = base
        heads[0, rng.permutation(np.flatnonzero(base))[:planted]] = False
    return base, heads


@pytest.mark.parametrize(("planted", "fewest", "most"), [(10, 25, 40), (0, 0, 5)])
def test_ten_of_400_flips_one_way_are_found_and_nothing_else(
    planted: int, fewest: int, most: int
) -> None:
    """The likelihood bounds alone find this one in a third of all sweeps."""
    found = false = 0
    for seed in range(40):
        base, heads = swept(np.random.default_rng(seed), planted)
        _, p = flip_tests(heads.astype(float) - base, resamples=400, seed=seed)
        found += bool(p[0] < 0.05)
        false += bool((p[1:] < 0.05).any())
    assert fewest <= found <= most
    assert false <= 5


def test_bounds_and_tests_of_a_sweep_agree_and_one_head_is_told() -> None:
    base, heads = swept(np.random.default_rng(1), 12)
    metric, labels = METRICS["accuracy"], np.ones(400, dtype=int)
    rows = np.stack([metric.statistics(h.astype(int), labels) for h in heads])
    effects = paired_bootstrap(
        metric, metric.statistics(base.astype(int), labels), rows, resamples=400
    )
    assert effects.sure[0]
    assert effects.simultaneous_high[0] < 0
    outside = (effects.simultaneous_low > 0) | (effects.simultaneous_high < 0)
    assert (outside == effects.sure).all()


def test_the_largest_effect_is_bounded_from_above_without_correction() -> None:
    import pandas as pd

    table = pd.DataFrame(
        {
            "difference": [0.02, -0.01], "simultaneous_low": [-0.01, -0.05],
            "simultaneous_high": [0.06, 0.03], "alone_low": [0.0, -0.03],
            "alone_high": [0.04, 0.01],
        }
    )  # fmt: skip
    best, worst = (extreme(table, n=400, level=0.95, largest=up) for up in (True, False))
    assert (best.value, best.low, best.high) == (0.02, -0.01, 0.04)
    assert (worst.value, worst.low, worst.high) == (0.01, -0.03, 0.03)
    plain = extreme(table.drop(columns=["alone_low", "alone_high"]), n=400, level=0.95)
    assert plain.high == 0.06


def test_the_maximum_of_many_is_covered() -> None:
    """Also where all are equal, and the largest that was measured is far above the truth."""
    import pandas as pd

    missed = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        chance = rng.random((60, 300))
        signs = (chance < 0.03).astype(float) - (chance > 0.98)
        found = balances(signs, resamples=100, seed=seed)
        table = pd.DataFrame(
            {
                "loss_balance": found.value, "loss_balance_low": found.low,
                "loss_balance_high": found.high, "loss_alone_low": found.alone_low,
                "loss_alone_high": found.alone_high,
            }
        )  # fmt: skip
        most = extreme(table, n=300, level=0.95, loss=True)
        missed += not most.low <= 0.01 <= most.high
    assert missed <= 40 * 0.05 + 3 * np.sqrt(40 * 0.05 * 0.95)


def by_all_sets(p: np.ndarray, error: float) -> int:
    """The largest set that Simes' test does not reject, by trying all of them."""
    largest = 0
    for chosen in product((False, True), repeat=p.size):
        some = np.sort(p[np.array(chosen)])
        if some.size and (some > error * np.arange(1, some.size + 1) / some.size).all():
            largest = max(largest, some.size)
    return p.size - largest


def test_how_many_are_false_is_found_by_closed_testing() -> None:
    for seed in range(30):
        p = np.random.default_rng(seed).random(9) ** 3
        assert fewest_false(p, 0.05) == by_all_sets(p, 0.05)
    assert fewest_false([], 0.05) == 0
    assert fewest_false(np.full(144, 0.049), 0.05) == 144  # none is significant by Bonferroni
    assert fewest_false(np.full(144, 0.051), 0.05) == 0


def harmless(psi: np.ndarray, level: float = 0.95, *, flips: bool = True) -> Estimate:
    return share_of_harmless(psi, np.ones(len(psi)), 0.01, level, flips=flips)


def test_harmless_heads_can_be_shown_with_400_examples() -> None:
    """With bounds that name each head, 870 would be needed."""
    still = np.zeros((144, 400))
    assert harmless(still).low == 1
    few = harmless(still[:, :300])
    assert few.low == 0
    assert few.needed is not None
    assert 360 < few.needed < 380
    assert few.counted
    # Tested as it is counted: just sure enough with so many, at this level and at others.
    for level in (0.9, 0.95, 0.99):
        enough = harmless(still[:, :300], level).needed or 0
        sure, almost = (
            harmless(np.zeros((144, n))).at_level(level)
            for n in (int(1.06 * enough), int(0.94 * enough))
        )
        assert (sure.low > 0.5, almost.low > 0.5) == (True, False)
    half = np.zeros((144, 600))
    half[:72, :60] = -1
    found = harmless(half)
    assert 0.4 < found.low <= found.value == found.high == 0.5


def test_heads_at_the_margin_are_not_called_harmless() -> None:
    """All heads lose just one point: to say that more than half lose less would be false."""
    false, rng = 0, np.random.default_rng(0)
    for _ in range(60):
        shared, own = rng.random(500), rng.random((40, 500))
        worse = np.where(rng.random(500) < 0.5, shared, own) < 0.015
        better = own > 1 - 0.005
        psi = better.astype(float) - worse
        false += harmless(psi).low > 0
    assert false <= 60 * 0.025 + 3 * np.sqrt(60 * 0.025)


def test_half_of_the_heads_are_not_most_of_them() -> None:
    """One half surely gains and the other half, all on the same examples, loses the margin."""
    false, rng = 0, np.random.default_rng(1)
    for _ in range(100):
        psi = np.zeros((40, 1000))
        psi[:20, rng.random(1000) < 0.04] = 1
        lot = rng.random(1000)
        psi[20:, lot < 0.02], psi[20:, lot > 0.99] = -1, 1
        false += harmless(psi).low > 0.5
    assert false <= 100 * 0.025 + 3 * np.sqrt(100 * 0.025)


def test_exact_tests_count_more_heads_than_bounds_do() -> None:
    """Heads that flip ten answers of a thousand each way: Chernoff's bounds told nothing."""
    psi = np.zeros((144, 1000))
    psi[:, :20] = np.tile([1, -1], 10)
    before, now = harmless(psi, flips=False), harmless(psi)
    assert (before.low, now.low) == (0, 1)
    assert now.tested is not None
    assert now.tested[1] < 0.05
    # Open yet with half as many, and then about so many are told to settle it.
    half = harmless(psi[:, 10:510])
    assert half.low < 0.5
    assert half.needed is not None
    assert 800 < half.needed < 1100


def test_harmful_heads_are_counted_too() -> None:
    psi = np.zeros((40, 500))
    psi[:30, :30] = -1
    found = harmless(psi)
    assert found.value == 0.25
    assert found.high == 0.25


@pytest.mark.parametrize("loss", [0.01, -0.01])
def test_small_losses_are_tested_exactly(loss: float) -> None:
    """All samples of forty answers are gone through: no false alarm is more frequent than said."""
    n = 40
    worse, better = (side.ravel() for side in np.indices((n + 1, n + 1)))
    worse, better = (side[worse + better <= n] for side in (worse, better))
    p = small_loss_p(worse, better, n, 5 * loss)
    for share in (max(0.0, -5 * loss), 0.06, 0.1, 0.3):
        chance = multinomial.pmf(
            np.stack([worse, better, n - worse - better], axis=1),
            n,
            [share + 5 * loss, share, 1 - 2 * share - 5 * loss],
        )
        for error in (0.01, 0.05, 0.2):
            assert chance[p <= error].sum() <= error * 1.005
    assert (small_loss_p(np.array([5]), np.array([0]), n, 0.01) == 1).all()


def test_a_loss_of_which_nothing_was_seen() -> None:
    still = np.array([0])
    assert small_loss_p(still, still, 400, 0.01)[0] == pytest.approx(0.99**400, abs=2e-5)
    assert small_loss_p(still, still, 400, 0.0)[0] == 1


def test_a_balance_tells_how_many_examples_get_worse() -> None:
    signs = np.zeros((3, 200))
    signs[0, :30], signs[0, 30:35] = 1, -1
    signs[1, ::2], signs[1, 1::2] = 1, -1
    found = balances(signs, resamples=500)
    np.testing.assert_allclose(found.value, [25 / 200, 0, 0])
    assert list(found.sure) == [True, False, False]
    assert found.low[0] > 0
    assert found.p_adjusted[0] >= 2 * binom.cdf(5, 35, 0.5)
    assert found.high[2] > 0  # what was not seen in 200 examples may still exist


def test_a_few_right_answers_prove_nothing() -> None:
    """Two of two were "surely" better than a constant answer, and four of four in order."""
    for n, learnt in ((2, False), (4, False), (8, True)):
        labels = np.arange(n) % 2
        assert beats_constant_answer(labels, labels, classes=True) is learnt
        assert beats_constant_answer(np.arange(n), np.arange(n), classes=False) is learnt
