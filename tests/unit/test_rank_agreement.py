"""Rank correlations over pairs: SciPy's values, jackknifed influences, errors of shared texts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from bertology.errors import DataError
from bertology.stats import rank_correlation
from bertology.stats.rank_agreement import Agreement, PairLinks, rank_agreement
from bertology.studies.designs.pair_scores import Against, best_of, halves, least_of, of_ranks


def drawn(seed: int, n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return x, np.round(2 * (x + rng.normal(size=n)))  # judgements have ties


def apart(n: int) -> PairLinks:
    return PairLinks.of([(f"a{i}", f"b{i}") for i in range(n)])


def test_values_are_those_of_scipy_and_influences_those_of_leaving_out() -> None:
    x, y = drawn(0, 120)
    found = rank_agreement(np.stack([x, -x, np.round(x)]), y)
    for value, row in zip(found.value, (x, -x, np.round(x)), strict=True):
        assert value == pytest.approx(spearmanr(row, y)[0], abs=1e-12)
    assert found.influence.mean(axis=1) == pytest.approx(0, abs=1e-12)
    left = np.array([spearmanr(np.delete(x, i), np.delete(y, i))[0] for i in range(len(x))])
    jackknifed = (len(x) - 1) * (left.mean() - left)
    assert np.corrcoef(jackknifed, found.influence[0])[0, 1] > 0.9999
    assert found.influence[0].std() == pytest.approx(jackknifed.std(), rel=0.02)


def test_intervals_are_as_wide_as_those_of_the_bootstrap() -> None:
    x, y = drawn(1, 400)
    links, found = apart(400), rank_agreement(x, y)
    ours, other = links.estimate(found, level=0.95), rank_correlation(x, y)
    assert ours.high - ours.low == pytest.approx(other.high - other.low, rel=0.1)
    low, high, critical = links.bounds(found, level=0.95, resamples=1000, seed=0, correlation=True)
    assert critical == pytest.approx(1.97, abs=0.12)
    assert low[0] == pytest.approx(other.low, abs=0.03)
    assert high[0] == pytest.approx(other.high, abs=0.03)


def test_a_constant_side_has_no_order() -> None:
    found = rank_agreement(np.zeros((1, 30)), np.arange(30.0))
    assert (found.value[0], np.abs(found.influence).max()) == (0, 0)
    links = apart(30)
    low, high, _ = links.bounds(found, level=0.95, resamples=100, seed=0, correlation=True)
    assert (low[0], high[0]) == (0, 0)
    with pytest.raises(DataError, match="5 or more"):
        rank_agreement([1.0, 2.0], [1.0, 2.0])
    with pytest.raises(DataError, match="finite"):
        rank_agreement([1.0, 2, 3, 4, float("nan")], np.arange(5.0))


def test_pairs_that_share_words_are_not_independent() -> None:
    """Scores and judgements of a pair are sums of what its words have: few words, few facts."""
    naive, robust, seen = [], [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        pairs = [(a, b) for a in range(18) for b in range(a)]
        a, b = np.array(pairs).T
        of_x, of_y = rng.normal(size=(2, 18))
        noise = rng.normal(size=(2, len(pairs))) / 4
        found = rank_agreement(of_x[a] + of_x[b] + noise[0], of_y[a] + of_y[b] + noise[1])
        links = PairLinks.of(pairs)
        seen.append(found.value[0])
        naive.append(apart(len(pairs)).error(found.influence)[0])
        robust.append(links.error(found.influence)[0])
    seen, naive, robust = np.array(seen), np.array(naive), np.array(robust)
    assert robust.mean() > 2 * naive.mean()
    assert robust.mean() > 0.75 * seen.std()
    assert (np.abs(seen) > 2 * naive).mean() > 0.4  # what would be claimed of nothing
    assert (np.abs(seen) > 2.11 * robust).mean() < 0.17


def test_texts_that_do_not_repeat_change_nothing() -> None:
    x, y = drawn(2)
    influence = rank_agreement(x, y).influence
    plain = influence.std(ddof=1) / np.sqrt(len(x))
    assert apart(200).error(influence)[0] == pytest.approx(plain, rel=1e-9)
    assert not apart(200).shares_texts
    assert PairLinks.of([("a", "b"), ("b", "c")]).shares_texts
    assert not PairLinks.of([("a", "a"), ("b", "c")]).shares_texts


def test_halves_share_no_text_if_that_can_be() -> None:
    chain = PairLinks.of([(f"{i // 4}-{i % 4}", f"{i // 4}-{i % 4 + 1}") for i in range(80)])
    second = halves(chain)
    texts = [{*chain.first[half], *chain.second[half]} for half in (second, ~second)]
    assert not texts[0] & texts[1]
    assert 30 <= second.sum() <= 50
    everyone = PairLinks.of([(i, j) for i in range(12) for j in range(i)])
    assert 16 < halves(everyone).sum() < 50
    star = PairLinks.of([("all", i) for i in range(20)])
    assert halves(star).sum() == 10


def test_the_best_is_picked_on_the_other_half() -> None:
    """Of many rows of noise the best seems to tell something; scored on other pairs it does not."""
    values, picked = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        rows, y = rng.normal(size=(40, 60)), rng.normal(size=60)
        links = apart(60)
        best, found = best_of(rows, of_ranks(y), halves(links))
        values.append(spearmanr(rows[best], y)[0])
        picked.append(found.value[0])
    assert np.mean(values) > 0.2
    assert abs(np.mean(picked)) < 0.05


def test_the_least_of_some_needs_all_of_them() -> None:
    x, y = drawn(3)
    links, told = apart(200), rank_agreement(np.stack([x, x * 0]), y)
    good, nothing = Against(told[:1]), Against(told[1:])
    assert least_of([good, good], links, level=0.95).low > 0
    assert least_of([good, nothing], links, level=0.95).value == 0
    copies = [Agreement(np.array([v]), np.zeros((1, 200))) for v in (0.1, 0.5, 0.9)]
    wide = Against.copies(told[:1], copies).estimate(links, 0.95)
    assert wide.low < 0 < wide.value  # copies scatter more than this
    assert wide.lasting > 0.9
