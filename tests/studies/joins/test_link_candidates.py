"""Candidates for links and the form of their maps: made tables, whose answer is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bertology.errors import DataError, ParameterError
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.results.rules import Outcome
from bertology.studies.joins.link_candidates import LinkCandidates
from result_conformance import ResultConformance

LAYERS = HEADS = 4
WHERE = np.indices((LAYERS, HEADS)).reshape(2, -1)
FEW = np.arange(LAYERS * HEADS) < 3  # heads 0.0, 0.1 and 0.2


def made(study: str, tables: dict[str, pd.DataFrame], n: int = 100) -> Result:
    model, corpus = {"name": "m", "fingerprint": "m"}, {"name": "c", "fingerprint": "c"}
    facts = {"examples": n, "level": 0.95}
    return Result(Provenance(study, 1, {}, model, corpus), tables, xr.Dataset(attrs=facts))


def links(found: Any = FEW, relation: str = "verb-subject") -> Result:
    share = np.where(found, 0.55, 0.05)
    columns = {"share": share, "share_low": share - 0.05, "excess": share - 0.5}
    where = {"relation": relation, "direction": "forward", "layer": WHERE[0], "head": WHERE[1]}
    return made("syntax-heads", {"links": pd.DataFrame({**where, **columns})})


def types(diagonal: Any = FEW, share: float = 0.9, n: int = 100) -> Result:
    often = np.where(diagonal, share, 0.05)
    columns = {"vertical": 1 - often, "diagonal": often / 2, "vertical+diagonal": often / 2}
    heads = pd.DataFrame({"layer": WHERE[0], "head": WHERE[1], **columns})
    return made("map-types", {"heads": heads}, n)


def joined(*results: Result) -> Result:
    return LinkCandidates().join(results)


def outcome(result: Result) -> Outcome:
    (found,) = [v for v in result.verdicts() if v.claim.rule.quantity.startswith("verb_subject")]
    return found.outcome


class TestResult(ResultConformance):
    @staticmethod
    def make() -> Result:
        return joined(links(), types())


def test_candidates_that_are_diagonal_bear_the_claim_out() -> None:
    result = joined(links(), types())
    found = result.evidence()
    assert found["verb_subject_candidates_diagonal"].low == 1
    assert found["verb_subject_candidates_diagonal"].unit == "examples"
    assert found["verb_subject_diagonal_others"].high == 0
    assert outcome(result) is Outcome.HOLDS
    assert "3 of 3 candidates for verb-subject links are diagonal" in result.answer


def test_candidates_that_look_otherwise_make_it_fail() -> None:
    """The excess over an offset says nothing of this: these heads are no better than an offset."""
    assert outcome(joined(links(), types(~FEW))) is Outcome.FAILS
    assert outcome(joined(links(), types(share=0.52))) is Outcome.INCONCLUSIVE


def test_most_of_a_few_candidates_may_be_diagonal_by_chance() -> None:
    """With types of heads shuffled the claim held in one case of three where one was candidate."""
    size, held = LAYERS * HEADS, 0
    rng = np.random.default_rng(0)
    for draw in range(100):
        diagonal = np.isin(np.arange(size), rng.choice(size, 6, replace=False))
        found = np.isin(np.arange(size), rng.choice(size, 1 + draw % 8, replace=False))
        held += outcome(joined(links(found), types(diagonal))) is Outcome.HOLDS
    assert held <= 5
    one = np.arange(size) == 0
    result = joined(links(one), types(np.arange(size) < 6))
    (verdict,) = [v for v in result.verdicts() if v.estimate]
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert verdict.estimate is not None
    assert verdict.estimate.value == 1
    assert verdict.estimate.at_level(0.99).low <= 0.5
    assert "chance" in verdict.measured
    assert "examples would settle it" not in verdict.measured


@pytest.mark.parametrize("share", [0.4, 0.57, 0.6])
def test_texts_and_not_heads_settle_it(share: float) -> None:
    """Whether heads are diagonal is told by their maps, so by texts: with so many it is decided."""
    few, n = links(), 60
    (seen,) = [v for v in joined(few, types(share=share, n=n)).verdicts() if v.estimate]
    assert seen.outcome is Outcome.INCONCLUSIVE
    assert seen.settling is not None
    assert seen.settling.visible is None  # half of a count's range is no difference
    needed = seen.settling.needed or 0
    assert f"about {needed:,} examples would settle it" in seen.measured
    assert outcome(joined(few, types(share=share, n=needed))) is not Outcome.INCONCLUSIVE
    fewer = joined(few, types(share=share, n=int(0.85 * needed)))
    assert outcome(fewer) is Outcome.INCONCLUSIVE
    # The p-value says the same as the bounds do, at the level at which both are known.
    assert seen.estimate is not None
    assert seen.estimate.tested is not None
    assert seen.estimate.tested[1] > 0.05
    most = joined(few, types(share=share, n=needed)).evidence()["verb_subject_candidates_diagonal"]
    assert most.tested is not None
    assert most.tested[1] < 0.05


def test_without_candidates_nothing_is_judged() -> None:
    none = joined(links(np.zeros_like(FEW)), types())
    assert outcome(none) is Outcome.NOT_APPLICABLE
    assert "comes near" in none.reasons()[""]
    assert none.answer.startswith("No head is surely a candidate")


def test_what_does_not_belong_together_is_refused() -> None:
    with pytest.raises(ParameterError, match="one result of syntax-heads"):
        joined(links())
    small = types()
    small.tables["heads"] = small.tables["heads"].iloc[:8]
    with pytest.raises(DataError, match="different heads"):
        joined(links(), small)
