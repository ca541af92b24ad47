"""What became of a reproduction: the paper, the plan, the results, and every claim judged."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from bertology.reproduce.carrying import Carried
from bertology.reproduce.paper import Exhibit, Found, Reproduction, Section
from bertology.reproduce.plan import Ask, Data, Join, Plan, Step, Wishes
from bertology.results.claims import Claim, Outcome, Verdict, load_claims
from bertology.studies import STUDIES

__all__ = [
    "NOT_RUN",
    "Account",
    "Judged",
    "command_of",
    "count_outcomes",
    "judge_claims",
    "results_by_data",
    "short_name",
]

NOT_RUN = "not run"


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict on each corpus, or why there is none."""

    claim: Claim
    verdicts: tuple[tuple[str, Verdict], ...]  # title of the data, verdict
    reason: str = ""

    @property
    def telling(self) -> tuple[tuple[str, Verdict], ...]:
        """Those that could be judged."""
        return tuple(
            (title, v) for title, v in self.verdicts if v.outcome is not Outcome.NOT_APPLICABLE
        )

    @property
    def in_short(self) -> str:
        """One outcome where all corpora agree; else how many of each."""
        counts = Counter(v.outcome.value for _, v in self.telling)
        if not counts:
            return Outcome.NOT_APPLICABLE.in_words if self.verdicts else NOT_RUN
        if len(counts) == 1:
            return next(iter(counts))
        return ", ".join(
            f"{name} {counts[o.value]}" for o in Outcome if (name := o.value) in counts
        )


@dataclass(frozen=True)
class Account:
    """All that a page or a summary tells."""

    reproduction: Reproduction
    wishes: Wishes
    plan: Plan
    carried: Carried
    model: dict[str, Any]  # name, fingerprint, family, shape
    store: str = "results"
    created: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())

    def found(self, study: str) -> Found:
        """Results of a study by the title of their data."""
        return results_by_data(study, self.plan, self.carried)

    def why_not(self, study: str) -> str:
        """Why a study has no result, as far as is known."""
        return _why_not(study, self.plan, self.carried)

    @cached_property
    def judged(self) -> tuple[Judged, ...]:
        """Every claim of the paper, in the order of its file."""
        prefix = f"{self.reproduction.name}."
        claims = [claim for claim in load_claims() if claim.id.startswith(prefix)]
        return judge_claims(claims, self.plan, self.carried)

    def judged_in(self, section: Section) -> list[Judged]:
        """The claims whose source opens with the section's number."""
        return [j for j in self.judged if j.claim.source.section.startswith(section.number)]

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many claims have which outcome in short."""
        return count_outcomes(self.judged)

    def commands(self, exhibit: Exhibit) -> list[str]:
        """What makes the results of an exhibit again, one by one."""
        steps = list(self.plan.asked(exhibit.study))
        return [command_of(step, self) for step in steps if isinstance(step, Ask)]

    @property
    def command(self) -> str:
        """The command that makes all of it, on any machine."""
        given: list[tuple[str, Any]] = [("model", short_name(self.wishes.model))]
        given.append(("tasks", ",".join(self.wishes.tasks)))
        names = ("examples", "train_examples", "epochs", "seeds")
        given += [(name.replace("_", "-"), getattr(self.wishes, name)) for name in names]
        if self.wishes.root is not None:
            given.append(("root", "DATA"))  # the folder's name here says nothing elsewhere
        return _command(f"bertology reproduce {self.reproduction.name}", given)

    def not_run(self) -> Iterator[tuple[Step, str]]:
        """Steps of the plan that were left out, and why."""
        for step in self.plan.steps:
            if step.key in self.carried.reasons:
                yield step, self.carried.reasons[step.key]


def results_by_data(study: str, plan: Plan, carried: Carried) -> Found:
    """Results of a study by the title of their data."""
    asked = {step.key: step.data.title for step in plan.asked(study)}
    there = carried.results
    return {title: there[key] for key, title in asked.items() if key in there}


def judge_claims(claims: Sequence[Claim], plan: Plan, carried: Carried) -> tuple[Judged, ...]:
    """Each claim, on every corpus that its study was run over."""
    verdicts: dict[str, list[tuple[str, Verdict]]] = {}
    for study in dict.fromkeys(claim.study for claim in claims):
        for title, result in results_by_data(study, plan, carried).items():
            for verdict in result.verdicts():
                verdicts.setdefault(verdict.claim.id, []).append((title, verdict))
    return tuple(
        Judged(c, tuple(verdicts.get(c.id, ())), _why_not(c.study, plan, carried)) for c in claims
    )


def _why_not(study: str, plan: Plan, carried: Carried) -> str:
    """Why a study has no result, as far as is known."""
    reasons = [carried.reasons[s.key] for s in plan.asked(study) if s.key in carried.reasons]
    return "; ".join(dict.fromkeys(reasons)) or _not_planned(study)


def _not_planned(study: str) -> str:
    if study == "task-comparison":
        return "it takes two tasks or more"
    return "not part of what was asked for"


def count_outcomes(judged: Iterable[Judged]) -> dict[str, int]:
    """How many claims have which outcome in short; those that differ by corpus are mixed."""
    names = [*(o.value for o in Outcome), "mixed", Outcome.NOT_APPLICABLE.in_words, NOT_RUN]
    counts = Counter(s if (s := j.in_short) in names else "mixed" for j in judged)
    return {name: counts[name] for name in names if counts[name]}


def short_name(model: str) -> str:
    """A model's name without the folders it lies in."""
    return Path(model.rstrip("/")).name if model.startswith(("/", ".", "~")) else model


def command_of(step: Ask | Join, account: Account) -> str:
    """The command of one study."""
    if isinstance(step, Join):
        return ""
    model = account.wishes.model if step.of is None else account.carried.folders.get(step.of, "…")
    given: list[tuple[str, Any]] = [("model", model), *_data(step), ("store", account.store)]
    given += [(name.replace("_", "-"), value) for name, value in step.parameters.items()]
    if step.compared is not None:
        given.append((step.compared, account.wishes.model))
    return _command(f"bertology run {step.study}", given)


def _data(step: Ask) -> list[tuple[str, Any]]:
    data, default = step.data, Data(step.data.name)
    kind = "task" if STUDIES.get(step.study).needs.task else "corpus"
    split = None if data.split == default.split else data.split
    return [(kind, data.name), ("split", split), ("limit", data.limit), ("root", data.root)]


def _command(verb: str, given: list[tuple[str, Any]]) -> str:
    words = [verb]
    for name, value in given:
        if value is None or value in ((), ""):
            continue
        if isinstance(value, bool):
            words.append(f"--{name}" if value else f"--no-{name}")
            continue
        shown = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
        words.append(f"--{name} {shlex.quote(shown)}")
    return " ".join(words)
