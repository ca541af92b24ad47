"""Carries out a plan, step after step. What is there already is not done again."""

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
)
from bertology.reproduce.plan import Ask, Data, Join, Plan, Step, Teach
from bertology.studies import STUDIES

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.results.result import Result
    from bertology.run.progress import Progress
    from bertology.run.session import Session
    from bertology.train.history import Step as TrainingStep
    from bertology.train.tuning import TuningJob

__all__ = [
    "CACHED",
    "DONE",
    "FAILED",
    "GIVEN",
    "NOT_RUN",
    "RUNNING",
    "Carried",
    "Carrying",
    "Tell",
]

CACHED, RUNNING, DONE, GIVEN = "cached", "running", "done", "given"
NOT_RUN, FAILED = "not run", "failed"
Tell = Callable[[Step, str, str], None]
"""Hears of a step: what became of it, and a word more."""

# What a step cannot have, another may do without; trouble with the store ends the run.
_LEFT_OUT = (CapabilityError, DataError, MissingExtraError, ModelError, ParameterError)
LoadEncoder = Callable[[str, str], "Encoder"]  # name or folder, head


@dataclass
class Carried:
    """What came out: results by step, the records of models, and why steps were not run."""

    results: dict[str, Result] = field(default_factory=dict)
    models: dict[str, dict[str, Any]] = field(default_factory=dict)
    folders: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)  # of those, the ones that should have worked

    def has(self, key: str) -> bool:
        """Whether the step was done."""
        return key in self.results or key in self.models


