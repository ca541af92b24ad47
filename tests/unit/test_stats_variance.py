"""Variance of crossed seeds: textbook formulas, known components recovered, nulls, brute force."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom, chi2, f

from bertology.errors import DataError
from bertology.results.evidence import evidence_array, read_evidence
from bertology.results.rules import Relation, Rule, settling
from bertology.stats.best_of_runs import BestOfRuns, halves
from bertology.stats.variance_components import EFFECTS, components, spread


def drawn(
    rng: np.random.Generator, spreads: tuple[float, float, float], shape: tuple[int, int, int]
) -> np.ndarray:
    """Right answers of runs whose true scores are 0.75 and what seeds add."""
    rows, columns, examples = shape
    skill = 0.75 + rng.normal(0, spreads[0], (rows, 1)) + rng.normal(0, spreads[1], (1, columns))
    skill = skill + rng.normal(0, spreads[2], (rows, columns))
    luck = (rng.normal(size=examples) + rng.normal(size=shape)) / np.sqrt(2)
    return (ndtr(luck) < skill[..., None]).astype(float)


def grid(scores: np.ndarray, examples: int = 6) -> np.ndarray:
    """Runs of which every example has the same: nothing is luck."""
    return np.repeat(scores[..., None], examples, axis=2)


def test_components_are_those_of_the_analysis_of_variance() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=(4, 6))
    rows, columns = y.mean(axis=1) - y.mean(), y.mean(axis=0) - y.mean()
    rest = y - y.mean() - rows[:, None] - columns
    ms = {
        "rows": 6 * (rows**2).sum() / 3,
        "columns": 4 * (columns**2).sum() / 5,
        "rest": (rest**2).sum() / 15,
    }
    found = components(grid(y))
    wanted = {
        "rows": (ms["rows"] - ms["rest"]) / 6,
        "columns": (ms["columns"] - ms["rest"]) / 4,
        "rest": ms["rest"],
    }
    wanted["runs"] = sum(wanted.values())
    for effect in EFFECTS:
        assert found.variance[effect].value == pytest.approx(wanted[effect])
        assert found.luck[effect] == pytest.approx(0, abs=1e-12)
    low, high = 15 * ms["rest"] / chi2.ppf([0.975, 0.025], 15)
    assert (found.variance["rest"].low, found.variance["rest"].high) == pytest.approx((low, high))
    assert found.p["rows"] == pytest.approx(f.sf(ms["rows"] / ms["rest"], 3, 15))


@pytest.mark.parametrize("tail", [0.025, 0.975])
def test_bounds_exclude_nothing_exactly_where_the_f_test_does(tail: float) -> None:
    """Rows are made just so different that F is critical: that bound of their variance is 0."""
    y = np.random.default_rng(1).normal(size=(5, 7))
    rows = y.mean(axis=1, keepdims=True) - y.mean()
    rest = y - rows - y.mean(axis=0)
    now = 7 * (rows**2).sum() / 4 / ((rest**2).sum() / 24)
    scale = np.sqrt(f.ppf(1 - tail, 4, 24) / now)
    found = components(grid(rest + scale * rows)).variance["rows"]
    assert (found.low if tail < 0.5 else found.high) == pytest.approx(0, abs=1e-9)


def test_known_components_are_recovered_and_intervals_cover() -> None:
    rng, draws = np.random.default_rng(2), 60
    spreads = (0.03, 0.0, 0.02)
    truth = dict(zip(EFFECTS, (*(s**2 for s in spreads), sum(s**2 for s in spreads)), strict=True))
    values = dict[str, list[float]]((effect, []) for effect in EFFECTS)
    missed = dict.fromkeys(EFFECTS, 0)
    for _ in range(draws):
        found = components(drawn(rng, spreads, (6, 5, 300))).variance
        for effect, true in truth.items():
            values[effect].append(found[effect].value)
            missed[effect] += found[effect].low > true or found[effect].high < true
    for effect, true in truth.items():
        error = np.std(values[effect]) / np.sqrt(draws)
        assert abs(np.mean(values[effect]) - true) < 3.5 * error, effect
        assert missed[effect] <= binom.ppf(0.999, draws, 0.05), effect


def test_luck_of_examples_is_not_taken_for_seeds() -> None:
    """Runs of one true score differ on 100 examples by four points, all of it luck."""
    rng, found = np.random.default_rng(3), []
    for _ in range(30):
        one = components(drawn(rng, (0, 0, 0), (5, 5, 100)))
        assert one.luck["runs"] > 0
        found.append((one.variance["runs"].value, one.luck["runs"], one.variance["runs"].low))
    value, luck, low = np.array(found).T
    assert np.sqrt(luck.mean()) > 0.02
    assert abs(value.mean()) < 3.5 * value.std() / np.sqrt(30)
    assert (low > 0).sum() <= binom.ppf(0.999, 30, 0.025)


def test_luck_of_runs_is_not_counted_twice() -> None:
    """Orders differ by two points, luck by as much: the bound sees about what the F test sees."""
    rng, seen = np.random.default_rng(8), np.zeros(2)
    for _ in range(30):
        found = components(drawn(rng, (0, 0.02, 0), (6, 6, 300)))
        seen += found.variance["columns"].low > 0, found.p["columns"] < 0.025
    assert seen[1] > 15
    assert 0.8 * seen[1] < seen[0] <= seen[1]


def test_the_lower_bound_of_a_sum_misses_as_seldom_as_it_may() -> None:
    """Graybill and Wang's would miss about 30 of these 600, where 15 are promised."""
    rng = np.random.default_rng(9)
    missed = sum(
        components(grid(rng.normal(size=(5, 5)), 3)).variance["runs"].low > 1 for _ in range(600)
    )
    assert missed <= 22


