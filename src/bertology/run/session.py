"""One study, one model, one corpus: planned, carried out, concluded and kept."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from bertology.errors import (
    BertologyError,
    InterruptedRunError,
    JobError,
)
from bertology.quiet import is_verbose
from bertology.run.cut_texts import cut_texts
from bertology.run.describing import described
from bertology.run.engine import Engine, JobOutcome, Materials, Status
from bertology.run.kept_parts import DoneElsewhereError, KeptParts
from bertology.run.local import LocalEngine
from bertology.run.others import check_others, resolve_others
from bertology.run.plan import Job, Resources, target_of
from bertology.run.progress import Progress, Silence
from bertology.run.requirements import check_needs
from bertology.studies.study import Context, Study

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.results.provenance import Provenance
    from bertology.results.result import Result
    from bertology.results.store import Store

__all__ = ["Session"]

_MARK = "_started"
_OVERHEAD = 1 << 30  # bytes that Python, torch and a batch take beside the weights


@dataclass(frozen=True)
class Session:
    """How runs are carried out: where results are kept, by which engine, heard by whom.

    Nothing in here changes a number. `force` sets the stored result aside and does the work anew.
    """

    store: Store
    engine: Engine = field(default_factory=LocalEngine)
    progress: Progress = field(default_factory=Silence)
    force: bool = False
    batch_tokens: int | None = None  # in one batch; None: as suits the study and the device
    cpus: int = 1  # that one job may use
    command: str | None = None  # the command line that asked for this, if one did

    def run(
        self,
        name: str,
        study: Study,
        encoder: Encoder,
        corpus: Corpus | None,
        *,
        others: Mapping[str, Encoder] | None = None,
    ) -> Result:
        """The result of `study`: from the store, or measured now and put there.

        `others` are models that the study's parameters name; those not given are loaded.
        """
        check_needs(name, study, encoder, corpus)
        materials = Materials(encoder, corpus, self.store, resolve_others(study, encoder, others))
        check_others(name, study, encoder, materials.others, corpus)
        started = time.monotonic()
        provenance = self._provenance(name, study, materials)
        if not self.force and self.store.has(provenance):
            return self._stored(provenance, study, materials)
        self._begin(provenance)
        given: Any = corpus  # a study of weights alone is given none
        parts = list(study.plan(encoder, given))
        earlier = {part for part in parts if self.store.has_part(provenance, part)}
        jobs = [
            self._job(provenance, study, materials, part) for part in parts if part not in earlier
        ]
        try:
            self._carry_out(name, jobs, materials)
            measured = KeptParts(self.store, provenance, parts)
            # What an earlier run spent on the parts that it left.
            spent = time.monotonic() - started + sum(map(measured.seconds, earlier))
            cut = cut_texts(study, encoder, corpus)
            told = replace(provenance, duration=spent, cut=cut)
            result: Result = study.conclude(measured, told)
            self.store.save(result)
        except KeyboardInterrupt:
            raise self._interrupted(provenance, parts) from None
        except DoneElsewhereError:
            return self._stored(provenance, study, materials)
        self.store.delete_parts(provenance)
        return result

    def _stored(self, provenance: Provenance, study: Study, materials: Materials) -> Result:
        result = self.store.load(provenance, study.result_type)
        if result.provenance.cut is None:  # a result from before texts were counted
            cut = cut_texts(study, materials.encoder, materials.corpus)
            result.provenance = replace(result.provenance, cut=cut)
        return result

    def _begin(self, provenance: Provenance) -> None:
        """Leave a mark beside the parts: proof, before any work, that the store can be written."""
        import xarray as xr

        if self.force and not self._is_forced(provenance):
            # Parts of an unforced run are what `force` means not to trust; those of a forced
            # run that was interrupted are kept, so that the same command resumes it.
            self.store.delete_parts(provenance)
        self.store.save_part(provenance, _MARK, xr.Dataset(attrs={"forced": int(self.force)}))

    def _is_forced(self, provenance: Provenance) -> bool:
        if not self.store.has_part(provenance, _MARK):
            return False
        return bool(self.store.load_part(provenance, _MARK).attrs.get("forced"))

    def _provenance(self, name: str, study: Study, materials: Materials) -> Provenance:
        from bertology.results.provenance import Provenance

        parameters, corpus = study.parameters, materials.corpus
        shown = None
        if corpus is not None:
            shown = {
                "name": corpus.name,
                "fingerprint": corpus.fingerprint,
                "size": len(corpus),
                "split": corpus.split,
                "pair": "text_b" in corpus.fields,
            }
        return Provenance(
            study=name,
            study_version=study.version,
            parameters=parameters,
            model=described(materials.encoder),
            corpus=shown,
            others={name: described(other) for name, other in materials.others.items()},
            ingredients=study.ingredients(corpus),
            seed=parameters.get("seed"),
            command=self.command,
        )

    def _job(self, provenance: Provenance, study: Study, materials: Materials, part: str) -> Job:
        encoder, others = materials.encoder, materials.others
        corpus: Any = materials.corpus  # a study of weights alone is given none
        return Job(
            study=provenance.study,
            target=target_of(type(study)),
            version=study.version,
            parameters=study.parameters,
            part=part,
            result=provenance.key,
            **_reference(encoder),
            others={name: _reference(other) for name, other in others.items()},
            corpus=dict(corpus.origin) if corpus is not None else None,
            corpus_fingerprint=corpus.fingerprint if corpus is not None else None,
            store=_store_spec(self.store),
            steps=study.steps(part, encoder.shape, corpus),
            batch_tokens=self.tokens_in_a_batch(study, encoder),
            resources=_resources([encoder, *others.values()], self.cpus),
        )

    def tokens_in_a_batch(self, study: Study, encoder: Encoder) -> int:
        """As many as were asked for, or as suit the study on the model's device."""
        on_cpu = encoder.device.type == "cpu"
        suits = Context.batch_tokens if on_cpu else study.tokens_on_gpu(encoder.shape)
        return self.batch_tokens or suits

    def _carry_out(self, name: str, jobs: Sequence[Job], materials: Materials) -> None:
        if not jobs:
            return
        failed: list[JobOutcome] = []
        self.progress.start(name, sum(job.steps for job in jobs))
        try:
            outcomes = self.engine.run(jobs, materials, self.progress.advance)
            # Closing the outcomes stops the workers, whatever ends this loop.
            with closing(outcomes):
                for outcome in outcomes:
                    if isinstance(outcome.cause, BertologyError):
                        # The user's to mend, and every other part would meet the same.
                        raise outcome.cause
                    if outcome.status is Status.FAILED:
                        failed.append(outcome)
        finally:
            self.progress.stop()
        if failed:
            raise _job_error(name, failed, len(jobs)) from failed[0].cause

    def _interrupted(self, provenance: Provenance, parts: Sequence[str]) -> InterruptedRunError:
        done = sum(self.store.has_part(provenance, part) for part in parts)
        if self.command is None:
            hint = "To continue, call bt.run(...) again with the same store."
        else:
            again = "Continue with" if done else "Start again with"
            hint = f"{again}: {self.command}"
        return InterruptedRunError(
            f"Interrupted. {done} of {len(parts)} parts of {provenance.study!r} are kept.",
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
        hint="The parts that were finished are kept; the same command again does only the rest. "
        "If memory ran out, use fewer --workers or smaller --batch-tokens.",
    )


def _store_spec(store: Store) -> dict[str, Any] | None:
    """How another process opens the same store; None for one that lives in this one's memory."""
    if store.url.startswith("memory:"):
        return None
    # Another process may stand in another folder.
    url = store.url if "://" in store.url else os.path.abspath(os.path.expanduser(store.url))
    return {"url": url, "options": store.options}


def _reference(encoder: Encoder) -> dict[str, Any]:
    """How another process loads the same model, and knows that it is the same."""
    spec = encoder.spec
    return {
        "model": None if spec is None else {**spec, "device": str(encoder.device)},
        "model_fingerprint": encoder.fingerprint,
    }


def _resources(encoders: Sequence[Encoder], cpus: int) -> Resources:
    weights = sum(p.numel() * p.element_size() for e in encoders for p in e.model.parameters())
    gpus = int(encoders[0].device.type == "cuda")
    # While a checkpoint is read its weights are there twice.
    return Resources(cpus=cpus, gpus=gpus, memory=2 * weights + _OVERHEAD)
