"""Verification: the claims that are chosen, the steps of the plans that they need, the verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from bertology.data import catalog
from bertology.errors import ModelError, ParameterError, UnknownNameError
from bertology.plain_files import local_path
from bertology.reproduce import PAPERS
from bertology.reproduce.execute import PlanResults
from bertology.reproduce.judged import (
    NO_STUDY,
    JudgedClaim,
    all_verdicts,
    count_outcomes,
    judge_claims,
    results_by_data,
    why_not_run,
)
from bertology.reproduce.plan import (
    Combine,
    Data,
    FineTune,
    MissingData,
    PlanStep,
    ReproductionOptions,
    RunStudy,
    StepPlan,
)
from bertology.reproduce.planner import BUNDLED_TASKS, find_tasks, is_made, plan_paper
from bertology.results.known_claims import claims_by_id, find_claims, load_claims
from bertology.results.over_claims import page_text
from bertology.results.verdicts import Claim, reason_text
from bertology.studies import JOINS, STUDIES

if TYPE_CHECKING:
    from bertology.model.shape import Shape
    from bertology.results.result import Result
    from bertology.studies.study import Study

_TEXT = "grammar"  # read by studies without a task, where no paper has a plan for them
_TEXTS, _TRAINING_TEXTS = 1000, 20_000
_OWN_MODELS = "its study trains models of its own, which takes long; name the claim to judge it"
_NO_DATA = (
    "{} has no {}, which its study needs; bertology run {} --corpus NAME judges it on data that "
    "have that, which bertology datasets lists"
)


@dataclass(frozen=True)
class ChosenClaims:
    """Claims to be judged, and those that were not taken, each with the reason."""

    claims: tuple[Claim, ...]
    left_out: tuple[tuple[Claim, str], ...] = ()


def choose_claims(wanted: Sequence[str]) -> ChosenClaims:
    """Claims by id or by words in them; if none are wanted, all that are about a given model."""
    if not wanted:
        claims = load_claims()
        reasons = {c.id: why for c in claims if (why := _why_left_out(c.study))}
        return ChosenClaims(
            tuple(c for c in claims if c.id not in reasons),
            tuple((c, reasons[c.id]) for c in claims if c.id in reasons),
        )
    every = claims_by_id()
    found: dict[str, Claim] = {}
    for text in wanted:
        some = [every[text]] if text in every else find_claims(text)
        if not some or not text.strip():
            hint = "Search with: bertology claims --search WORDS"
            raise UnknownNameError("claim", text, every, hint=hint)
        found |= {c.id: c for c in some}
    return ChosenClaims(tuple(c for c in load_claims() if c.id in found))


def _why_left_out(study: str) -> str | None:
    if study in JOINS:
        # What combines results is no study, but the plan of a paper may have it.
        return next(filter(None, map(_why_left_out, JOINS.get(study).sources)), None)
    if study not in STUDIES:
        return NO_STUDY.format(study)
    return _OWN_MODELS if STUDIES.get(study).trains_models else None


@dataclass(frozen=True)
class FineTunedModel:
    """A classifier that bertology fine-tuned: its folder, its task, and what it was made from."""

    folder: Path
    task: str
    base: str
    fingerprint: str  # of the base


def find_fine_tuned(model: str) -> FineTunedModel | None:
    """What the record of a fine-tuned model says; None for any other model."""
    from bertology.train.checkpoint import read_record

    try:
        record = read_record(model) or {}
    except ModelError:
        return None  # a record that cannot be read is no reason to refuse the model
    base, train = record.get("base"), record.get("train")
    tuned = record.get("start") == "pretrained" or "lesson" in record  # by `make`, as the demo does
    if not tuned or not isinstance(base, dict):
        return None
    origin = train.get("origin") if train else None
    task = (origin or {}).get("name_or_path") or record.get("task")
    folder = local_path(model)
    return FineTunedModel(folder, str(task), str(base.get("name")), str(base.get("fingerprint")))


@dataclass(frozen=True)
class VerificationPart:
    """Claims of one paper, and the steps that they need."""

    title: str
    claims: tuple[Claim, ...]
    plan: StepPlan

    @property
    def without_steps(self) -> dict[str, str]:
        """Studies of its claims that the plan has no step for, and why."""
        studies = dict.fromkeys(claim.study for claim in self.claims)
        return {
            study: why_not_run(study, self.plan, PlanResults())
            for study in studies
            if not any(self.plan.steps_of(study))
        }

    def given(self, fine_tuned: FineTunedModel | None) -> dict[str, Path]:
        """Fine-tuning steps that need no work, since the model was given."""
        steps = [s for s in self.plan.steps if isinstance(s, FineTune)]
        return {} if fine_tuned is None else {s.key: fine_tuned.folder for s in steps}


def plan_parts(
    claims: Sequence[Claim], options: ReproductionOptions, shape: Shape
) -> list[VerificationPart]:
    """One part for each paper that has a plan, then one for the studies of all other claims."""
    parts, rest = [], list(claims)
    for paper in map(PAPERS.get, PAPERS.names()):
        own = tuple(claim for claim in rest if paper.makes(claim))
        if own:
            whole = plan_paper(paper, options, shape)
            needed = needed_steps(whole, {c.study for c in own})
            parts.append(VerificationPart(paper.title, own, needed))
            rest = [claim for claim in rest if claim not in own]
    if rest:
        plan = _plain_plan(rest, options)
        parts.append(VerificationPart("Claims of papers without a plan", tuple(rest), plan))
    return parts


def needed_steps(plan: StepPlan, studies: Iterable[str]) -> StepPlan:
    """Only those steps of the plan that these studies need, and the studies themselves."""
    wanted = {step.key for study in studies for step in plan.steps_of(study)}
    for step in reversed(plan.steps):  # what is needed comes before what needs it
        if step.key in wanted:
            wanted |= {*step.needs, *(step.results if isinstance(step, Combine) else ())}
    steps = tuple(step for step in plan.steps if step.key in wanted)
    used = {step.data.name for step in steps}
    return replace(plan, tasks=tuple(d for d in plan.tasks if d.name in used), steps=steps)


def _plain_plan(claims: Sequence[Claim], options: ReproductionOptions) -> StepPlan:
    """Each study with its default parameters, on the tasks or on text that the grammar makes."""
    known = [s for s in dict.fromkeys(c.study for c in claims) if s in STUDIES]
    kinds = {study: STUDIES.get(study) for study in known}
    tasks: list[Data] = []
    missing: list[MissingData] = []
    if any(kind.needs.task for kind in kinds.values()):
        tasks, missing = find_tasks(options.tasks or BUNDLED_TASKS, root=options.root)
    steps: dict[str, PlanStep] = {}
    left_out: dict[str, str] = {}
    for study, kind in kinds.items():
        if kind.needs.task:
            examples, train = options.examples, options.train_examples
            data = [replace(task, limit=examples, train_limit=train) for task in tasks]
        elif (corpus := _corpus_for(kind)) is not None:
            data = [_text(corpus, kind, options)]
        else:
            lacking = ", ".join(sorted(kind.needs.fields - _fields_of(_TEXT)))
            left_out[study] = _NO_DATA.format(_TEXT, lacking, study)
            continue
        for one in data:
            for step in _plain_steps(study, one, claims, options):
                steps.setdefault(step.key, step)
    return StepPlan(tuple(tasks), tuple(steps.values()), tuple(missing), left_out=left_out)


def _corpus_for(kind: type[Study]) -> str | None:
    """The plainest text with the fields that a study needs, else what it is compared over."""
    named = (_TEXT, *(name for name in kind.compared_over if is_made(name)))
    return next((name for name in named if kind.needs.fields <= _fields_of(name)), None)


def _fields_of(corpus: str) -> frozenset[str]:
    return frozenset(map(str, catalog.get(corpus).fields))


def _text(corpus: str, kind: type[Study], options: ReproductionOptions) -> Data:
    """What a study without a task reads; those that train models need more of it."""
    if kind.trains_models:
        return Data(corpus, split="train", limit=options.examples or _TRAINING_TEXTS)
    return Data(corpus, limit=options.examples or _TEXTS)


def _plain_steps(
    study: str, data: Data, claims: Sequence[Claim], options: ReproductionOptions
) -> Iterator[PlanStep]:
    kind, parameters, tuned = STUDIES.get(study), dict[str, object](), None
    if kind.trains_models:
        quantities = [c.rule.quantity for c in claims if c.study == study]
        parameters = {**kind.enough_for(quantities), "seeds": options.seeds or 3}
    if kind.needs.head == "classification":
        tuning = FineTune(data, **({} if options.epochs is None else {"epochs": options.epochs}))
        tuned = tuning.key
        yield tuning
    yield RunStudy(study, data, fine_tuned_by=tuned, parameters=parameters)


@dataclass
class Verification:
    """All parts, with the results of those that were executed, in the same order."""

    chosen: ChosenClaims
    parts: Sequence[VerificationPart]
    done: list[PlanResults] = field(default_factory=list)
    across_claims: bool = False
    """Whether the error of the verdicts is held over all claims."""

    @cached_property
    def judged(self) -> tuple[JudgedClaim, ...]:
        """Every chosen claim with its verdicts, once all parts were executed."""
        done = zip(self.parts, self.done, strict=True)
        return judge_claims(
            [(part.claims, part.plan, results) for part, results in done],
            across_claims=self.across_claims,
        )

    @property
    def page_text(self) -> str:
        """How many claims were judged, and how often that errs."""
        return page_text(all_verdicts(self.judged), across_claims=self.across_claims)

    def result_of(self, claim: Claim, data: str) -> Result:
        """The result that a claim was judged on, by the title of its data."""
        for part, done in zip(self.parts, self.done, strict=True):
            if claim in part.claims:
                return results_by_data(claim.study, part.plan, done)[data]
        raise ParameterError("claim", "a verification", "be one that was chosen", claim.id)

    @property
    def counts(self) -> dict[str, int]:
        """How many claims have which outcome; ours are counted apart."""
        return count_outcomes(j for j in self.judged if not j.claim.ours)

    @property
    def open(self) -> tuple[JudgedClaim, ...]:
        """Claims that could not be judged at all."""
        return tuple(j for j in self.judged if not j.decided)

    @property
    def failed(self) -> dict[str, str]:
        """Steps that failed, and why: claims were judged without them."""
        return {key: done.reasons[key] for done in self.done for key in done.failed}

    def why_open(self, judged: JudgedClaim) -> str:
        """Why a claim could not be judged: what its results say, or why there are none."""
        reasons = [reason_text(v) for _, v in judged.verdicts]
        return "; ".join(dict.fromkeys(reasons)) or judged.reason
