"""A run of one study on one model and corpus: plan, measure, conclude, store."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, cast

from bertology.data.languages import in_languages
from bertology.errors import BertologyError, InterruptedRunError, JobError, ParameterError
from bertology.parameters import KEEP_PARTS, size_of
from bertology.quiet import is_verbose
from bertology.results.measured import Measurement, PartLostError, StoredPart, measurement_key
from bertology.run.at_hand import ModelAtHand
from bertology.run.before import find_before, recorded_before
from bertology.run.concluding import conclude
from bertology.run.engine import Engine, Inputs, JobOutcome, Status
from bertology.run.loading import as_needed, describe_model, notes_on
from bertology.run.local import LocalEngine
from bertology.run.others import check_others, resolve_others
from bertology.run.plan import Job, ModelReference, Resources, StoreReference, target_of
from bertology.run.progress import NoProgress, Progress
from bertology.run.requirements import check_needs
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
class _Found:
    """A result that needed no model, and what was said of its model and corpus."""

    result: Result
    notes: tuple[str, ...]


def _loaded(model: Encoder | ModelAtHand) -> Encoder:
    return model.encoder() if isinstance(model, ModelAtHand) else model


def _at_hand(
    study: Study,
    model: Encoder | ModelAtHand,
    given: Mapping[str, Encoder | ModelAtHand],
    known: Mapping[str, Encoder],
) -> list[ModelAtHand]:
    """The models of a run that were loaded by name, which the store may know from now on."""
    if not isinstance(model, ModelAtHand):
        return []
    found = [model, *(other for other in given.values() if isinstance(other, ModelAtHand))]
    for parameter, encoder in known.items():
        if parameter not in given:
            found.append(model.beside(str(getattr(study, parameter))).loaded(encoder))
    return found


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
    keep_parts: int | None = size_of(KEEP_PARTS)
    command: str | None = None  # the command line that started the run, if there was one

    def run(
        self,
        name: str,
        study: Study,
        model: Encoder | ModelAtHand,
        corpus: Corpus | None,
        *,
        others: Mapping[str, Encoder | ModelAtHand] | None = None,
        notify: Callable[[str], None] = lambda note: None,
    ) -> Result:
        """The result of `study`: from the store, or measured now and then stored.

        `others` are the models that the study's parameters name; those not given are loaded. A
        model at hand is loaded only if something must be measured. `notify` hears what limits the
        result.
        """
        given = others or {}
        if isinstance(model, ModelAtHand):
            found = None if self.force else self._without_model(name, study, model, corpus, given)
            if found is not None:
                for note in found.notes:
                    notify(note)
                return found.result
        encoder = _loaded(model)
        models = {parameter: _loaded(other) for parameter, other in given.items()}
        if isinstance(model, ModelAtHand):
            study, models = model.source.load_others(study, encoder, models)
        labels = check_needs(name, study, encoder, corpus)
        notes = list(notes_on(study, encoder, corpus, labels))
        for note in notes:
            notify(note)
        encoder = as_needed(study, encoder)
        study, known = find_before(study, encoder, models)
        loaded = _at_hand(study, model, given, known)
        resolved = resolve_others(study, encoder, known).items()
        used = {parameter: as_needed(study, other) for parameter, other in resolved}
        inputs = Inputs(encoder, corpus, self.store, used, tuple(notes))
        check_others(name, study, encoder, inputs.others, corpus)
        about = describe_model(encoder)
        beside = {parameter: describe_model(other) for parameter, other in inputs.others.items()}
        provenance = self._provenance(name, study, about, beside, corpus, labels)
        stored = not self.force and self.store.has(provenance)
        make = self._stored if stored else self._made
        result = make(provenance, study, inputs)
        for at_hand in loaded:
            at_hand.remember()
        return result

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
        return measured.finish(
            Measurement(key, study.measured_version, parameters, about, found, notes=inputs.notes)
        )

    def _without_model(
        self,
        name: str,
        study: Study,
        model: ModelAtHand,
        corpus: Corpus | None,
        others: Mapping[str, Encoder | ModelAtHand],
    ) -> _Found | None:
        """The result that is stored, or concluded from what is; None if a model must be loaded."""
        about, named = model.known(), self._others_known(study, model, others)
        if about is None or named is None:
            return None
        study, known = named
        provenance = self._provenance(name, study, about, known, corpus)
        parameters = study.measuring_parameters
        key = measurement_key(study.measured_version, parameters, provenance)
        record = self.store.measured.find(key)
        if record is None:
            return None  # from before measurements were kept, or nothing is measured
        if provenance.corpus is not None and "labels" in (record.provenance.corpus or {}):
            labels = (record.provenance.corpus or {})["labels"]
            provenance = replace(provenance, corpus={**provenance.corpus, "labels": labels})
        if self.store.has(provenance):
            return _Found(self.store.load(provenance, study.result_type), record.notes)
        parts = [part.name for part in record.parts]
        if not record.kept or len(self.store.measured.sound_parts(key, parts)) < len(parts):
            return None
        self.progress.start(name, 1)
        try:
            found = _Found(self._concluded(provenance, study, record), record.notes)
            self.progress.advance(1)
            return found
        except PartLostError:
            return None
        finally:
            self.progress.stop()

    def _others_known(
        self, study: Study, model: ModelAtHand, given: Mapping[str, Encoder | ModelAtHand]
    ) -> tuple[Study, dict[str, dict[str, Any]]] | None:
        """The study with the model before named, and what is known of its other models."""
        found: dict[str, dict[str, Any]] = {}
        for f in fields(study):
            if not f.metadata.get("model"):
                continue
            value = getattr(study, f.name)
            name, before = str(value), f.metadata.get("before") and not value
            if before and f.name not in given:
                try:
                    name, fingerprint = recorded_before(study, f.name, model.source.name)
                except ParameterError:
                    if f.metadata["before"] == "if known":
                        continue
                    return None
            other = given.get(f.name) or (model.beside(name) if name else None)
            if other is None:
                continue
            about = other.known() if isinstance(other, ModelAtHand) else describe_model(other)
            if about is None:
                return None
            if before and f.name not in given:
                if about["fingerprint"] != fingerprint:
                    return None
                study = replace(study, **{f.name: name})
            found[f.name] = about
        return study, found

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

    def _provenance(
        self,
        name: str,
        study: Study,
        model: dict[str, Any],
        others: dict[str, dict[str, Any]],
        corpus: Corpus | None,
        labels: dict[str, object] | None = None,
    ) -> Provenance:
        from bertology.results.provenance import Provenance

        parameters, shown = study.parameters, None
        given: Any = corpus  # a study of weights alone has none
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
            shown |= in_languages(corpus)
            if labels is not None:
                shown["labels"] = labels
        return Provenance(
            study=name,
            study_version=study.version,
            parameters=parameters,
            model=model,
            corpus=shown,
            others=others,
            ingredients=study.measuring().ingredients(given),
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
