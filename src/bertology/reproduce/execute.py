"""Executes a plan, step after step. What was done before is not done again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertology.data.loading import load_corpus
from bertology.errors import (
    CapabilityError,
    DataError,
    InterruptedRunError,
    JobError,
    MissingExtraError,
    ModelError,
    ParameterError,
    UnknownNameError,
)
from bertology.reproduce.plan import Combine, Data, FineTune, PlanStep, RunSteps, RunStudy, StepPlan
from bertology.run.at_hand import ModelAtHand
from bertology.run.loading import describe_model
from bertology.studies import JOINS, STUDIES

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.results.result import Result
    from bertology.run.progress import Progress
    from bertology.run.session import Session
    from bertology.train.finetune import FinetuneSettings
    from bertology.train.history import Step as TrainingStep
    from bertology.train.records import TrainingRecord
    from bertology.train.starts import Start
    from bertology.train.tuning import TuningJob

CACHED, RUNNING, DONE, GIVEN = "cached", "running", "done", "given"
NOT_RUN, FAILED = "not run", "failed"
LogStep = Callable[[PlanStep, str, str], None]
"""Called with a step, its status, and a detail such as the seconds or the reason."""

# Where a step lacks something, others may still work. Problems with the store end the run.
_LEFT_OUT = (
    CapabilityError, DataError, MissingExtraError, ModelError, ParameterError, UnknownNameError,
)  # fmt: skip
LoadModel = Callable[[str, str], "Encoder | ModelAtHand"]  # name or folder, head


@dataclass
class PlanResults:
    """What came out: results by step, the records of models, and why steps were not run."""

    results: dict[str, Result] = field(default_factory=dict)
    models: dict[str, TrainingRecord] = field(default_factory=dict)
    folders: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)  # steps that ended in an error while they ran

    def has(self, key: str) -> bool:
        """Whether the step was done."""
        return key in self.results or key in self.models


class PlanExecutor:
    """Executes plans with a session for studies and a folder for models.

    `fine_tuned`: models that exist already, by the key of the step that would make them.
    """

    def __init__(
        self,
        model: str,
        folder: Path,
        session: Session,
        *,
        load: LoadModel,
        log: LogStep,
        fine_tuned: Mapping[str, Path] | None = None,
    ) -> None:
        self._model, self._folder, self._session = model, folder, session
        self._load, self._log, self._fine_tuned = load, log, fine_tuned or {}
        self._models: dict[tuple[str, str], Encoder | ModelAtHand] = {}
        self._corpora: dict[tuple[str, str, int | None, str | None], Corpus] = {}

    def execute(self, plan: StepPlan) -> PlanResults:
        """Do all steps; those that the model or the data do not allow are logged and left out."""
        done = PlanResults()
        for step in plan.steps:
            lacking = [key for key in step.needs if not done.has(key)]
            if lacking:
                self._leave(step, done, f"needs {', '.join(lacking)}, which was not run")
                continue
            started = time.monotonic()
            try:
                status = self._do(step, done)
            except _LEFT_OUT as error:
                self._leave(step, done, error.problem)
                continue
            except JobError as error:
                done.failed.append(step.key)
                self._leave(step, done, error.problem, FAILED)
                continue
            except (InterruptedRunError, KeyboardInterrupt) as stopped:
                raise self._interrupted(stopped, done, plan) from None
            spent = f"{time.monotonic() - started:.0f} s" if status == DONE else ""
            self._log(step, status, spent)
        return done

    def _leave(self, step: PlanStep, done: PlanResults, reason: str, status: str = NOT_RUN) -> None:
        done.reasons[step.key] = reason
        self._log(step, status, reason)

    def _interrupted(
        self, stopped: BaseException, done: PlanResults, plan: StepPlan
    ) -> InterruptedRunError:
        finished = len(done.results) + len(done.models)
        problem = getattr(stopped, "problem", "Interrupted.")
        again = self._session.command
        return InterruptedRunError(
            f"{problem} {finished} of {len(plan.steps)} steps are finished and kept.",
            hint=f"Continue with: {again}" if again else "The same call does only the rest.",
        )

    # Steps -------------------------------------------------------------------------------------

    def _do(self, step: PlanStep, done: PlanResults) -> str:
        match step:
            case FineTune():
                return self._fine_tune(step, done)
            case RunStudy():
                return self._run_study(step, done)
            case Combine():
                return self._combine(step, done)
            case RunSteps():
                return self._run_steps(step, done)

    def _fine_tune(self, step: FineTune, done: PlanResults) -> str:
        from bertology.train.checkpoint import read_record
        from bertology.train.tuning import make_tuned

        if (given := self._fine_tuned.get(step.key)) is not None:
            done.models[step.key] = read_record(given) or {}
            done.folders[step.key] = str(given.resolve())
            return GIVEN
        identity = self._tuning_identity(step)
        short = Path(self._model.rstrip("/")).name
        # A folder for each way of fine-tuning: models of other options stay apart.
        place = self._folder / "models" / f"{step.data.name}-{identity[:8]}" / f"{short}-tuned"
        if self._is_made(place, identity):  # the model before need not be loaded
            done.models[step.key] = read_record(place) or {}
            done.folders[step.key] = str(place.resolve())
            return CACHED
        job = self._tuning_job(step)
        watched = _WatchedProgress(self._session.progress, lambda: self._log(step, RUNNING, ""))
        try:
            record = make_tuned(place, job, progress=lambda s: watched.training(step.key, s))
        finally:
            watched.stop()
        done.models[step.key] = record
        done.folders[step.key] = str(place.resolve())
        return DONE if watched.started else CACHED

    @staticmethod
    def _is_made(place: Path, identity: str) -> bool:
        """Whether the model of a job is finished; what is begun or damaged, its job looks at."""
        from bertology.train.checkpoint import read_record

        try:
            return (read_record(place) or {}).get("identity") == identity
        except ModelError:
            return False

    def _tuning_identity(self, step: FineTune) -> str:
        """The identity of the job, of what is known of the model."""
        from bertology.train.tuning import tuning_identity

        about = self._about(self._model, "base")
        start, settings = self._tuning(step, about["shape"]["hidden"])
        train, validation = self._train(step.data), self._corpus(step.data)
        return tuning_identity(about["fingerprint"], train, validation, start, settings)

    def _tuning(self, step: FineTune, hidden: int) -> tuple[Start, FinetuneSettings]:
        from bertology.train.finetune import FinetuneSettings
        from bertology.train.starts import default_rate, find_start

        start = find_start("pretrained")
        rate = step.learning_rate or default_rate(start, hidden)
        return start, FinetuneSettings(
            epochs=step.epochs, batch_size=step.batch_size, learning_rate=rate, seed=step.seed
        )

    def _tuning_job(self, step: FineTune) -> TuningJob:
        from bertology.train.tuning import TuningJob, check_apart

        model = self._at_hand(self._model, "base")
        encoder: Encoder = model.encoder() if isinstance(model, ModelAtHand) else model
        train, validation = self._train(step.data), self._corpus(step.data)
        check_apart(train, validation)
        return TuningJob(encoder, train, validation, *self._tuning(step, encoder.shape.hidden))

    def _run_study(self, step: RunStudy, done: PlanResults) -> str:
        kind = STUDIES.get(step.study)
        head, where = kind.needs.head, self._model
        if step.fine_tuned_by is not None:
            where = done.folders[step.fine_tuned_by]
        model, others = self._at_hand(where, head), {}
        parameters = dict(step.parameters)
        if step.base_model_as is not None:
            parameters[step.base_model_as] = self._model
            others[step.base_model_as] = self._at_hand(self._model, head)
        watched = _WatchedProgress(self._session.progress, lambda: self._log(step, RUNNING, ""))
        session = replace(self._session, progress=watched)
        done.results[step.key] = session.run(
            step.study, kind(**parameters), model, self._corpus(step.data), others=others
        )
        return DONE if watched.started else CACHED

    def _run_steps(self, step: RunSteps, done: PlanResults) -> str:
        """The study at each kept step, and the curve of its measure."""
        from bertology.run.over_steps import steps_of
        from bertology.studies.joins.training_steps import TrainingSteps

        kind, corpus = STUDIES.get(step.of), self._corpus(step.data)
        study, named = kind(**step.parameters), steps_of(self._model)
        watched = _WatchedProgress(self._session.progress, lambda: self._log(step, RUNNING, ""))
        session = replace(self._session, progress=watched)
        results = [
            session.run(step.of, study, self._load(at_step, kind.needs.head), corpus)
            for at_step in named.values()
        ]
        found = TrainingSteps(measure=step.measure, steps=tuple(named)).join(results)
        done.results[step.key] = found
        if not self._session.store.has(found.provenance):
            self._session.store.save(found)
        return DONE if watched.started else CACHED

    def _combine(self, step: Combine, done: PlanResults) -> str:
        sources = [done.results[key] for key in step.results if key in done.results]
        result = JOINS.get(step.study)(**step.parameters).join(sources)
        done.results[step.key] = result
        if self._session.store.has(result.provenance):
            return CACHED
        self._session.store.save(result)
        return DONE

    # Models and data ---------------------------------------------------------------------------

    def _at_hand(self, where: str, head: str) -> Encoder | ModelAtHand:
        if (where, head) not in self._models:
            # The model itself stays in memory; of the fine-tuned ones, only the one in use.
            stale = [k for k in self._models if k[0] not in (where, self._model)]
            for key in stale:
                del self._models[key]
            self._models[where, head] = self._load(where, head)
        return self._models[where, head]

    def _about(self, where: str, head: str) -> dict[str, Any]:
        model = self._at_hand(where, head)
        if not isinstance(model, ModelAtHand):
            return describe_model(model)
        about = model.about()
        model.remember()
        return about

    def _corpus(self, data: Data) -> Corpus:
        return self._loaded(data, data.split, data.limit)

    def _train(self, data: Data) -> Corpus:
        return self._loaded(data, data.train_split, data.train_limit)

    def _loaded(self, data: Data, split: str, limit: int | None) -> Corpus:
        key = (data.key, split, limit, data.root)
        if key not in self._corpora:
            # Only one corpus is held: the next step mostly reads the same.
            self._corpora = {k: c for k, c in self._corpora.items() if k[0] == data.key}
            named: dict[str, Any] = {} if data.languages is None else {"languages": data.languages}
            self._corpora[key] = load_corpus(
                data.name, split=split, limit=limit, root=data.root, **named
            )
        return self._corpora[key]


class _WatchedProgress:
    """Passes progress on, and knows whether there was any: a cached step has none."""

    def __init__(self, progress: Progress, begin: Callable[[], None]) -> None:
        self._progress, self._begin = progress, begin
        self.started, self._done = False, 0

    def start(self, title: str, total: int) -> None:
        self.started = True
        self._begin()
        self._progress.start(title, total)

    def advance(self, steps: int) -> None:
        self._progress.advance(steps)

    def stop(self) -> None:
        self._progress.stop()

    def training(self, title: str, step: TrainingStep) -> None:
        """The same for fine-tuning, which reports how many updates are done."""
        if not self.started:
            self.start(title, step.total)
        self.advance(step.done - self._done)
        self._done = step.done
