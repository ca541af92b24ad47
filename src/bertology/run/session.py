"""A run of one study on one model and corpus: plan, measure, conclude, store."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from bertology.errors import (
    BertologyError,
    InterruptedRunError,
    JobError,
)
from bertology.quiet import is_verbose
from bertology.results.measured import Measurement, PartLostError, StoredPart, measurement_key
from bertology.run.before import find_before
from bertology.run.concluding import KEEP_PARTS, conclude
from bertology.run.engine import Engine, Inputs, JobOutcome, Status
from bertology.run.loading import as_needed, describe_model
from bertology.run.local import LocalEngine
from bertology.run.others import check_others, resolve_others
from bertology.run.plan import Job, ModelReference, Resources, StoreReference, target_of
from bertology.run.progress import NoProgress, Progress
from bertology.run.requirements import check_needs, label_match
from bertology.run.stored_parts import StoredParts
from bertology.run.text_counts import text_counts
from bertology.studies.study import Context, Study

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.results.provenance import Provenance
    from bertology.results.result import Result
    from bertology.results.store import Store

_TRIES = 3  # to conclude, where parts are lost meanwhile
_OVERHEAD = 1 << 30  # bytes for Python, torch and a batch, in addition to the weights


@dataclass(frozen=True)
class Session:
    """How studies are run: the store for results, the engine, the progress bar.

    Nothing in here changes a number. With `force` a stored result is computed again. Parts of more
    than `keep_parts` bytes are not kept after the conclusion; None: all are.
    """

    store: Store
    engine: Engine = field(default_factory=LocalEngine)
    progress: Progress = field(default_factory=NoProgress)
    force: bool = False
    batch_tokens: int | None = None  # in one batch; None: chosen for the study and the device
    cpus: int = 1  # for one job
    keep_parts: int | None = KEEP_PARTS
    command: str | None = None  # the command line that started the run, if there was one

    def run(
        self,
        name: str,
        study: Study,
        encoder: Encoder,
        corpus: Corpus | None,
        *,
        others: Mapping[str, Encoder] | None = None,
    ) -> Result:
        """The result of `study`: from the store, or measured now and then stored.

        `others` are the models that the study's parameters name; those not given are loaded.
        """
        check_needs(name, study, encoder, corpus)
        encoder = as_needed(study, encoder)
        study, known = find_before(study, encoder, others or {})
        found = resolve_others(study, encoder, known).items()
        others = {parameter: as_needed(study, other) for parameter, other in found}
        inputs = Inputs(encoder, corpus, self.store, others)
        check_others(name, study, encoder, inputs.others, corpus)
        provenance = self._provenance(name, study, inputs)
        if not self.force and self.store.has(provenance):
            return self._stored(provenance, study, inputs)
        return self._made(provenance, study, inputs)

    def _made(self, provenance: Provenance, study: Study, inputs: Inputs) -> Result:
        """The result of what is measured now, or was before."""
        for _ in range(_TRIES):
            try:
                found = self._measured(provenance, study, inputs)
                return self._concluded(provenance, study, found)
            except PartLostError as error:
                if not self.force and self.store.has(provenance):
                    # Another process with the same store has finished the run meanwhile.
                    return self._stored(provenance, study, inputs)
                lost = error
        raise lost

    def _concluded(self, provenance: Provenance, study: Study, found: Measurement) -> Result:
        try:
            return conclude(self.store, study, found, provenance, keep=self.keep_parts)
        except KeyboardInterrupt:
            parts = [part.name for part in found.parts]
            raise self._interrupted(provenance.study, found.key, parts) from None

    def _measured(self, provenance: Provenance, study: Study, inputs: Inputs) -> Measurement:
        """What the study measures: as it lies in the store, or measured as far as it does not."""
        measured, only = self.store.measured, study.measuring()
        parameters = study.measuring_parameters
        key = measurement_key(study.measured_version, parameters, provenance)
        started, given = time.monotonic(), cast("Corpus", inputs.corpus)  # of weights alone: None
        record = None if self.force else measured.find(key)
        if record is None or not record.kept:
            measured.begin(key, provenance.study, force=self.force)
            record = measured.find(key)  # of an interrupted run with `force`
        if record is not None and record.kept:
            # On another device parts may have other sizes; those that are here are taken.
            parts = [part.name for part in record.parts]
        else:
            parts, record = list(only.plan(inputs.encoder, given)), None
        sound = measured.sound_parts(key, parts)
        if record is not None and len(sound) == len(parts):
            return record
        jobs = [self._job(provenance, key, study, inputs, p) for p in parts if p not in sound]
        try:
            self._carry_out(provenance.study, jobs, inputs, study.timed_parts)
        except KeyboardInterrupt:
            raise self._interrupted(provenance.study, key, parts) from None
        # Plus the time of an earlier run for the parts that it finished.
        spent = time.monotonic() - started
        spent += sum(map(StoredParts(measured, key, parts).seconds, sound))
        counts = text_counts(only, inputs.encoder, inputs.corpus)
        about = replace(provenance, duration=spent, **counts)
        found = tuple(StoredPart(part, 0, "") for part in parts)
        return measured.finish(Measurement(key, study.measured_version, parameters, about, found))

    def _stored(self, provenance: Provenance, study: Study, inputs: Inputs) -> Result:
        result = self.store.load(provenance, study.result_type)
        if result.provenance.unknown is None:  # a result from before pieces were counted
            counts = text_counts(study, inputs.encoder, inputs.corpus)
            result.provenance = replace(result.provenance, **counts)
        kept, now = result.provenance.corpus or {}, provenance.corpus or {}
        if "labels" in now and "labels" not in kept:  # from before labels were kept
            corpus = {**kept, "labels": now["labels"]}
            result.provenance = replace(result.provenance, corpus=corpus)
        return result

    def _provenance(self, name: str, study: Study, inputs: Inputs) -> Provenance:
        from bertology.results.provenance import Provenance

        parameters, corpus = study.parameters, inputs.corpus
        shown = None
        if corpus is not None:
            shown = {
                "name": corpus.name,
                "fingerprint": corpus.fingerprint,
                "size": len(corpus),
                "split": corpus.split,
                "pair": "text_b" in corpus.fields,
            }
            if corpus.drawn_from is not None:
                shown["drawn_from"] = corpus.drawn_from
            if (labels := label_match(study, inputs.encoder, corpus)) is not None:
                shown["labels"] = labels
        return Provenance(
            study=name,
            study_version=study.version,
            parameters=parameters,
            model=describe_model(inputs.encoder),
            corpus=shown,
            others={name: describe_model(other) for name, other in inputs.others.items()},
            ingredients=study.measuring().ingredients(corpus),
            seed=parameters.get("seed"),
            command=self.command,
        )

    def _job(
        self, provenance: Provenance, key: str, study: Study, inputs: Inputs, part: str
    ) -> Job:
        encoder, others = inputs.encoder, inputs.others
        corpus: Any = inputs.corpus  # a study of weights alone has none
        return Job(
            study=provenance.study,
            target=target_of(type(study)),
            version=study.measured_version,
            parameters=study.measuring_parameters,
            part=part,
            measurement=key,
            **_reference(encoder),
            others={name: _reference(other) for name, other in others.items()},
            corpus=dict(corpus.origin) if corpus is not None else None,
            corpus_fingerprint=corpus.fingerprint if corpus is not None else None,
            store=_store_spec(self.store),
            steps=study.measuring().steps(part, encoder.shape, corpus),
            batch_tokens=self.tokens_per_batch(study, encoder),
            resources=_resources([encoder, *others.values()], self.cpus),
        )

    def tokens_per_batch(self, study: Study, encoder: Encoder) -> int:
        """The number that the user gave, or one that suits the study and the model's device."""
        on_cpu = encoder.device.type == "cpu"
        suits = Context.batch_tokens if on_cpu else study.tokens_on_gpu(encoder.shape)
        return self.batch_tokens or suits

    def _carry_out(
        self, name: str, jobs: Sequence[Job], inputs: Inputs, timed: Collection[str]
    ) -> None:
        if not jobs:
            return
        together = [job for job in jobs if job.part not in timed]
        self.progress.start(name, sum(job.steps for job in jobs))
        try:
            for some in (together, *([job] for job in jobs if job.part in timed)):
                failed = self._failed(some, inputs) if some else []
                if failed:
                    raise _job_error(name, failed, len(jobs)) from failed[0].cause
        finally:
            self.progress.stop()

    def _failed(self, jobs: Sequence[Job], inputs: Inputs) -> list[JobOutcome]:
        failed: list[JobOutcome] = []
        outcomes = self.engine.run(jobs, inputs, self.progress.advance)
        # Closing the outcomes stops the workers, whatever ends this loop.
        with closing(outcomes):
            for outcome in outcomes:
                if isinstance(outcome.cause, BertologyError):
                    # The user can solve it, and every other part would fail in the same way.
                    raise outcome.cause
                if outcome.status is Status.FAILED:
                    failed.append(outcome)
        return failed

    def _interrupted(self, study: str, key: str, parts: Sequence[str]) -> InterruptedRunError:
        done = sum(self.store.measured.has_part(key, part) for part in parts)
        if self.command is None:
            hint = "To continue, call bt.run(...) again with the same store."
        else:
            again = "Continue with" if done else "Start again with"
            hint = f"{again}: {self.command}"
        return InterruptedRunError(
            f"Interrupted. {done} of {len(parts)} parts of {study!r} are kept.",
            hint=hint,
        )


