"""Worlds in which it is known what claims must not be said to do; `claim_nulls.py` runs them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from bertology.results.known_claims import judge, load_claims
from bertology.results.result import Result
from bertology.results.rules import Relation, Rule
from bertology.stats import Estimate

# The tests make such worlds too: planted models, sentences, and runs that are made up.
_TESTS = Path(__file__).resolve().parents[2] / "tests"
sys.path += [str(_TESTS), *map(str, sorted((_TESTS / "studies").iterdir()))]

Outcomes = Mapping[str, str]
"""What became of each claim, by the id without its paper."""

HOLDS = frozenset({"holds", "size-open"})  # what is claimed is said to be there
FAILS = frozenset({"fails"})
ANY = HOLDS | FAILS | {"negligible"}
BORDER = HOLDS | FAILS  # of a border that was put where the truth is


@dataclass(frozen=True)
class Null:
    """One world: what is drawn from a seed, and which verdicts would be false there."""

    name: str
    draw: Callable[[int], Outcomes]
    false: Mapping[str, Collection[str]]


def judged(
    study: str, result: Result, *, evidence: Mapping[str, Estimate] | None = None
) -> dict[str, str]:
    """The verdicts of a result (or on `evidence` in its place), whatever tasks claims are about."""
    found = judge(
        study, result.evidence() if evidence is None else evidence, reasons=result.reasons()
    )
    return {v.claim.id.partition(".")[2]: str(v.outcome) for v in found}


def at_the_truth(
    study: str, evidence: Mapping[str, Estimate], truth: Mapping[str, float]
) -> dict[str, str]:
    """The same with every border moved to the true value: holds and fails are both false there.

    So their share is that of intervals that miss the truth, which is where errors are most likely.
    """
    found = {}
    for claim in load_claims():
        quantity = claim.rule.quantity
        if claim.study == study and quantity in truth:
            moved = replace(claim, rule=Rule(quantity, Relation.ABOVE, truth[quantity]), tasks=None)
            (verdict,) = judge(study, evidence, [moved])
            found[claim.id.partition(".")[2]] = str(verdict.outcome)
    return found