def test_how_many_seeds_would_settle_it() -> None:
    """Three by three runs leave open what many more would tell, beside whatever border is asked."""
    y = np.array([[1.0, 2.0, 2.5], [2.0, 2.0, 3.0], [1.0, 3.0, 2.0]])
    found = spread(components(grid(y)).variance["columns"])
    assert found.low == 0 < found.value

    def needed(border: float) -> int | None:
        rule = Rule(quantity="x", relation=Relation.ABOVE, value=border)
        settled = settling(rule, found)
        return None if settled is None else settled.needed

    few, more = needed(0.0), needed(found.value / 2)
    assert few is not None
    assert more is not None
    assert 3 < few < 10
    assert few < more < 40
    assert needed(found.value) is None, "no number tells what lies on the border"
    assert needed(found.value * 2) is not None, "it is surely below one day"
    first = found.expected_at(few)
    assert found.expected_at(few - 1).low == 0 < first.low
    assert first.n == few
    # At a stricter level it takes more; and what is stored reads as it was.
    assert found.at_level(0.99).expected_at(few).low < first.low
    assert read_evidence(evidence_array({"x": found})) == {"x": found}


def test_seeds_foreseen_are_those_that_are_then_found() -> None:
    """Bounds of twelve by twelve runs lie where those of six by six said, in the mean."""
    rng, told, found = np.random.default_rng(3), [], []
    for _ in range(60):
        effects = rng.normal(size=(12, 1)) + rng.normal(size=(1, 12)) + rng.normal(size=(12, 12))
        few = components(grid(effects[:6, :6])).variance["rows"]
        told.append(few.expected_at(12).high - few.value)
        many = components(grid(effects)).variance["rows"]
        found.append(many.high - many.value)
    assert 0.7 < np.mean(told) / np.mean(found) < 1.4


def test_a_spread_is_never_below_zero() -> None:
    found = spread(components(grid(np.array([[1.0, 2.0], [2.0, 1.0]]))).variance["rows"])
    assert found.value == found.low == 0


def best_of(values: np.ndarray, *, deals: int = 4, **more: int) -> BestOfRuns:
    picks = halves(values.shape[2], deals=deals)
    sides = [
        np.einsum("dn,ijn->dij", side, values) / side.sum(axis=1)[:, None, None]
        for side in (picks.astype(float), (~picks).astype(float))
    ]
    return BestOfRuns(values, picks, sides[0], sides[1], **more)


def test_the_expected_best_is_the_mean_over_all_sets_without_a_common_seed() -> None:
    values = np.random.default_rng(4).normal(size=(4, 5, 8))
    scores, found = values.mean(axis=2), best_of(values, draws=30000)
    for k in (1, 2, 3):
        sets = [
            max(scores[i, j] for i, j in zip(rows, columns, strict=True))
            for rows in combinations(range(4), k)
            for columns in permutations(range(5), k)
        ]
        assert found.picked(k).value == pytest.approx(np.mean(sets), abs=0.01)


def test_the_best_by_luck_is_no_better_elsewhere() -> None:
    rng, gains, missed, draws = np.random.default_rng(5), [], 0, 30
    for _ in range(draws):
        found = best_of(drawn(rng, (0, 0, 0), (5, 5, 120)), draws=1500)
        assert found.picked(3).value > found.picked(1).value + 0.01
        gain = found.gain(3)
        gains.append(gain.value)
        missed += gain.excludes(0)
    assert abs(np.mean(gains)) < 3.5 * np.std(gains) / np.sqrt(draws)
    assert missed <= binom.ppf(0.999, draws, 0.05)


def test_the_gain_of_the_best_is_covered() -> None:
    """Of three runs with normal scores the best is 0.846 standard deviations above the mean."""
    rng, missed, draws = np.random.default_rng(6), 0, 40
    for _ in range(draws):
        scores = rng.normal(0, 0.03, (6, 1)) + rng.normal(0, 0.04, (6, 6))
        missed += best_of(grid(scores), draws=1500).gain(3).excludes(0.84628 * 0.05)
    assert missed <= binom.ppf(0.999, draws, 0.05)


def test_stopping_costs_nothing_where_early_scores_tell_all() -> None:
    scores = np.random.default_rng(7).normal(size=(6, 6))
    found = best_of(grid(scores))
    sure = found.stopping(found.picking, 0.25)
    assert sure.loss.value == 0
    assert sure.saving == pytest.approx(0.75 / 2)
    assert sure.gain.value > 0
    wrong = found.stopping(-found.picking, 0.25)
    assert wrong.loss.value > 0
    assert wrong.gain.value < 0


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(DataError, match="rows ≥ 2"):
        components(np.zeros((1, 3, 9)))
    with pytest.raises(DataError, match="four in all"):
        halves(3)
    with pytest.raises(DataError, match="two by two"):
        best_of(np.zeros((1, 4, 8)))
