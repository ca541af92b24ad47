"""All that the page and the summaries of a reproduction show: paper, plan, results, verdicts."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TypedDict

from bertology.parameters import option_name
from bertology.reproduce.execute import PlanResults
from bertology.reproduce.judged import (
    JudgedClaim,
    all_verdicts,
    count_outcomes,
    judge_claims,
    results_by_data,
    why_not_run,
)
from bertology.reproduce.paper import Exhibit, Paper, PaperSection, ResultsByData
from bertology.reproduce.plan import (
    Data,
    PlanStep,
    ReproductionOptions,
    RunSteps,
    RunStudy,
    StepPlan,
)
from bertology.results.known_claims import load_claims
from bertology.results.over_claims import page_text
from bertology.studies import STUDIES

QUICK = (
    "Quick: less data. The settings are the small ones, with about a quarter of their examples, so "
    "that intervals are wider and more claims stay open. What is decided here errs as rarely as "
    "elsewhere. The command without --quick tells more."
)

_Option = tuple[str, object]  # name, value


class ModelSummary(TypedDict):
    """What a report says of its model."""

    name: str
    fingerprint: str
    family: str
    shape: dict[str, int | None]


@dataclass(frozen=True)
class ReproductionReport:
    """A paper, what was run for it, and what came out."""

    paper: Paper
    options: ReproductionOptions
    plan: StepPlan
    done: PlanResults
    model: ModelSummary
    store: str = "results"
    created: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())

    def results_of(self, study: str) -> ResultsByData:
        """Results of a study by the title of their data."""
        return results_by_data(study, self.plan, self.done)

    def why_not_run(self, study: str) -> str:
        """Why a study has no result, as far as is known."""
        return why_not_run(study, self.plan, self.done)

    @cached_property
    def judged(self) -> tuple[JudgedClaim, ...]:
        """Every claim of the paper, in the order of its file."""
        claims = [claim for claim in load_claims() if self.paper.makes(claim)]
        return judge_claims(
            [(claims, self.plan, self.done)], across_claims=self.options.across_claims
        )

    @property
    def data_text(self) -> str:
        """That little was read, where it was; the verdicts of such a page are open more often."""
        return QUICK if self.options.quick else ""

    @property
    def page_text(self) -> str:
        """How many claims were judged, and how often that errs."""
        across = self.options.across_claims
        return page_text(all_verdicts(self.judged), across_claims=across)

    def judged_in(self, section: PaperSection) -> list[JudgedClaim]:
        """The claims that belong to a section."""
        return [j for j in self.judged if section in self.paper.sections_of(j.claim)]

    def differs_in(self, section: PaperSection) -> tuple[str, ...]:
        """What differs from the paper in a section."""
        return self.plan.notes.get(section.number, ())

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many claims have which outcome; ours are counted apart."""
        return count_outcomes(j for j in self.judged if not j.claim.ours)

    def commands(self, exhibit: Exhibit) -> list[str]:
        """The commands that make the results of an exhibit again, one by one."""
        steps = self.plan.steps_of(exhibit.study)
        return [
            self._study_command(step) if isinstance(step, RunStudy) else self._steps_command(step)
            for step in steps
            if isinstance(step, RunStudy | RunSteps)
        ]

    @property
    def command(self) -> str:
        """The command that makes all of it, on any machine."""
        names = {
            "examples": "limit", "train_examples": "train-limit", "epochs": "epochs",
            "seeds": "seeds",
        }  # fmt: skip
        given: list[_Option] = [
            ("model", short_name(self.options.model)),
            ("tasks", ",".join(self.options.tasks)),
            ("languages", ",".join(self.options.languages)),
            *((option, getattr(self.options, name)) for name, option in names.items()),
        ]
        if self.options.root is not None:
            given.append(("root", "DATA"))  # the folder's name means nothing elsewhere
        if self.options.quick:
            given.append(("quick", True))
        if self.options.across_claims:
            given.append(("across-claims", True))
        return _command(f"bertology reproduce {self.paper.name}", given)

    def not_run(self) -> Iterator[tuple[PlanStep, str]]:
        """Steps of the plan that were left out, and why."""
        for step in self.plan.steps:
            if step.key in self.done.reasons:
                yield step, self.done.reasons[step.key]

    def _study_command(self, step: RunStudy) -> str:
        model = self.options.model
        if step.fine_tuned_by is not None:
            model = self.done.folders.get(step.fine_tuned_by, "…")
        called = {f.name: option_name(f) for f in fields(STUDIES.get(step.study))}
        asked = {called[name]: value for name, value in step.parameters.items()}
        given = [("model", model), *_data_options(step), ("store", self.store)]
        if "limit" in asked and step.data.limit is not None:  # the data have no more
            asked["limit"] = min(int(str(asked["limit"])), step.data.limit)
        given = [option for option in given if option[0] not in asked] + list(asked.items())
        if step.base_model_as is not None:
            given.append((step.base_model_as, self.options.model))
        return _command(f"bertology run {step.study}", given)

    def _steps_command(self, step: RunSteps) -> str:
        data, default = step.data, Data(step.data.name)
        given: list[_Option] = [
            ("study", step.of),
            ("measure", step.measure),
            ("corpus", data.name),
            ("split", None if data.split == default.split else data.split),
            ("limit", data.limit),
            ("root", data.root),
            *(("set", f"{name}={value}") for name, value in step.parameters.items()),
            ("store", self.store),
        ]
        return _command(f"bertology steps {shlex.quote(self.options.model)}", given)


def short_name(model: str) -> str:
    """A model's name without the folders that it is in."""
    return Path(model.rstrip("/")).name if model.startswith(("/", ".", "~")) else model


def _data_options(step: RunStudy) -> list[_Option]:
    data, default = step.data, Data(step.data.name)
    kind = "task" if STUDIES.get(step.study).needs.task else "corpus"
    split = None if data.split == default.split else data.split
    given = (("split", split), ("limit", data.limit), ("root", data.root))
    return [(kind, data.name), *given, ("languages", data.languages)]


def _command(verb: str, given: list[_Option]) -> str:
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
