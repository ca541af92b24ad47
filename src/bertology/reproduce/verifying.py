"""Which steps of the papers' plans a choice of claims needs, and what came of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertology.errors import ModelError, ParameterError, UnknownNameError
from bertology.reproduce import REPRODUCTIONS
from bertology.reproduce.account import (
    Judged,
    count_outcomes,
    judge_claims,
    results_by_data,
)
from bertology.reproduce.carrying import Carried
from bertology.reproduce.finding import BUNDLED_TASKS, find_tasks
from bertology.reproduce.plan import Ask, Data, Join, Missing, Plan, Step, Teach, Wishes
from bertology.results.claims import Claim, find_claims, load_claims
from bertology.studies import JOINED, STUDIES
from bertology.studies.designs.trials import Trials

if TYPE_CHECKING:
    from bertology.model.shape import Shape
    from bertology.results.result import Result
    from bertology.studies.study import Study

__all__ = [
    "Chosen",
    "Part",
    "Taught",
    "Verification",
    "choose_claims",
    "find_taught",
    "needed_steps",
    "plan_parts",
]

_TEXT = "grammar"  # what a study without a task reads, where no paper's plan says otherwise
_TEXTS, _TEXTS_TO_LEARN_FROM = 1000, 20_000
_OWN_MODELS = "its study trains models of its own, and takes long; name it to have it judged"
_NO_STUDY = "its study {!r} is not installed here"


@dataclass(frozen=True)
class Chosen:
    """Claims to be judged, and those that were not taken, each with the reason."""

    claims: tuple[Claim, ...]
    left_out: tuple[tuple[Claim, str], ...] = ()


def choose_claims(wanted: Sequence[str]) -> Chosen:
    """Claims by id or by words that they hold; without a wish, all that are about a given model."""
    if not wanted:
        claims = load_claims()
        reasons = {c.id: why for c in claims if (why := _why_left_out(c.study))}
        return Chosen(
            tuple(c for c in claims if c.id not in reasons),
            tuple((c, reasons[c.id]) for c in claims if c.id in reasons),
        )
    every = {c.id: c for c in load_claims()}
    found: dict[str, Claim] = {}
    for text in wanted:
        some = [every[text]] if text in every else find_claims(text)
        if not some or not text.strip():
            hint = "Search with: bertology claims --search WORDS"
            raise UnknownNameError("claim", text, every, hint=hint)
        found |= {c.id: c for c in some}
    return Chosen(tuple(c for c in every.values() if c.id in found))


def _why_left_out(study: str) -> str | None:
    if study not in STUDIES:
        # What joins stored results is no study, but every plan that has it can do it.
        return None if study in JOINED else _NO_STUDY.format(study)
    return _OWN_MODELS if issubclass(STUDIES.get(study), Trials) else None


@dataclass(frozen=True)
class Taught:
    """A classifier that bertology fine-tuned: where it lies, its task, and what it was before."""

    folder: Path
    task: str
    base: str
    fingerprint: str  # of the base


def find_taught(model: str) -> Taught | None:
    """What is recorded beside a fine-tuned model; None for any other model."""
    from bertology.train.checkpoint import read_record

    folder = Path(model).expanduser()
    try:
        record = read_record(folder) or {}
    except ModelError:
        return None  # a story that cannot be read is no reason to refuse the model
    base, train = record.get("base"), record.get("train", {})
    if record.get("start") != "pretrained" or not isinstance(base, dict):
        return None
    task = train.get("origin", {}).get("name_or_path") or record.get("task")
    return Taught(folder, str(task), str(base.get("name")), str(base.get("fingerprint")))


@dataclass(frozen=True)
class Part:
    """Claims of one paper, and the steps that they need."""

    title: str
    claims: tuple[Claim, ...]
    plan: Plan

    def given(self, taught: Taught | None) -> dict[str, Path]:
        """Steps that need no work, since what they would make is there."""
        steps = [s for s in self.plan.steps if isinstance(s, Teach)]
        return {} if taught is None else {s.key: taught.folder for s in steps}


def plan_parts(claims: Sequence[Claim], wishes: Wishes, shape: Shape) -> list[Part]:
    """One part for each paper that has a plan, then one for the studies of all other claims."""
    by_paper: dict[str, list[Claim]] = {}
    for claim in claims:
        opening = claim.id.partition(".")[0]
        by_paper.setdefault(opening if opening in REPRODUCTIONS else "", []).append(claim)
    parts = []
    for name in sorted(by_paper, key=lambda name: name == ""):
        own = tuple(by_paper[name])
        if name:
            paper = REPRODUCTIONS.get(name)
            whole = paper.plan(wishes, shape)
            parts.append(Part(paper.title, own, needed_steps(whole, {c.study for c in own})))
        else:
            parts.append(Part("Claims without a paper's plan", own, _plain_plan(own, wishes)))
    return parts


def needed_steps(plan: Plan, studies: Iterable[str]) -> Plan:
    """The plan without what these studies, and what they need, can do without."""
    wanted = {step.key for study in studies for step in plan.asked(study)}
    for step in reversed(plan.steps):  # what is needed comes before what needs it
        if step.key in wanted:
            wanted |= {*step.needs, *(step.results if isinstance(step, Join) else ())}
    steps = tuple(step for step in plan.steps if step.key in wanted)
    used = {step.data.name for step in steps}
    return replace(plan, tasks=tuple(d for d in plan.tasks if d.name in used), steps=steps)


def _plain_plan(claims: Sequence[Claim], wishes: Wishes) -> Plan:
    """Each study as it is without settings, on the tasks or on text of the bundled grammar."""
    known = [s for s in dict.fromkeys(c.study for c in claims) if s in STUDIES]
    kinds = {study: STUDIES.get(study) for study in known}
    tasks: list[Data] = []
    missing: list[Missing] = []
    if any(kind.needs.task for kind in kinds.values()):
        tasks, missing = find_tasks(wishes.tasks or BUNDLED_TASKS, root=wishes.root)
    steps: dict[str, Step] = {}
    for study, kind in kinds.items():
        data = [_text(kind, wishes)]
        if kind.needs.task:
            few, learnt = wishes.examples, wishes.train_examples
            data = [replace(task, limit=few, train_limit=learnt) for task in tasks]
        for one in data:
            for step in _plain_steps(study, one, claims, wishes):
                steps.setdefault(step.key, step)
    return Plan(tuple(tasks), tuple(steps.values()), tuple(missing))


def _text(kind: type[Study[Any]], wishes: Wishes) -> Data:
    """What a study without a task reads; those that train models need more of it."""
    if issubclass(kind, Trials):
        return Data(_TEXT, split="train", limit=wishes.examples or _TEXTS_TO_LEARN_FROM)
    return Data(_TEXT, limit=wishes.examples or _TEXTS)


def _plain_steps(study: str, data: Data, claims: Sequence[Claim], wishes: Wishes) -> Iterator[Step]:
    kind, parameters, of = STUDIES.get(study), dict[str, Any](), None
    if issubclass(kind, Trials):
        quantities = [c.rule.quantity for c in claims if c.study == study]
        parameters = {**kind.enough_for(quantities), "seeds": wishes.seeds or 3}
    if kind.needs.head == "classification":
        teach = Teach(data, **({} if wishes.epochs is None else {"epochs": wishes.epochs}))
        of = teach.key
        yield teach
    yield Ask(study, data, of=of, parameters=parameters)


@dataclass
class Verification:
    """All parts, with what came of those that were carried out."""

    chosen: Chosen
    parts: Sequence[Part]
    carried: list[Carried] = field(default_factory=list)

    @property
    def judged(self) -> tuple[Judged, ...]:
        """Every chosen claim with its verdicts."""
        found: list[Judged] = []
        for part, carried in zip(self.parts, self.carried, strict=True):
            found += judge_claims(part.claims, part.plan, carried)
        return tuple(found)

    def result_of(self, claim: Claim, data: str) -> Result:
        """The result that a claim was judged on, by the title of its data."""
        for part, carried in zip(self.parts, self.carried, strict=True):
            if claim in part.claims:
                return results_by_data(claim.study, part.plan, carried)[data]
        raise ParameterError("claim", "a verification", "be one that was chosen", claim.id)

    @property
    def counts(self) -> dict[str, int]:
        """How many claims have which outcome in short."""
        return count_outcomes(self.judged)

    @property
    def open(self) -> tuple[Judged, ...]:
        """Claims that could not be judged at all."""
        return tuple(j for j in self.judged if not j.telling)

    @property
    def failed(self) -> dict[str, str]:
        """Steps that should have worked, and why they did not: claims were judged without them."""
        return {key: carried.reasons[key] for carried in self.carried for key in carried.failed}

    def why_open(self, judged: Judged) -> str:
        """Why a claim could not be judged: what its results say, or why there are none."""
        told = [v.measured.removeprefix("not judged: ") for _, v in judged.verdicts]
        if judged.claim.study not in STUDIES and judged.claim.study not in JOINED:
            told = [_NO_STUDY.format(judged.claim.study)]
        return "; ".join(dict.fromkeys(told)) or judged.reason
