"""Verdicts in one wording, wherever they are shown."""

from __future__ import annotations

import math

from bertology.results.claims import Claim, Outcome, Published, Relation, Rule, Source, Verdict
from bertology.results.verdict_view import (
    LOOKS,
    NOT_RUN,
    TERMINAL_STYLES,
    estimate_text,
    look_of,
    measured,
    reason_text,
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
    assert {o.value for o in Outcome} | {NOT_RUN} == set(LOOKS)
    assert look_of(None).words == NOT_RUN
    assert Outcome.NOT_APPLICABLE.in_words == "not judged"
    assert len({look.sign for look in LOOKS.values()}) == len(LOOKS)  # colour alone says too little
    assert TERMINAL_STYLES["holds"] == "green"


def test_what_a_verdict_rests_on() -> None:
    sure = verdict(Estimate(0.51234567, 0.1, 0.9, 12, level=0.9))
    assert measured(sure) == "best head gain = 0.5123, 90 % interval [0.1, 0.9], n = 12"
    assert sure.measured == measured(sure)
    assert estimate_text(sure.estimate) == "0.512 [0.1, 0.9], n = 12"
    bare = verdict(Estimate(0.5, math.nan, math.nan, 1))
    assert measured(bare) == "best head gain = 0.5 (no interval), n = 1"
    assert estimate_text(bare.estimate) == "0.5, n = 1"
    assert estimate_text(None) == "–"


def test_why_a_claim_was_not_judged() -> None:
    assert reason_text(verdict(None)) == "best head gain was not measured"
    assert measured(verdict(None, "not judged: too few texts")) == "too few texts"
