"""From the plan of a paper to steps: for the reader's options, the data at hand and the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from typing import TYPE_CHECKING, Any

from bertology.data import catalog
from bertology.data.languages import language
from bertology.data.loading import load_corpus
from bertology.errors import CapabilityError, DataError, UnknownNameError
from bertology.reproduce.paper_plan import (
    TRAIN_SPLIT,
    CombineData,
    Condition,
    CorpusData,
    FineTuneData,
    LanguageSteps,
    Note,
    StepData,
    StepsData,
    StudyData,
    TaskSteps,
    quick_share,
)
from bertology.reproduce.plan import (
    Combine,
    Data,
    FineTune,
    MissingData,
    PlanStep,
    ReproductionOptions,
    RunSteps,
    RunStudy,
    StepPlan,
)

if TYPE_CHECKING:
    from bertology.model.shape import Shape
    from bertology.reproduce.paper import Paper


def plan_paper(paper: Paper, options: ReproductionOptions, shape: Shape) -> StepPlan:
    """The steps for a paper, for what the reader asks, the data at hand and the model."""
    return _Planner(paper, options, shape).plan()


class _Planner:
    def __init__(self, paper: Paper, options: ReproductionOptions, shape: Shape) -> None:
        self._sections, self._data = paper.sections, paper.plan
        self._options, self._shape = options, shape
        self._tasks: list[Data] = []
        self._missing: list[MissingData] = []
        self._corpora: dict[str, tuple[Data, CorpusData]] = {}
        self._steps: list[PlanStep] = []

    def plan(self) -> StepPlan:
        names = self._options.tasks or self._data.tasks
        if any(isinstance(step, TaskSteps) for step in self._data.steps):
            self._tasks, self._missing = find_tasks(names, root=self._options.root)
        self._find_corpora()
        for step in self._data.steps:
            if isinstance(step, TaskSteps):
                for task in self._tasks:
                    self._add_task(task, step)
            elif isinstance(step, LanguageSteps):
                for code in self._options.languages or self._data.languages:
                    self._add_language(language(code).code, step)
            else:
                self._add(step)
        notes = {s.number: tuple(self._notes(s.differs)) for s in self._sections}
        tasks, steps, missing = tuple(self._tasks), tuple(self._steps), tuple(self._missing)
        return StepPlan(tasks, steps, missing, notes)

    # Values ------------------------------------------------------------------------------------

    def _settings(self, corpus: str) -> dict[str, object]:
        small = fnmatch(corpus, self._data.small_for)
        chosen = self._data.settings.items()
        return {k: setting.value(small, self._options, self._shape) for k, setting in chosen}

    def _resolved(self, value: object, data: Data) -> Any:
        """The value, or the setting that it refers to."""
        if isinstance(value, str) and value.startswith("$"):
            name = value[1:]
            return data.train_split if name == TRAIN_SPLIT else self._settings(data.name)[name]
        return tuple(value) if isinstance(value, list) else value

    def _parameters(self, given: Mapping[str, object], data: Data) -> dict[str, Any]:
        return {name: self._resolved(value, data) for name, value in given.items()}

    # Corpora -----------------------------------------------------------------------------------

    def _find_corpora(self) -> None:
        # The default run is the same on every machine, whichever data it has.
        look = bool(self._options.tasks) or self._options.root is not None
        wanted: list[str] = []
        for name, choices in self._data.corpora.items():
            loaded = [self._corpus(choice) for choice in choices]
            at = find_first(loaded) if look else len(loaded) - 1
            self._corpora[name] = loaded[at], choices[at]
            wanted += [data.name for data in loaded[:at]] if look else []
        used = {data.name for data, _ in self._corpora.values()}
        for name in dict.fromkeys(wanted):
            if name not in used:
                self._missing.append(MissingData(name, "It is not on this machine."))

    def _corpus(self, choice: CorpusData) -> Data:
        data = Data(choice.corpus, choice.split, languages=",".join(choice.languages) or None)
        limit, examples = self._resolved(choice.limit, data), self._options.examples
        if self._options.quick and limit == choice.limit:  # a setting is quick already
            limit = choice.quick or quick_share(limit)
        if limit is not None and choice.per_example is not None and examples is not None:
            limit = min(limit, choice.per_example * examples)
        root = None if is_made(choice.corpus) else self._options.root
        return replace(data, limit=limit, root=root)

    # Steps -------------------------------------------------------------------------------------

    def _add(self, step: StepData) -> None:
        """A step that is about no single task."""
        if isinstance(step, StudyData):
            self._add_study(step, *self._corpora[str(step.over)])
        elif isinstance(step, StepsData):
            data, choice = self._corpora[step.over]
            given = self._parameters({**step.parameters, **choice.parameters}, data)
            self._steps.append(RunSteps(step.steps, step.measure, data, given))
        elif isinstance(step, CombineData) and len(self._tasks) >= step.min_tasks:
            self._combine(step, Data(step.over), self._steps)

    def _add_study(self, step: StudyData, data: Data, choice: CorpusData) -> None:
        given = {**step.parameters, **choice.parameters}
        run = RunStudy(step.study, data, parameters=self._parameters(given, data))
        if run not in self._steps:  # two corpora of the plan may be the same one here
            self._steps.append(run)

    def _add_language(self, code: str, group: LanguageSteps) -> None:
        data, choice = self._corpora[group.over]
        for step in group.steps:
            if isinstance(step, StudyData):
                self._add_study(step, replace(data, languages=code), choice)

    def _add_task(self, task: Data, group: TaskSteps) -> None:
        own: list[PlanStep] = []
        for step in group.steps:
            use = getattr(step, "use", None) or group.use
            limits = (self._resolved(value, task) for value in (use.limit, use.train_limit))
            data = replace(task, **dict(zip(("limit", "train_limit"), limits, strict=True)))
            if isinstance(step, FineTuneData):
                self._steps.append(FineTune(data, **self._parameters(vars(step.finetune), data)))
            elif isinstance(step, StudyData):
                made = f"finetune@{data.name}" if step.fine_tuned else None
                parameters = self._parameters(step.parameters, data)
                self._steps.append(RunStudy(step.study, data, made, parameters, step.base_model_as))
            elif isinstance(step, CombineData):
                self._combine(step, data, own)
            own.append(self._steps[-1])

    def _combine(self, step: CombineData, data: Data, first: Sequence[PlanStep]) -> None:
        """`first`: the steps whose results are taken where they are of the right study."""
        keys = [key for study in step.of for key in self._keys(study, first)]
        needs = [key for study in step.needs for key in self._keys(study, first)]
        parameters = self._parameters(step.parameters, data)
        self._steps.append(Combine(step.combine, data, tuple(keys), tuple(needs), parameters))

    def _keys(self, study: str, first: Sequence[PlanStep]) -> list[str]:
        for steps in (first, self._steps):
            if found := [s.key for s in steps if getattr(s, "study", "") == study]:
                return found
        return []

    # Notes -------------------------------------------------------------------------------------

    def _notes(self, notes: Sequence[Note]) -> Iterator[str]:
        for note in notes:
            if note.when is None:
                yield note.text
            elif note.when.corpus is not None:
                if self._corpora[note.when.corpus][0].name == note.when.named:
                    yield note.text
            else:
                yield from self._task_notes(note, note.when)

    def _task_notes(self, note: Note, when: Condition) -> Iterator[str]:
        """One note for all tasks that have the same to say."""
        titles: dict[str, list[str]] = {}
        for task in self._tasks:
            settings = self._settings(task.name)
            if _meets(task, settings, when):
                values = {name: _shown(value) for name, value in settings.items()}
                text = note.text.format_map({**values, "tasks": "{tasks}"})
                titles.setdefault(text, []).append(task.title)
        for text, of in titles.items():
            yield text.replace("{tasks}", ", ".join(of))


def _meets(task: Data, settings: Mapping[str, object], when: Condition) -> bool:
    value = None if when.setting is None else settings[when.setting]
    return (
        (when.task is None or fnmatch(task.name, when.task))
        and (task.sample or not when.sample)
        and (when.below is None or (isinstance(value, int | float) and value < when.below))
        and (when.unlike is None or value != settings[when.unlike])
    )


def _shown(value: object) -> str:
    if value is None:
        return "all"
    return f"{value:,}" if isinstance(value, int | float) else str(value)


# Which data are on this machine; known before any work begins.

BUNDLED_TASKS = ("grammar-entailment", "grammar-acceptability")
"""Used where nobody names tasks: one of pairs, one of single sentences; small models learn both."""

_SAMPLES = {"train": "train_sample", "validation": "train_sample_validation"}
_PROBE = 2  # examples that show whether a split is there


def find_tasks(
    names: Sequence[str], *, root: str | None = None
) -> tuple[list[Data], list[MissingData]]:
    """The tasks that are here, and those that are not; an error if none is."""
    found = [find_task(name, root=root) for name in names]
    missing = [f for f in found if isinstance(f, MissingData)]
    tasks = [f for f in found if isinstance(f, Data)]
    if not tasks:
        reasons = " ".join(m.reason for m in missing)
        raise DataError(
            f"None of the tasks is on this machine. {reasons}",
            hint="Give the folder that holds the data (--root), or leave out --tasks for those "
            "that the bundled grammar makes.",
        )
    return tasks, missing


def find_task(name: str, *, root: str | None = None) -> Data | MissingData:
    """The splits of a task that are here; a sample of a split is taken where the whole is missing.

    Unknown names are errors, and so are corpora without a task. Files that are not on this machine
    are no error.
    """
    whole = Data(name, root=root)
    train, validation = (_split_of(whole, split) for split in _SAMPLES)
    for found in (train, validation):
        if isinstance(found, MissingData):
            return found
    sample = (train, validation) != tuple(_SAMPLES)
    return replace(whole, train_split=str(train), split=str(validation), sample=sample)


def _split_of(data: Data, split: str) -> str | MissingData:
    try:
        _check_has_task(data, split)
    except DataError as error:
        sample = _SAMPLES[split]
        try:
            _check_has_task(data, sample)
        except (DataError, UnknownNameError):
            return MissingData(data.name, error.problem)
        return sample
    return split


def _check_has_task(data: Data, split: str) -> None:
    corpus = load_corpus(data.name, split=split, root=data.root, limit=_PROBE)
    if corpus.task is None or corpus.task.kind not in ("classification", "regression"):
        raise CapabilityError(
            f"{data.name!r} has no classification or regression task.",
            hint="List the corpora and their tasks with: bertology datasets",
        )


def find_first(choices: Sequence[Data]) -> int:
    """Which of several corpora is the first that is here; the last one needs no looking."""
    for i, data in enumerate(choices[:-1]):
        try:
            load_corpus(data.name, split=data.split, root=data.root, limit=_PROBE)
        except DataError:
            continue
        return i
    return len(choices) - 1


def is_made(name: str) -> bool:
    """Whether the bundled grammar makes the corpus, so that there are no files of it."""
    try:
        return not catalog.get(name).folder
    except UnknownNameError:
        return False
