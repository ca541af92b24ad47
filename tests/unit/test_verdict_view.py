"""Verdicts in one wording, wherever they are shown."""

from __future__ import annotations

import math

from bertology.results.claims import Claim, Outcome, Published, Relation, Rule, Source, Verdict
from bertology.results.verdict_view import (
    LOOKS,
    MIXED,
    NOT_RUN,
    OUTCOMES,
    TERMINAL_STYLES,
    estimate_text,
    look_of,
    measured,
    named_look,
    reason_text,
    settling_text,
)
from bertology.stats import Estimate

CLAIM = Claim(
    "paper.claim", Source("A 2020", "4"), "It is so.", Published("3"), "some-study",
    Rule("best_head_gain", Relation.ABOVE, 0.0), "Because.",
)  # fmt: skip


def verdict(estimate: Estimate | None, reason: str | None = None) -> Verdict:
    n = 0 if estimate is None else estimate.n
    return Verdict(CLAIM, CLAIM.rule.judge(estimate), estimate, n, reason)


def test_every_outcome_has_its_look() -> None:
    assert {o.value for o in Outcome} | {MIXED, NOT_RUN} == set(LOOKS)
    assert {named_look(words).words for words in OUTCOMES} == set(OUTCOMES)
    assert look_of(None).words == NOT_RUN
    assert Outcome.NOT_APPLICABLE.in_words == "not judged"
    assert len({look.sign for look in LOOKS.values()}) == len(LOOKS)  # colour alone says too little
    assert TERMINAL_STYLES["holds"] == "green"


def test_what_a_verdict_rests_on() -> None:
    sure = verdict(Estimate(0.51234567, 0.1, 0.9, 12, level=0.9))
    assert measured(sure) == "best head gain = 0.5123, 90 % interval [0.1, 0.9], n = 12 examples"
    assert sure.measured == measured(sure)
    assert estimate_text(sure.estimate) == "0.512 [0.1, 0.9], n = 12 examples"
    bare = verdict(Estimate(0.5, math.nan, math.nan, 1))
    assert measured(bare) == "best head gain = 0.5 (no interval), n = 1 example"
    assert estimate_text(bare.estimate) == "0.5, n = 1 example"
    assert estimate_text(None) == "–"


def test_why_a_claim_was_not_judged() -> None:
    assert reason_text(verdict(None)) == "best head gain was not measured"
    assert measured(verdict(None, "not judged: too few texts")) == "too few texts"


def test_n_is_told_with_what_it_counts() -> None:
    seen = verdict(Estimate(0.5, 0.1, 0.9, 1412, unit="sentences"))
    assert seen.measured.endswith("n = 1,412 sentences")
    assert estimate_text(Estimate(0.5, 0.1, 0.9, 1, unit="seeds")).endswith("n = 1 seed")


def test_an_open_verdict_says_what_would_settle_it() -> None:
    # 0.01 ± 0.02: half the width needs four times as many.
    seen = verdict(Estimate(0.01, -0.01, 0.03, 400, unit="sentences"))
    assert seen.settling is not None
    assert 1590 <= (seen.settling.needed or 0) <= 1600
    assert settling_text(seen) == (
        "differences under 0.02 cannot be seen here; about 1,600 sentences would settle it"
    )
    assert seen.measured.endswith("would settle it")
    assert settling_text(verdict(Estimate(0.05, 0.01, 0.09, 400))) == ""  # it holds


def test_what_no_number_would_settle() -> None:
    at_the_limit = verdict(Estimate(1e-9, -0.02, 0.02, 400))
    assert settling_text(at_the_limit) == (
        "differences under 0.02 cannot be seen here, and the limit is too near for any affordable "
        "number of examples"
    )
    of_heads = verdict(Estimate(0.01, -0.01, 0.03, 144, unit="heads"))
    assert settling_text(of_heads).endswith("and the model has no more heads")
    for low, high in ((math.nan, math.nan), (-1.0, math.inf)):
        assert settling_text(verdict(Estimate(0.1, low, high, 10))) == ""


def test_a_study_may_know_better_what_is_needed() -> None:
    seen = verdict(Estimate(0.01, -0.01, 0.03, 400, unit="heads", needed=8731))
    assert settling_text(seen).endswith("about 8,800 heads would settle it")


def test_a_few_seeds_gain_more_from_each_further_one() -> None:
    """Student's quantile falls from 4.3 to 2.3 between three runs and eight."""
    seen = verdict(Estimate(0.01, -0.01, 0.03, 3, unit="seeds"))
    assert seen.settling is not None
    assert seen.settling.needed in range(5, 9)
