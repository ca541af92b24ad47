"""One claim on several tasks: corrected verdicts, and mixed only where tasks surely differ."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from bertology.results.comparison import extreme, loss_columns
from bertology.results.over_tasks import corrected, overall
from bertology.results.rules import Outcome, Relation, Rule
from bertology.results.verdicts import Claim, Published, Source, Verdict
from bertology.stats import Estimate, mean_interval
from bertology.stats.paired import balances

Interval = tuple[float, float]


def verdict(interval: Interval | None, *, margin: float | None = None, n: int = 400) -> Verdict:
    rule = Rule("gain", Relation.ABOVE, 0.0, margin=margin)
    claim = Claim("a.b", Source("A", "1"), "So.", Published("3"), "some-study", rule, "Because.")
    if interval is None:
        return Verdict(claim, Outcome.NOT_APPLICABLE, None, 0, "no such words")
    found = Estimate(sum(interval) / 2, *interval, n)
    return Verdict(claim, rule.judge(found), found, n)


def outcomes(*intervals: Interval | None, margin: float | None = None) -> tuple[str, list[str]]:
    found = corrected([verdict(one, margin=margin) for one in intervals])
    return overall(found), [v.outcome.value for v in found]


SURE, ALMOST, OPEN, AGAINST = (0.5, 1.5), (0.02, 1.0), (-0.5, 0.7), (-1.5, -0.5)


def test_one_task_is_judged_as_it_is() -> None:
    (found,) = corrected([verdict(ALMOST)])
    assert (found.outcome, found.level) == (Outcome.HOLDS, None)
    assert overall([found]) == "holds"
    assert overall([]) == "not run"
    assert overall(corrected([verdict(None)])) == "not judged"


def test_true_effects_on_one_of_two_tasks_seldom_hold_over_all() -> None:
    rng, held, both = np.random.default_rng(0), 0, 0
    for _ in range(1000):
        one, other, none = (mean_interval(rng.normal(mean, size=100)) for mean in (0.3, 0.3, 0))
        held += outcomes((one.low, one.high), (none.low, none.high))[0] == "holds"
        both += outcomes((one.low, one.high), (other.low, other.high))[0] == "holds"
    assert held <= 50
    assert both > 650


def test_what_is_barely_sure_on_one_task_of_many_is_not_sure() -> None:
    """The chance of one such task among eight is 34 % where the claim is true of none."""
    together, each = outcomes(ALMOST, *[OPEN] * 7)
    assert (together, each[0]) == ("inconclusive", "inconclusive")
    first = corrected([verdict(ALMOST), *[verdict(OPEN)] * 7])[0]
    assert first.level == pytest.approx(1 - 0.05 / 8)
    assert first.alone is Outcome.HOLDS
    assert "holds at 95 %, but not at the 99.38 % that all verdicts together need" in first.measured
    assert first.estimate == verdict(ALMOST).estimate  # the numbers stay those of the study


def test_a_task_whose_control_is_not_passed_still_counts_as_one_that_was_looked_at() -> None:
    """Else one task that gets through would be half of those that were judged."""
    control = Estimate(0.1, -1.0, 1.2, 400)

    def controlled(one: Interval, by: Estimate) -> Verdict:
        found = Estimate(sum(one) / 2, *one, 400).with_controls({"noise": by})
        seen = verdict(one)
        return replace(seen, outcome=seen.claim.rule.judge(found), estimate=found)

    through = controlled((0.9, 1.1), replace(control, low=0.099, high=0.101))
    missed = [controlled((0.9, 1.1), control)] * 7
    assert overall(corrected([through, *missed])) == "inconclusive"
    assert overall(corrected([through] * 8)) == "holds"
    assert overall(corrected(missed)) == "not judged"


def test_tasks_that_are_all_decided_need_no_correction() -> None:
    assert outcomes(SURE, ALMOST) == ("holds", ["holds", "holds"])
    assert outcomes(*[ALMOST] * 8) == ("holds", ["holds"] * 8)
    assert outcomes(OPEN, ALMOST)[1] == ["inconclusive", "inconclusive"]
    # One is open, so the others must stand at half of the error.
    assert outcomes(OPEN, SURE, SURE)[1] == ["inconclusive", "holds", "holds"]
    assert outcomes(OPEN, SURE, ALMOST)[1] == ["inconclusive", "holds", "inconclusive"]


def test_more_than_half_of_the_judged_tasks_make_the_outcome() -> None:
    assert outcomes(SURE, OPEN) == ("inconclusive", ["holds", "inconclusive"])
    assert outcomes(SURE, SURE, OPEN)[0] == "holds"
    assert outcomes(SURE, SURE, OPEN, OPEN)[0] == "inconclusive"
    assert outcomes(SURE, None, None)[0] == "holds"
    assert outcomes(AGAINST, AGAINST, OPEN)[0] == "fails"


def test_what_fails_is_surely_too_small_as_well() -> None:
    """Four tasks on which a claim fails and four on which it is negligible leave nothing open."""
    small, against = (-0.004, 0.004), (-0.02, -0.005)
    assert outcomes(small, small, against, against, margin=0.005)[0] == "negligible"
    assert outcomes(small, against, against, margin=0.005)[0] == "fails"
    assert outcomes(small, against, OPEN, margin=0.005)[0] == "negligible"
    assert outcomes(small, OPEN, OPEN, margin=0.005)[0] == "inconclusive"


def test_a_level_is_told_only_where_it_is_another_one() -> None:
    """That it fails needs 97.5 % where the other task is open; that it is too small does not."""
    found = corrected([verdict(x, margin=0.005) for x in ((-0.02, -0.001), (-0.004, 0.004))])
    assert [v.outcome.value for v in found] == ["negligible", "negligible"]
    assert found[0].alone is Outcome.FAILS
    assert "but not at" not in found[0].measured


def test_what_holds_is_there_as_well() -> None:
    """Tasks whose size is open do not differ from those on which the claim holds."""
    large, there = (0.5, 0.6), (0.002, 0.02)
    assert outcomes(large, there, there, margin=0.01)[0] == "size open"  # all at 95 %
    assert outcomes(*[there] * 8, margin=0.01)[0] == "size open"
    assert outcomes(large, large, there, margin=0.01)[0] == "holds"
    assert outcomes(large, there, margin=0.01)[0] == "size open"
    assert outcomes(there, OPEN, OPEN, margin=0.01)[0] == "inconclusive"
    against = (-0.9, -0.8)
    assert outcomes(there, against, margin=0.01)[0] == "mixed"
    assert outcomes((-0.004, 0.004), against, margin=0.01)[0] == "negligible"


def test_the_chance_of_a_false_size_on_any_task_is_kept() -> None:
    """Eight effects, each just at the margin: none is surely too small."""
    rng, false, alone = np.random.default_rng(0), 0, 0
    rule = Rule("gain", Relation.ABOVE, 0.0, margin=1.0)
    claim = replace(verdict(OPEN).claim, rule=rule)
    for _ in range(400):
        found = [mean_interval(rng.normal(1.0, size=40)) for _ in range(8)]
        each = [Verdict(claim, rule.judge(e), e, e.n) for e in found]
        alone += any(v.outcome is Outcome.NEGLIGIBLE for v in each)
        false += any(v.outcome is Outcome.NEGLIGIBLE for v in corrected(each))
    assert alone / 400 > 0.12
    assert false / 400 < 0.05


def test_a_test_decides_at_every_level() -> None:
    """A bound that a test put next to 0 has no width that could be stretched: p decides."""
    found = []
    for p in (0.004, 0.01):
        seen = Estimate(0.02, 1e-12, 0.05, 400, tested=(0.0, p))
        rule = verdict(OPEN).claim.rule
        each = [Verdict(verdict(OPEN).claim, rule.judge(seen), seen, 400), *[verdict(OPEN)] * 7]
        found.append(corrected(each)[0].outcome)
    assert found == [Outcome.HOLDS, Outcome.INCONCLUSIVE]  # 0.05 / 8 lies between
    strict = Estimate(0.02, 1e-12, 0.05, 400, tested=(0.0, 0.004)).at_level(0.99)
    assert (strict.low > 0, strict.high > 0.05) == (True, True)
    # The far bound is not what the test was about.
    seen = Estimate(-0.02, -0.05, 1e-3, 400, tested=(0.0, 0.3)).at_level(0.99)
    assert seen.high > 0
    assert Estimate(0.02, math.nan, math.nan, 1, tested=(0.0, 0.01)).at_level(0.9).low != 0


def test_bounds_that_tests_moved_are_right_as_often_at_every_level() -> None:
    """Nulls: the best of 20 heads over four tasks, decided by exact tests of flips."""
    rng, false, found = np.random.default_rng(0), 0, 0
    for times in range(60):
        each = []
        for task in range(4):
            signs = rng.choice([-1.0, 0.0, 1.0], p=[0.02, 0.96, 0.02], size=(20, 300))
            if times % 2:  # an effect that exact tests see at every level, bounds at none
                signs[0] = np.where(np.arange(300) < 13, 1.0, 0.0)
            seen = balances(signs, resamples=400, seed=task)
            columns = loss_columns(seen)
            best = extreme(pd.DataFrame(columns), n=300, level=0.95, loss=True)
            claim = verdict(OPEN).claim
            each.append(Verdict(claim, claim.rule.judge(best), best, 300))
        decided = [v.outcome is Outcome.HOLDS for v in corrected([*each, verdict(OPEN)])]
        false, found = (
            (false, found + all(decided[:4])) if times % 2 else (false + any(decided), found)
        )
    assert false <= 5  # of 30, at 5 %
    assert found >= 25


def test_mixed_is_only_what_surely_differs() -> None:
    assert outcomes(SURE, AGAINST)[0] == "mixed"
    assert outcomes(*[SURE] * 7, AGAINST)[0] == "mixed"
    assert outcomes(SURE, OPEN)[0] != "mixed"
    # One task gains a little more than what matters, one surely less: they may well be equal.
    together, each = outcomes((0.002, 0.02), (-0.004, 0.004), margin=0.005)
    assert (together, each) == ("inconclusive", ["size-open", "negligible"])
    assert outcomes((0.5, 0.6), (-0.004, 0.004), margin=0.01)[0] == "mixed"


def test_a_verdict_without_interval_takes_no_part() -> None:
    nan = float("nan")
    assert outcomes((nan, nan), ALMOST)[1] == ["inconclusive", "holds"]


def test_the_chance_of_a_false_verdict_on_any_task_is_kept() -> None:
    """Nulls: eight tasks of twelve examples each, no effect in any."""
    rng, false = np.random.default_rng(0), 0
    for _ in range(400):
        found = [mean_interval(rng.normal(size=12)) for _ in range(8)]
        rule = verdict(OPEN)
        each = [Verdict(rule.claim, rule.claim.rule.judge(e), e, e.n) for e in found]
        false += any(v.outcome is not Outcome.INCONCLUSIVE for v in corrected(each))
    assert false / 400 < 0.08  # 5 %, and three standard errors


def test_levels_change_as_students_do() -> None:
    values = np.random.default_rng(1).normal(size=5)
    strict, wide = mean_interval(values, 0.99), mean_interval(values, 0.95).at_level(0.99)
    assert (wide.low, wide.high) == pytest.approx((strict.low, strict.high))
    open_ended = Estimate(2.0, 1.0, math.inf, 400).at_level(0.99)
    assert open_ended.low < 1.0
    assert open_ended.high == math.inf
    more = mean_interval(np.tile(values, 2), 0.95)
    expected = mean_interval(values, 0.95).expected_at(10)
    assert expected.high - expected.low == pytest.approx(more.high - more.low, rel=0.07)


def test_an_interval_without_width_settles_nothing_at_a_stricter_level() -> None:
    """Such a bound comes of a test, or of equal values: nobody knows how it would stretch."""
    together, each = outcomes((1.0, 1.0), *[OPEN] * 3)
    assert (together, each[0]) == ("inconclusive", "inconclusive")
    assert outcomes((1.0, 1.0)) == ("holds", ["holds"])
