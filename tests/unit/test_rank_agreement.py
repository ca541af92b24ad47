"""Rank correlations over pairs: SciPy's values, jackknifed influences, errors of shared texts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from bertology.errors import DataError
from bertology.stats import rank_correlation
from bertology.stats.rank_agreement import Agreement, PairLinks, rank_agreement, rank_values
from bertology.studies.geometry.shared.pair_scores import Against, Ranks, Shares, Turns, least_of


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
        assert rank_values(row[None], y)[0] == pytest.approx(value, abs=1e-12)
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
    assert (np.abs(seen) > 2.11 * robust).mean() < 0.13


def test_a_pair_that_is_there_twice_is_one() -> None:
    x, y = drawn(4, 60)
    once = apart(60)
    both = np.concatenate([once.first, once.second]), np.concatenate([once.second, once.first])
    again = PairLinks(*both)  # the second time the other way round
    assert again.units == once.units == 60
    found = rank_agreement(np.tile(x, 2), np.tile(y, 2))
    plain = once.error(rank_agreement(x, y).influence)[0]
    assert again.error(found.influence)[0] == pytest.approx(plain, rel=0.1)
    assert apart(120).error(found.influence)[0] < 0.75 * plain  # as if there were twice as many


def test_a_text_that_is_in_most_pairs_makes_them_few() -> None:
    star = PairLinks.of([("all", i) for i in range(40)])
    assert star.units < 5
    half = PairLinks.of([("all" if i % 2 else f"a{i}", i) for i in range(400)])
    assert 10 < half.units < 30
    everyone = PairLinks.of([(i, j) for i in range(12) for j in range(i)])
    assert everyone.units == pytest.approx(12)


def test_answers_that_are_never_right_are_not_known_to_be_so() -> None:
    links, told = apart(100), Shares()(np.zeros((1, 100)), np.ones(100, bool))
    found = links.estimate(told - told, level=0.95)
    assert (found.value, found.high) == (0, pytest.approx(0.037, abs=0.001))  # the rule of three
    bounds = links.bounds(told, level=0.95, resamples=100, seed=0, correlation=False)
    assert bounds[1][0] == pytest.approx(0.037, abs=0.001)


def test_texts_that_do_not_repeat_change_nothing() -> None:
    x, y = drawn(2)
    influence = rank_agreement(x, y).influence
    plain = influence.std(ddof=1) / np.sqrt(len(x))
    assert apart(200).error(influence)[0] == pytest.approx(plain, rel=1e-9)
    assert not apart(200).shares_texts
    assert PairLinks.of([("a", "b"), ("b", "c")]).shares_texts
    assert not PairLinks.of([("a", "a"), ("b", "c")]).shares_texts


def test_turns_share_no_text() -> None:
    chain = PairLinks.of([(f"{i // 4}-{i % 4}", f"{i // 4}-{i % 4 + 1}") for i in range(80)])
    everyone = PairLinks.of([(i, j) for i in range(12) for j in range(i)])
    for links, scored in ((chain, 80), (everyone, 20)):
        y = np.random.default_rng(0).normal(size=len(links.first))
        turns = Turns(links, Ranks(y))
        assert len(turns.halves) == 20
        for half, other in turns.halves:
            texts = [{*links.first[of], *links.second[of]} for of in (half, other)]
            assert not texts[0] & texts[1]
            assert (half | other).sum() >= scored
        seen = np.any([half for half, _ in turns.halves], axis=0)
        assert seen.all()
        # A row that is not picked scores what it scores everywhere, as nearly as halves can tell.
        fixed, whole = turns.fixed(y + 1.0), rank_agreement(y[None], y)
        assert fixed.value[0] == pytest.approx(whole.value[0])
    star = PairLinks.of([("all", i) for i in range(20)])
    assert len(Turns(star, Ranks(np.arange(20.0))).halves) == 20
    with pytest.raises(DataError, match="share no text"):
        Turns(PairLinks.of([(i % 3, 3 + i % 2) for i in range(20)]), Ranks(np.arange(20.0)))
    with pytest.raises(DataError, match="differ in their scores"):
        Turns(apart(30), Ranks(np.zeros(30)))


def test_the_best_is_picked_on_other_pairs() -> None:
    """Of many rows of noise the best seems to tell something; scored on other pairs it does not."""
    values, picked = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        rows, y = rng.normal(size=(40, 60)), rng.normal(size=60)
        found = Turns(apart(60), Ranks(y)).best(rows)
        values.append(spearmanr(rows[found.row], y)[0])
        picked.append(found.told.value[0])
    assert np.mean(values) > 0.2
    assert abs(np.mean(picked)) < 0.05


def test_words_do_not_pick_what_they_score() -> None:
    """Scores and judgements of words of chance: halves of pairs would share all of the words."""
    honest, leaking = [], []
    for seed in range(15):
        rng = np.random.default_rng(seed)
        links = PairLinks.of([(i, j) for i in range(24) for j in range(i)])
        of_rows, of_y = rng.normal(size=(30, 24)), rng.normal(size=24)
        rows = of_rows[:, links.first] + of_rows[:, links.second]
        y = of_y[links.first] + of_y[links.second]
        honest.append(Turns(links, Ranks(y)).best(rows).told.value[0])
        odd = np.arange(len(y)) % 2 == 1
        best = rank_values(rows[:, odd], y[odd]).argmax()
        leaking.append(rank_values(rows[best][None, ~odd], y[~odd])[0])
    assert np.mean(leaking) > 0.3
    assert abs(np.mean(honest)) < 0.08


def test_what_was_picked_answers_for_each_pair() -> None:
    rng = np.random.default_rng(0)
    rows = (rng.random((6, 50)) < 0.4).astype(float)
    turns = Turns(apart(50), Shares())
    found = turns.best(rows)
    answers = turns.answers(rows, found.rows)
    assert answers.mean() == pytest.approx(found.told.value[0])
    assert turns.answers(rows, [3] * 20) == pytest.approx(rows[3])


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
    # At a higher level an interval of three copies grows as theirs does, not as that of 200 pairs.
    direct = Against.copies(told[:1], copies).estimate(links, 0.99)
    assert wide.at_level(0.99).low == pytest.approx(direct.low, rel=0.01)
    least = least_of([good, Against.copies(told[:1], copies)], links, level=0.95)
    assert least.freedom == pytest.approx(wide.freedom, rel=0.01)
    assert least.freedom < 3
