"""Claims judged on the results of a plan: each on every corpus, or why it could not be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bertology.reproduce.execute import PlanResults
from bertology.reproduce.paper import ResultsByData
from bertology.reproduce.plan import StepPlan
from bertology.results.claims import Claim, Outcome, Verdict
from bertology.results.verdict_view import MIXED, NOT_RUN
from bertology.studies import JOINS

__all__ = ["JudgedClaim", "count_outcomes", "judge_claims", "results_by_data", "why_not_run"]


@dataclass(frozen=True)
class JudgedClaim:
    """A claim with its verdict on each corpus; `reason` says why it has none."""

    claim: Claim
    verdicts: tuple[tuple[str, Verdict], ...]  # title of the data, verdict
    reason: str = ""

    @property
    def decided(self) -> tuple[tuple[str, Verdict], ...]:
        """The verdicts on data that could be judged."""
        return tuple(
            (title, v) for title, v in self.verdicts if v.outcome is not Outcome.NOT_APPLICABLE
        )

    @property
    def in_short(self) -> str:
        """One outcome where all corpora agree; else how many of each."""
        counts = Counter(v.outcome.value for _, v in self.decided)
        if not counts:
            return Outcome.NOT_APPLICABLE.in_words if self.verdicts else NOT_RUN
        if len(counts) == 1:
            return next(iter(counts))
        return ", ".join(
            f"{name} {counts[o.value]}" for o in Outcome if (name := o.value) in counts
        )


def results_by_data(study: str, plan: StepPlan, done: PlanResults) -> ResultsByData:
    """Results of a study by the title of their data."""
    titles = {step.key: step.data.title for step in plan.steps_of(study)}
    return {title: done.results[key] for key, title in titles.items() if key in done.results}


def judge_claims(
    claims: Sequence[Claim], plan: StepPlan, done: PlanResults
) -> tuple[JudgedClaim, ...]:
    """Each claim, on every corpus that its study was run over."""
    verdicts: dict[str, list[tuple[str, Verdict]]] = {}
    for study in dict.fromkeys(claim.study for claim in claims):
        for title, result in results_by_data(study, plan, done).items():
            for verdict in result.verdicts():
                verdicts.setdefault(verdict.claim.id, []).append((title, verdict))
    return tuple(
        JudgedClaim(c, tuple(verdicts.get(c.id, ())), why_not_run(c.study, plan, done))
        for c in claims
    )


def why_not_run(study: str, plan: StepPlan, done: PlanResults) -> str:
    """Why a study has no result, as far as is known."""
    reasons = [done.reasons[s.key] for s in plan.steps_of(study) if s.key in done.reasons]
    if reasons:
        return "; ".join(dict.fromkeys(reasons))
    return JOINS.get(study).lacking if study in JOINS else "not part of the plan"


def count_outcomes(judged: Iterable[JudgedClaim]) -> dict[str, int]:
    """How many claims have which outcome; those that differ by corpus are mixed."""
    names = [*(o.value for o in Outcome), MIXED, Outcome.NOT_APPLICABLE.in_words, NOT_RUN]
    counts = Counter(s if (s := j.in_short) in names else MIXED for j in judged)
    return {name: counts[name] for name in names if counts[name]}
