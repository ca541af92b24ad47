"""Many claims on one page: how many hold by chance, and the error held over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import stdtrit

from bertology.results import together
from bertology.results.over_claims import false_holds, page_text
from bertology.results.rules import Outcome, Relation, Rule
from bertology.results.verdicts import Claim, Published, Source, Verdict
from bertology.stats import Estimate

RULE = Rule("gain", Relation.ABOVE, 0.0, margin=0.1)
CLAIM = Claim("a.b", Source("A", "1"), "So.", Published("3"), "some-study", RULE, "Because.")
N = 50


def verdict(name: object, estimate: Estimate | None, rule: Rule = RULE) -> Verdict:
    n = 0 if estimate is None else estimate.n
    return Verdict(replace(CLAIM, id=f"a.{name}", rule=rule), rule.judge(estimate), estimate, n)


def at_rest(value: float, *, error: float = 1.0, level: float = 0.95) -> Estimate:
    """A mean of fifty, with Student's interval."""
    half = stdtrit(N - 1, (1 + level) / 2) * error
    return Estimate(value, value - half, value + half, N, level)


def test_how_many_would_hold_by_chance() -> None:
    outside = Rule("gain", Relation.OUTSIDE, values=(-1.0, 1.0))
    page = [
        verdict("one", at_rest(0.0)),
        verdict("tasks", at_rest(0.0)),
        verdict("tasks", at_rest(9.0)),  # corrected together: they err as often as one
        verdict("strict", at_rest(0.0, level=0.99)),
        verdict("outside", at_rest(0.0), outside),  # both of its sides may be met by chance
        verdict("none", None),
        verdict("bare", Estimate(1.0, float("nan"), float("nan"), 1)),
    ]
    assert false_holds(page) == pytest.approx(0.025 + 0.025 + 0.005 + 0.05)
    text = page_text(page)
    assert text.startswith("Judged here: 4 claims, with 5 verdicts, 1 of them sure.")
    assert "about 0.11 at most would still be said to hold" in text
    assert "--across-claims" in text
    assert page_text(page[-2:]) == ""
    assert false_holds([]) == 0
    assert page_text(page[:1]).startswith("Judged here: 1 claim, with 1 verdict, 0 of them sure.")


def test_so_many_do_hold_by_chance_where_none_is_true() -> None:
    rng = np.random.default_rng(0)
    page = [verdict(i, at_rest(x)) for i, x in enumerate(rng.standard_t(N - 1, 4000))]
    there = sum(v.outcome in (Outcome.HOLDS, Outcome.SIZE_OPEN) for v in page)
    assert false_holds(page) == pytest.approx(100)
    assert 75 < there < 125


def test_what_is_barely_sure_among_many_claims_is_not_sure() -> None:
    page = [verdict("first", at_rest(2.1)), *(verdict(i, at_rest(0.3)) for i in range(20))]
    assert page[0].outcome is Outcome.SIZE_OPEN
    assert together(page)[0] == page[0]
    strict = together(page, across_claims=True)
    assert [v.claim.id for v in strict] == [v.claim.id for v in page]
    assert strict[0].outcome is Outcome.INCONCLUSIVE
    assert "but not at the" in strict[0].measured
    assert "that all verdicts together need" in strict[0].measured
    assert "held over all claims" in page_text(strict, across_claims=True)


def test_what_is_sure_stays_so_and_lets_others_stay() -> None:
    alone = together([verdict("one", at_rest(2.1))], across_claims=True)
    assert alone[0].outcome is Outcome.SIZE_OPEN  # a page of one claim
    sure = [verdict(i, at_rest(8.0)) for i in range(20)]
    found = together([*sure, verdict("less", at_rest(2.62))], across_claims=True)
    assert {v.outcome for v in found[:-1]} == {Outcome.HOLDS}
    assert found[-1].outcome is Outcome.SIZE_OPEN
    assert together([], across_claims=True) == []
    assert together([verdict("none", None)], across_claims=True)[0].outcome is (
        Outcome.NOT_APPLICABLE
    )


def test_tasks_are_corrected_within_what_their_claim_may_err() -> None:
    pair = [verdict("two", at_rest(4.5)), verdict("two", at_rest(0.2))]
    found = together([*pair, *(verdict(i, at_rest(0.1)) for i in range(9))], across_claims=True)
    levels = [v.level or 0 for v in found]
    assert levels[2] < levels[0] == levels[1]
    assert 1 - levels[0] == pytest.approx((1 - levels[2]) / 2)
    assert found[0].outcome is not Outcome.INCONCLUSIVE


def _false(found: Sequence[Verdict], truth: Sequence[float]) -> float:
    """The share of false verdicts among those that say something."""
    said = [(v.outcome, effect) for v, effect in zip(found, truth, strict=True)]
    said = [(outcome, effect) for outcome, effect in said if outcome is not Outcome.INCONCLUSIVE]
    true = {
        Outcome.HOLDS: lambda x: x >= 0.1,
        Outcome.SIZE_OPEN: lambda x: x > 0,
        Outcome.NEGLIGIBLE: lambda x: x < 0.1,
        Outcome.FAILS: lambda x: x <= 0,
    }
    return sum(not true[outcome](x) for outcome, x in said) / max(1, len(said))


@pytest.mark.parametrize("shared", [0.0, 0.7])
def test_the_error_over_the_page_is_kept(shared: float) -> None:
    """Forty claims, of which thirty are not true, on estimates that may go up and down together."""
    rng = np.random.default_rng(0)
    truth = np.r_[np.zeros(15), np.full(15, 1e-9), np.full(5, 0.1), np.full(5, 4.0)]
    alone, across = [], []
    for _ in range(60):
        noise = rng.normal(size=truth.size) * (1 - shared) ** 0.5 + rng.normal() * shared**0.5
        spread = (rng.chisquare(N - 1) / (N - 1)) ** 0.5
        page = [verdict(i, at_rest(x, error=spread)) for i, x in enumerate(truth + noise)]
        alone.append(_false(page, truth))
        across.append(_false(together(page, across_claims=True), truth))
    assert np.mean(across) < 0.05
    assert np.mean(alone) > 2 * np.mean(across)
