"""Claims judged on the results of plans: on every corpus and over all, or why they are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from bertology.reproduce.execute import PlanResults
from bertology.reproduce.paper import ResultsByData
from bertology.reproduce.plan import StepPlan
from bertology.results.over_claims import together
from bertology.results.over_tasks import overall
from bertology.results.rules import OUTCOMES, Outcome
from bertology.results.verdicts import Claim, Verdict
from bertology.studies import JOINS, STUDIES

NO_STUDY = "its study {!r} is not installed here"


@dataclass(frozen=True)
class JudgedClaim:
    """A claim with its verdict on each corpus; `reason` says why it has none.

    Verdicts on several corpora are corrected for their number (`results/over_tasks.py`), and if
    asked for, for the number of claims (`results/over_claims.py`).
    """

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
    def overall(self) -> str:
        """The one outcome over all corpora; mixed only where they surely differ."""
        return overall([verdict for _, verdict in self.verdicts])


def results_by_data(study: str, plan: StepPlan, done: PlanResults) -> ResultsByData:
    """Results of a study by the title of their data."""
    titles = {step.key: step.data.title for step in plan.steps_of(study)}
    return {title: done.results[key] for key, title in titles.items() if key in done.results}


def judge_claims(
    parts: Iterable[tuple[Sequence[Claim], StepPlan, PlanResults]], *, across_claims: bool = False
) -> tuple[JudgedClaim, ...]:
    """Each claim of each part, on every corpus that its study was run over in that part."""
    found: list[JudgedClaim] = []
    for claims, plan, done in parts:
        verdicts: dict[str, list[tuple[str, Verdict]]] = {}
        for study in dict.fromkeys(claim.study for claim in claims):
            for title, result in results_by_data(study, plan, done).items():
                for verdict in result.verdicts():
                    verdicts.setdefault(verdict.claim.id, []).append((title, verdict))
        found += (
            JudgedClaim(c, tuple(verdicts.get(c.id, ())), why_not_run(c.study, plan, done))
            for c in claims
        )
    corrected = iter(together(all_verdicts(found), across_claims=across_claims))
    return tuple(
        replace(j, verdicts=tuple((title, next(corrected)) for title, _ in j.verdicts))
        for j in found
    )


def all_verdicts(judged: Iterable[JudgedClaim]) -> list[Verdict]:
    """The verdicts on each claim and corpus."""
    return [verdict for j in judged for _, verdict in j.verdicts]


def why_not_run(study: str, plan: StepPlan, done: PlanResults) -> str:
    """Why a study has no result, as far as is known."""
    reasons = [done.reasons[s.key] for s in plan.steps_of(study) if s.key in done.reasons]
    if reasons:
        return "; ".join(dict.fromkeys(reasons))
    if study not in STUDIES and study not in JOINS:
        return NO_STUDY.format(study)
    planned = plan.left_out.get(study, "not part of the plan")
    return JOINS.get(study).lacking if study in JOINS else planned


def count_outcomes(judged: Iterable[JudgedClaim]) -> dict[str, int]:
    """How many claims have which outcome over all corpora."""
    counts = Counter(j.overall for j in judged)
    return {name: counts[name] for name in OUTCOMES if counts[name]}


def counts_text(judged: Iterable[JudgedClaim]) -> str:
    """`12 holds, 3 fails; ours: 1 holds`: what the paper does not say is counted apart."""
    every = list(judged)
    sides = {
        ours: count_outcomes(j for j in every if j.claim.ours is ours) for ours in (False, True)
    }
    texts = {side: ", ".join(f"{n} {name}" for name, n in c.items()) for side, c in sides.items()}
    return (
        "; ours: ".join(filter(None, [texts[False], texts[True]])) if texts[False] else texts[True]
    )