class Carrying:
    """The hands of a reproduction: a session for studies, and a folder for models.

    `taught` has models that are there already, by the key of the step that would make them.
    """

    def __init__(
        self,
        model: str,
        folder: Path,
        session: Session,
        *,
        load: LoadEncoder,
        tell: Tell,
        taught: Mapping[str, Path] | None = None,
    ) -> None:
        self._model, self._folder, self._session = model, folder, session
        self._load, self._tell, self._taught = load, tell, taught or {}
        self._encoders: dict[tuple[str, str], Encoder] = {}
        self._corpora: dict[tuple[Any, ...], Corpus] = {}
        self._work: Mapping[type, Callable[[Any, Carried], str]] = {
            Teach: self._teach, Ask: self._ask, Join: self._join,
        }  # fmt: skip

    def carry_out(self, plan: Plan) -> Carried:
        """Do all steps; one that the model or the data cannot give is told and left out."""
        carried = Carried()
        for step in plan.steps:
            lacking = [key for key in step.needs if not carried.has(key)]
            if lacking:
                self._leave(step, carried, f"needs {', '.join(lacking)}, which was not run")
                continue
            started = time.monotonic()
            try:
                status = self._work[type(step)](step, carried)
            except _LEFT_OUT as error:
                self._leave(step, carried, error.problem)
                continue
            except JobError as error:
                carried.failed.append(step.key)
                self._leave(step, carried, error.problem, FAILED)
                continue
            except (InterruptedRunError, KeyboardInterrupt) as stopped:
                raise self._interrupted(stopped, carried, plan) from None
            spent = f"{time.monotonic() - started:.0f} s" if status == DONE else ""
            self._tell(step, status, spent)
        return carried

    def _leave(self, step: Step, carried: Carried, reason: str, status: str = NOT_RUN) -> None:
        carried.reasons[step.key] = reason
        self._tell(step, status, reason)

    def _interrupted(
        self, stopped: BaseException, carried: Carried, plan: Plan
    ) -> InterruptedRunError:
        finished = len(carried.results) + len(carried.models)
        problem = getattr(stopped, "problem", "Interrupted.")
        again = self._session.command
        return InterruptedRunError(
            f"{problem} {finished} of {len(plan.steps)} steps are finished and kept.",
            hint=f"Go on with: {again}" if again else "The same call again does only the rest.",
        )

    # Steps -------------------------------------------------------------------------------------

    def _teach(self, step: Teach, carried: Carried) -> str:
        from bertology.train.checkpoint import read_record
        from bertology.train.tuning import make_tuned

        if (there := self._taught.get(step.key)) is not None:
            carried.models[step.key] = read_record(there) or {}
            carried.folders[step.key] = str(there.resolve())
            return GIVEN
        job = self._tuning(step)
        short = Path(self._model.rstrip("/")).name
        # A folder for each way of teaching: other wishes do not meet the models of these.
        place = self._folder / "models" / f"{step.data.name}-{job.identity[:8]}" / f"{short}-tuned"
        heard = _Heard(self._session.progress, lambda: self._tell(step, RUNNING, ""))
        try:
            record = make_tuned(place, job, progress=lambda s: heard.training(step.key, s))
        finally:
            heard.stop()
        carried.models[step.key] = record
        carried.folders[step.key] = str(place.resolve())
        return DONE if heard.started else CACHED

    def _tuning(self, step: Teach) -> TuningJob:
        from bertology.train.finetune import FinetuneSettings
        from bertology.train.starts import default_rate, find_start
        from bertology.train.tuning import TuningJob, check_apart

        encoder, start = self._encoder(self._model, "base"), find_start("pretrained")
        train, validation = self._train(step.data), self._corpus(step.data)
        check_apart(train, validation)
        rate = step.learning_rate or default_rate(start, encoder.shape.hidden)
        settings = FinetuneSettings(
            epochs=step.epochs, batch_size=step.batch_size, learning_rate=rate, seed=step.seed
        )
        return TuningJob(encoder, train, validation, start, settings)

    def _ask(self, step: Ask, carried: Carried) -> str:
        kind = STUDIES.get(step.study)
        head, where = kind.needs.head, self._model
        if step.of is not None:
            where = carried.folders[step.of]
        encoder, others = self._encoder(where, head), {}
        parameters = dict(step.parameters)
        if step.compared is not None:
            parameters[step.compared] = self._model
            others[step.compared] = self._encoder(self._model, head)
        heard = _Heard(self._session.progress, lambda: self._tell(step, RUNNING, ""))
        session = replace(self._session, progress=heard)
        carried.results[step.key] = session.run(
            step.study, kind(**parameters), encoder, self._corpus(step.data), others=others
        )
        return DONE if heard.started else CACHED

    def _join(self, step: Join, carried: Carried) -> str:
        from bertology.studies.joins.head_profile import head_profile
        from bertology.studies.joins.task_comparison import task_comparison

        there = [carried.results[k] for k in step.results if k in carried.results]
        result: Result = (
            task_comparison(there) if step.study == "task-comparison" else head_profile(there)
        )
        carried.results[step.key] = result
        if self._session.store.has(result.provenance):
            return CACHED
        self._session.store.save(result)
        return DONE

    # Materials ---------------------------------------------------------------------------------

    def _encoder(self, where: str, head: str) -> Encoder:
        if (where, head) not in self._encoders:
            # The model itself stays; of those that were taught, only the one in use.
            stale = [k for k in self._encoders if k[0] not in (where, self._model)]
            for key in stale:
                del self._encoders[key]
            self._encoders[where, head] = self._load(where, head)
        return self._encoders[where, head]

    def _corpus(self, data: Data) -> Corpus:
        return self._loaded(data, data.split, data.limit)

    def _train(self, data: Data) -> Corpus:
        return self._loaded(data, data.train_split, data.train_limit)

    def _loaded(self, data: Data, split: str, limit: int | None) -> Corpus:
        key = (data.name, split, limit, data.root)
        if key not in self._corpora:
            # Only the data at hand: the next step is mostly over the same.
            self._corpora = {k: c for k, c in self._corpora.items() if k[0] == data.name}
            self._corpora[key] = load_corpus(data.name, split=split, limit=limit, root=data.root)
        return self._corpora[key]


class _Heard:
    """Passes progress on, and knows whether there was any: a cached step makes none."""

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
        """The same for a training, which tells how far it is."""
        if not self.started:
            self.start(title, step.total)
        self.advance(step.done - self._done)
        self._done = step.done