def _job_error(name: str, failed: Sequence[JobOutcome], total: int) -> JobError:
    first = failed[0]
    times = "once" if first.attempts == 1 else f"{first.attempts} times"
    problem = (
        f"{len(failed)} of {total} parts of {name!r} failed. "
        f"Part {first.job.part!r}, tried {times}: {first.error}"
    )
    if first.trace and is_verbose():
        problem += f"\n{first.trace.rstrip()}"
    return JobError(
        problem,
        hint="Finished parts are kept; the same command does only the rest. "
        "If there was too little memory, use fewer --workers or smaller --batch-tokens.",
    )


def _store_spec(store: Store) -> StoreReference | None:
    """How another process opens the same store; None for a store in memory."""
    if store.url.startswith("memory:"):
        return None
    # Another process may have another working directory.
    url = store.url if "://" in store.url else os.path.abspath(os.path.expanduser(store.url))
    return {"url": url, "options": store.options}


def _reference(encoder: Encoder) -> ModelReference:
    """How another process loads the model, and checks that it is the same."""
    spec = encoder.spec
    return {
        "model": None if spec is None else {**spec, "device": str(encoder.device)},
        "model_fingerprint": encoder.fingerprint,
    }


def _resources(encoders: Sequence[Encoder], cpus: int) -> Resources:
    weights = sum(p.numel() * p.element_size() for e in encoders for p in e.model.parameters())
    gpus = int(encoders[0].device.type == "cuda")
    # While a checkpoint is read, its weights are in memory twice.
    return Resources(cpus=cpus, gpus=gpus, memory=2 * weights + _OVERHEAD)
