"""Verdicts in one wording, wherever they are shown."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from bertology.report.atlas.chapters import table_piece
from bertology.report.intervals import with_intervals
from bertology.results.evidence import evidence_array, read_evidence
from bertology.results.number_text import interval_text
from bertology.results.rules import (
    LOOKS,
    MIXED,
    NOT_RUN,
    OUTCOMES,
    TERMINAL_STYLES,
    Outcome,
    Relation,
    Rule,
    look_of,
    named_look,
)
from bertology.results.verdicts import (
    Claim,
    Published,
    Source,
    Verdict,
    estimate_text,
    found_text,
    reason_text,
    settling_text,
)
from bertology.stats import Estimate, least_of, mean_interval
from bertology.stats.named_shares import Mistakes, NamedShares
from bertology.studies.designs.noise import beyond_noise

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
    assert sure.measured == "best head gain = 0.5123, 90 % interval [0.1, 0.9], n = 12 examples"
    assert estimate_text(sure.estimate) == "0.512 [0.1, 0.9] at 90 %, n = 12 examples"
    bare = verdict(Estimate(0.5, math.nan, math.nan, 1))
    assert bare.measured == "best head gain = 0.5 (no interval), n = 1 example"
    assert estimate_text(bare.estimate) == "0.5, n = 1 example"
    assert estimate_text(None) == "–"


def test_why_a_claim_was_not_judged() -> None:
    assert reason_text(verdict(None)) == "best head gain was not measured"
    assert verdict(None, "not judged: too few texts").measured == "too few texts"


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


def test_what_would_settle_the_size_is_told_too() -> None:
    rule = Rule("gain", Relation.ABOVE, 0.0, margin=0.005)
    claim = replace(CLAIM, rule=rule)

    def of(estimate: Estimate) -> Verdict:
        return Verdict(claim, rule.judge(estimate), estimate, estimate.n)

    # 0.01 ± 0.02: half of it tells that something is there, a quarter how large it is.
    seen = of(Estimate(0.01, -0.01, 0.03, 400, unit="sentences"))
    assert seen.outcome is Outcome.INCONCLUSIVE
    assert settling_text(seen).endswith(
        "about 1,600 sentences would settle it, and about 6,400 its size too"
    )
    there = of(Estimate(0.01, 0.001, 0.019, 400, unit="sentences", needed=8000))
    assert there.outcome is Outcome.SIZE_OPEN
    assert settling_text(there) == (
        "differences under 0.009 cannot be seen here; about 1,300 sentences would settle the size"
    )
    at_the_margin = of(Estimate(0.005, 0.001, 0.009, 400))
    assert settling_text(at_the_margin).endswith("the limit is too near for any affordable number "
                                                 "of examples")  # fmt: skip
    too_small = of(Estimate(0.001, -0.01, 0.012, 400))
    assert too_small.settling is not None
    assert too_small.settling.size is None  # so many tell at once that it is negligible


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


def settled(verdict: Verdict) -> str:
    assert verdict.outcome is Outcome.INCONCLUSIVE
    return settling_text(verdict)


def test_counts_follow_no_law() -> None:
    """Two heads surely, five perhaps: no root of n says how many examples would tell."""
    count = Estimate(3.0, 0.0, 5.0, 400, counted=True, remedy="more examples would narrow it")
    assert settled(verdict(count)) == "more examples would narrow it"
    share = replace(count, value=0.7, low=0.4, high=0.9, remedy="", needed=870)
    rule = Rule("share", Relation.ABOVE, 0.5)
    seen = Verdict(replace(CLAIM, rule=rule), rule.judge(share), share, 400)
    assert settled(seen) == "about 870 examples would settle it"
    # A stricter level needs more, as Chernoff's bound tells.
    strict = replace(seen, level=1 - 0.05 / 8)
    assert strict.settling is not None
    assert strict.settling.needed == 1400
    assert settled(strict).endswith("1,400 examples would settle it at 99.38 %")
    never = replace(share, needed=None)
    assert settled(replace(seen, estimate=never)) == (
        "no affordable number of examples would settle it"
    )


def test_levels_are_those_that_were_used() -> None:
    """Twelve claims together are judged at 99.58 %, so that is the level for more seeds too."""
    values = np.array([0.004, 0.012, 0.008])
    strict = mean_interval(values, 1 - 0.05 / 12).counting("seeds")
    seen = verdict(strict)
    assert "99.58 % interval" in seen.measured
    assert estimate_text(strict).endswith("] at 99.58 %, n = 3 seeds")
    assert seen.settling is not None
    needed = seen.settling.needed or 0
    assert settled(seen).endswith(f"about {needed} seeds would settle it at 99.58 %")
    # Labelled 95 % it would be a different number: quantiles fall faster at stricter levels.
    wrong = verdict(replace(strict, level=0.95)).settling
    assert wrong is not None
    assert (wrong.needed or 0) > needed
    again = np.random.default_rng(0).normal(0.008, values.std(ddof=1), (4000, needed))
    decided = [mean_interval(x, 1 - 0.05 / 12).low > 0 for x in again]
    assert 0.3 < np.mean(decided) < 0.8  # about every second time, as is said


def control_of_noise(change: Estimate, trained: float, noisy: np.ndarray) -> Estimate:
    """What is left of a change beyond noise."""
    return dict(beyond_noise(change, trained, noisy).controls)["weight noise of the same size"]


def test_more_copies_of_noise_do_not_take_its_spread_away() -> None:
    rng, change = np.random.default_rng(0), Estimate(0.5, 0.49, 0.51, 400)
    noisy = np.array([-1.0, -0.5, 0.0, 0.5, 1.0]) * 0.05
    close, far = (control_of_noise(change, trained, noisy) for trained in (0.07, 0.1))
    # 1.96 times the spread is 0.077: no number of copies takes 0.07 beyond it, but a few do 0.1.
    assert settled(verdict(close)).endswith(
        "neither more examples nor more copies would settle it, but another training may"
    )
    seen = verdict(far).settling
    assert seen is not None
    assert 6 <= (seen.needed or 0) <= 15
    spread = noisy.std(ddof=1)
    for n in (10, 40):  # what the law says, and what such copies give
        draws = rng.normal(size=n)
        draws = (draws - draws.mean()) / draws.std(ddof=1)
        found = control_of_noise(change, 0.1, spread * draws)
        assert far.expected_at(n).low == pytest.approx(found.low, abs=0.002)
    assert close.expected_at(10**6).low < 0
    # Examples alone do not help either, where it is noise that leaves it open.
    wide = control_of_noise(Estimate(0.1, -0.3, 0.5, 400), 0.1, noisy)
    assert wide.unit == "noisy copies"
    assert "another training" in settled(verdict(wide))
    # Where the change is there, the reason tells what would settle its control.
    told = reason_text(verdict(beyond_noise(change, 0.07, noisy)))
    assert told.startswith("not surely beyond weight noise of the same size (")
    assert "but another training may" in told


def test_a_control_leaves_a_claim_unjudged_and_makes_none_fail() -> None:
    there, passed = Estimate(0.5, 0.4, 0.6, 50), Estimate(0.2, 0.1, 0.3, 50)
    missed = Estimate(-0.2, -0.3, -0.1, 50)
    fine = there.with_controls({"a guess": passed, "shuffled weights": passed})
    assert verdict(fine).outcome is Outcome.HOLDS
    assert verdict(fine).missed == ""
    for control in (missed, replace(missed, high=0.4), None):
        found = verdict(there.with_controls({"a guess": passed, "shuffled weights": control}))
        assert found.outcome is Outcome.NOT_APPLICABLE
        assert reason_text(found).startswith("not surely beyond shuffled weights (")
        assert "a guess" not in found.measured
        assert "not surely beyond shuffled weights" in found.measured
    violated = replace(missed, controls=fine.controls)
    for controls in ({}, {"shuffled weights": missed}, {"shuffled weights": passed}):
        assert verdict(violated.with_controls(controls)).outcome is Outcome.FAILS
    still_open = Estimate(0.1, -0.1, 0.3, 50).with_controls({"shuffled weights": missed})
    assert verdict(still_open).outcome is Outcome.INCONCLUSIVE


def test_controls_are_judged_at_the_level_of_the_claim_and_stay_in_the_store() -> None:
    control = Estimate(0.2, 0.05, 0.35, 50)
    strict = replace(control, level=0.999)
    one = Estimate(0.5, 0.4, 0.6, 50).with_controls({"a guess": control, "noise": strict})
    assert one.surely_there
    assert list(one.at_level(0.999).missed) == ["a guess"]
    assert dict(one.at_level(0.8).controls)["noise"] == strict  # never less strict than it was
    (again,) = read_evidence(evidence_array({"one": one})).values()
    assert again == one
    least = replace(one, controls=one.controls[:1]).beyond_all()
    assert (least.value, least.low) == pytest.approx((0.2, 0.05))
    assert least.high > 0.35  # both must hold together
    assert least_of([one, replace(one, value=0.6)]).missed == {}


def test_labelled_maps_of_the_same_models_settle_nothing() -> None:
    rng = np.random.default_rng(0)
    seen = rng.integers(2, size=60)
    named = np.where(rng.random(60) < 0.8, seen, 1 - seen)
    mistakes = Mistakes(seen, named, np.arange(60) % 3, np.arange(60), 2, unit="labelled maps")
    share = NamedShares(np.tile([0.5, 0.5], (400, 1)), mistakes).of(0)
    rule = Rule("share", Relation.ABOVE, 0.4)
    found = Verdict(replace(CLAIM, rule=rule), rule.judge(share), share, share.n)
    assert settled(found).endswith("; labelled maps of more models would narrow it")


@pytest.mark.parametrize(
    ("low", "high", "limits", "spec", "text"),
    [
        (1e-12, 0.02, (0.0,), ".3g", "[>0, 0.02]"),
        (-0.02, -1e-12, (0.0,), ".3g", "[-0.02, <0]"),
        (-1e-17, 0.02, (0.0,), ".3g", "[0, 0.02]"),  # rounding
        (0.0, 0.02, (0.0,), ".3g", "[0, 0.02]"),
        (0.0004, 0.02, (0.0,), ".1f", "[0.0004, 0.02]"),
        (0.04, 2.3, (0.0,), "+.1f", "[+0.04, +2.3]"),
        (-0.04, 2.3, (0.0,), "+.1f", "[-0.04, +2.3]"),
        (0.3, 2.0, (0.0,), "+.0f", "[+0.3, +2]"),
        (1e-12, 2.0, (0.0,), "+.0f", "[>0, +2]"),
        (0.010003, 0.02, (0.01,), ".3g", "[0.010003, 0.02]"),
        (0.01000000003, 0.02, (0.01,), ".3g", "[>0.01, 0.02]"),
        (50.03, 51.0, (50.0,), ".1f", "[50.03, 51.0]"),
        (math.nan, math.inf, (0.0,), ".3g", "[–, inf]"),
    ],
)
def test_one_sees_on_which_side_of_a_limit_an_interval_lies(
    low: float, high: float, limits: tuple[float, ...], spec: str, text: str
) -> None:
    assert interval_text(low, high, spec, limits=limits) == text


def test_what_holds_is_not_shown_with_zero_inside() -> None:
    """The same in full (terminal, atlas), in tables (Markdown, HTML) and in tables of heads."""
    seen = verdict(Estimate(0.01, 1e-12, 0.03, 400, tested=(0.0, 0.01)))
    assert seen.outcome is Outcome.HOLDS
    assert "[>0, 0.03]" in seen.measured
    assert "[>0, 0.03]" in found_text(seen)
    table = pd.DataFrame(
        {"difference": [0.01], "difference_low": [1e-12], "difference_high": [0.03]}
    )
    assert with_intervals(table)[1] == [["0.01 [>0, 0.03]"]]
    assert "[&gt;0, 0.03]" in str(table_piece(table, name="heads", key="k"))


def test_a_few_seeds_gain_more_from_each_further_one() -> None:
    """Student's quantile falls from 4.3 to 2.3 between three runs and eight."""
    seen = verdict(Estimate(0.01, -0.01, 0.03, 3, unit="seeds"))
    assert seen.settling is not None
    assert seen.settling.needed in range(5, 9)
