"""The engine on a Ray cluster, or on a Ray that is started on this machine."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from types import ModuleType

from bertology.errors import CapabilityError, MissingExtraError
from bertology.quiet import hush, is_verbose
from bertology.run.engine import Advance, EndMessage, Inputs, JobOutcome, Status
from bertology.run.plan import Job, ModelReference
from bertology.run.worker import attempt


@dataclass(frozen=True)
class RayEngine:
    """Each job is a Ray task, with the job's resources; a task may be run again.

    `address` is a cluster's (`"auto"`, `"ray://host:10001"`); without one the environment's
    RAY_ADDRESS is used, else a Ray with one CPU per worker is started here, and stopped at the end.
    A Ray that already runs in this process is used and left running.
    """

    workers: int = 1
    retries: int = 2
    address: str | None = None

    def run(
        self, jobs: Sequence[Job], inputs: Inputs, advance: Advance
    ) -> Generator[JobOutcome, None, None]:
        """Run the jobs; see `Engine.run`."""
        for job in jobs:
            job.check_shippable()
        hush()
        try:
            ray = import_module("ray")
        except ImportError as error:
            raise MissingExtraError("ray", needed_for="The Ray engine") from error
        ours = not ray.is_initialized()
        if ours:
            self._connect(ray)
        try:
            yield from self._follow(ray, jobs, advance)
        finally:
            if ours:
                ray.shutdown()

    def _connect(self, ray: ModuleType) -> None:
        quiet = not is_verbose()
        options: dict[str, object] = {
            "log_to_driver": not quiet,
            "logging_level": logging.ERROR if quiet else logging.INFO,
        }
        address = self.address or os.environ.get("RAY_ADDRESS")
        if not address:
            paths = {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
            ray.init(
                address="local",
                num_cpus=max(self.workers, 1),
                include_dashboard=False,
                runtime_env={"env_vars": paths},
                **options,
            )
            return
        try:
            ray.init(address=address, **options)
        except ConnectionError as error:
            raise CapabilityError(
                f"No Ray cluster answers at {address!r}.",
                hint="Start one with: ray start --head, or unset RAY_ADDRESS to use this machine.",
            ) from error

    def _follow(
        self, ray: ModuleType, jobs: Sequence[Job], advance: Advance
    ) -> Generator[JobOutcome, None, None]:
        task = ray.remote(_do)
        _check_feasible(ray, jobs)
        running = {
            task.options(max_retries=self.retries, **_options(job)).remote(
                job.to_json(), self.retries, os.getcwd(), sys.path
            ): job
            for job in jobs
        }
        try:
            while running:
                # The timeout lets Ctrl-C through.
                ready, _ = ray.wait(list(running), num_returns=1, timeout=0.5)
                for reference in ready:
                    job = running.pop(reference)
                    outcome = self._outcome(ray, job, reference)
                    if outcome.status is not Status.FAILED:
                        advance(job.steps)
                    yield outcome
        finally:
            for reference in running:
                ray.cancel(reference, force=True)

    def _outcome(self, ray: ModuleType, job: Job, reference: object) -> JobOutcome:
        try:
            message = ray.get(reference)
            return JobOutcome.from_message(job, message, attempts=message["attempts"])
        except ray.exceptions.RayError as error:
            # Ray has already tried again; this is its last error.
            text = f"its Ray worker died ({type(error).__name__})"
            return JobOutcome(job, Status.FAILED, text, None, self.retries + 1, str(error))


def _do(text: str, retries: int, folder: str, path: Sequence[str]) -> EndMessage:
    hush()
    if os.path.isdir(folder):  # on the same machine, relative paths stay valid
        os.chdir(folder)
        sys.path += [p for p in path if p not in sys.path]  # and studies can be imported
    job = _on_given_gpu(Job.from_json(text))
    message: EndMessage = {"status": Status.FAILED.value}
    for tried in range(1, retries + 2):
        message = {**attempt(job, lambda steps: None), "attempts": tried}
        # Ray tries again after a crash; after a temporary error we must.
        if not message.get("transient"):
            break
    return message


def _on_given_gpu(job: Job) -> Job:
    # Ray shows a worker only the GPUs it was given, and numbers them from 0.
    if not (job.model and str(job.model.get("device")).startswith("cuda")):
        return job
    here = {"device": "cuda"}
    others: dict[str, ModelReference] = {
        name: {**o, "model": {**(o["model"] or {}), **here}} for name, o in job.others.items()
    }
    return replace(job, model={**job.model, **here}, others=others)


def _options(job: Job) -> dict[str, object]:
    need = job.resources
    options: dict[str, object] = {"num_cpus": need.cpus, "num_gpus": need.gpus}
    if need.memory is not None:
        options["memory"] = need.memory
    return options


def _check_feasible(ray: ModuleType, jobs: Sequence[Job]) -> None:
    # Ray would wait for ever for resources that a single machine does not have. A cluster may
    # grow, so nothing is checked there.
    if len(ray.nodes()) != 1:
        return
    have = ray.cluster_resources()
    for job in jobs:
        need = job.resources
        for name, wanted in (("CPU", need.cpus), ("GPU", need.gpus), ("memory", need.memory)):
            if wanted and wanted > have.get(name, 0):
                raise CapabilityError(
                    f"Part {job.part!r} needs {wanted} {name}; this Ray has "
                    f"{have.get(name, 0):.0f}.",
                    hint="Use a larger cluster, or --engine local.",
                )
