"""The engine on this machine: in this process, or in N worker processes."""

from __future__ import annotations

import os
import traceback
from collections.abc import Generator, Sequence
from dataclasses import dataclass

from bertology.errors import ParameterError
from bertology.run.engine import Advance, Inputs, JobOutcome, Status, message_of
from bertology.run.plan import Job
from bertology.run.pool import Pool
from bertology.run.worker import perform


@dataclass(frozen=True)
class LocalEngine:
    """`workers` 0 or 1: one job after another in this process. 2 or more: so many processes.

    A worker that dies is replaced and its job is tried again, `retries` times at most; a job that
    raises an error is tried again only if the error may be temporary (an OSError).
    """

    workers: int = 1
    retries: int = 2

    def __post_init__(self) -> None:
        if self.workers < 0:
            raise ParameterError("workers", "the local engine", "be 0 or more", self.workers)
        if self.retries < 0:
            raise ParameterError("retries", "the local engine", "be 0 or more", self.retries)

    def run(
        self, jobs: Sequence[Job], inputs: Inputs, advance: Advance
    ) -> Generator[JobOutcome, None, None]:
        """Run the jobs; see `Engine.run`."""
        if self.workers <= 1:
            for job in jobs:
                yield self._run_here(job, inputs, advance)
            return
        for job in jobs:
            job.check_shippable()
        workers = min(self.workers, len(jobs))
        threads = max(1, cores() // max(1, workers))
        yield from Pool(workers, retries=self.retries, threads=threads).run(jobs, advance)

    def _run_here(self, job: Job, inputs: Inputs, advance: Advance) -> JobOutcome:
        for attempts in range(1, self.retries + 2):
            counted = _Counted(advance)
            try:
                status = perform(job, inputs, counted)
            except OSError as error:
                failure: Exception = error
                counted.undo()
            except Exception as error:
                failure = error
                break
            else:
                advance(job.steps - counted.steps)
                return JobOutcome(job, status, attempts=attempts)
        message = message_of(failure, trace="".join(traceback.format_exception(failure)))
        return JobOutcome(
            job, Status.FAILED, message["error"], failure, attempts, message.get("trace")
        )


class _Counted:
    """Reports steps and counts them."""

    def __init__(self, advance: Advance) -> None:
        self._advance, self.steps = advance, 0

    def __call__(self, steps: int) -> None:
        self.steps += steps
        self._advance(steps)

    def undo(self) -> None:
        self._advance(-self.steps)


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
