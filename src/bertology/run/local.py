"""The engine on this machine: in this process, or in N worker processes."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

from bertology.errors import ParameterError
from bertology.quiet import is_verbose
from bertology.run.engine import (
    Advance,
    EndMessage,
    Inputs,
    JobOutcome,
    Status,
    StepsMessage,
    message_of,
)
from bertology.run.plan import Job
from bertology.run.worker import perform

_Message = tuple["_Worker", StepsMessage | EndMessage | None]
_GRACE = 5.0  # seconds that a worker has to clean up after being told to stop


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


class _Worker:
    """One process, its current job, and how many steps of the job it has reported."""

    def __init__(self, inbox: queue.Queue[_Message], *, threads: int) -> None:
        self.job: Job | None = None
        self.steps = 0
        # Kept for the message if the process dies; with -v it is printed at once.
        self._errors = None if is_verbose() else _scratch()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bertology.run.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=_environment(threads),
            text=True,
            encoding="utf-8",
        )
        self._reader = threading.Thread(target=self._read, args=(inbox,), daemon=True)
        self._reader.start()

    def _read(self, inbox: queue.Queue[_Message]) -> None:
        assert self.process.stdout is not None  # it was opened as a pipe
        for line in self.process.stdout:
            # A worker that is killed while it writes leaves half a line, which is no message.
            if line.endswith("\n"):
                inbox.put((self, json.loads(line)))
        inbox.put((self, None))

    def give(self, job: Job) -> None:
        """Send a job. If the process has died already, its reader thread notices."""
        self.job, self.steps = job, 0
        assert self.process.stdin is not None  # it was opened as a pipe
        with suppress(OSError):
            self.process.stdin.write(job.to_json() + "\n")
            self.process.stdin.flush()

    def how_it_ended(self) -> str:
        """How the process ended, and the end of what it wrote to standard error."""
        code = self.process.wait()
        if code < 0:
            text = f"killed by signal {-code} ({signal.Signals(-code).name})"
            if -code == signal.SIGKILL:
                text += ", often because there was too little memory"
        else:
            text = f"exit code {code}"
        if self._errors is not None:
            self._errors.seek(0)
            tail = self._errors.read().decode(errors="replace").strip().splitlines()[-1:]
            text += "".join(f": {line}" for line in tail)
        return text

    def dismiss(self) -> None:
        """No more jobs: the process ends by itself when it has read the last one."""
        assert self.process.stdin is not None  # it was opened as a pipe
        with suppress(OSError):
            self.process.stdin.close()

    def close(self) -> None:
        """Wait until the process has ended, and close its files."""
        self.dismiss()
        try:
            self.process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None  # it was opened as a pipe
        self.process.stdout.close()
        if self._errors is not None:
            self._errors.close()


class Pool:
    """Runs jobs in `workers` processes; replaces a dead one and tries its job again."""

    def __init__(self, workers: int, *, retries: int, threads: int) -> None:
        self._size, self._retries, self._threads = workers, retries, threads
        self._inbox: queue.Queue[_Message] = queue.Queue()
        self._workers: set[_Worker] = set()
        self._retired: list[_Worker] = []
        self._attempts: dict[str, int] = {}

    def run(self, jobs: Sequence[Job], advance: Advance) -> Generator[JobOutcome, None, None]:
        """Yield outcomes as jobs end; stop all workers when done, closed or interrupted."""
        waiting = deque(jobs)
        try:
            for _ in range(min(self._size, len(waiting))):
                self._start(waiting.popleft())
            while self._workers:
                worker, message = self._receive()
                if worker not in self._workers:
                    continue
                if message is None:
                    yield from self._handle_death(worker, waiting, advance)
                elif "steps" in message:
                    worker.steps += message["steps"]
                    advance(message["steps"])
                else:
                    yield from self._conclude(worker, message, waiting, advance)
        finally:
            self._stop()

    def _receive(self) -> _Message:
        while True:
            try:
                # The timeout lets Ctrl-C through on every platform.
                return self._inbox.get(timeout=0.5)
            except queue.Empty:
                continue

    def _start(self, job: Job) -> None:
        worker = _Worker(self._inbox, threads=self._threads)
        self._workers.add(worker)
        self._give(worker, job)

    def _give(self, worker: _Worker, job: Job) -> None:
        self._attempts[job.part] = self._attempts.get(job.part, 0) + 1
        worker.give(job)

    def _conclude(
        self, worker: _Worker, message: EndMessage, waiting: deque[Job], advance: Advance
    ) -> Iterator[JobOutcome]:
        job = worker.job
        assert job is not None  # a worker sends messages only about its job
        attempts = self._attempts[job.part]
        if message.get("transient") and attempts <= self._retries:
            advance(-worker.steps)
            self._give(worker, job)
            return
        outcome = JobOutcome.from_message(job, message, attempts=attempts)
        if outcome.status is not Status.FAILED:
            advance(job.steps - worker.steps)
        if waiting:
            self._give(worker, waiting.popleft())
        else:
            self._retire(worker)
        yield outcome

    def _handle_death(
        self, worker: _Worker, waiting: deque[Job], advance: Advance
    ) -> Iterator[JobOutcome]:
        job, words = worker.job, worker.how_it_ended()
        self._retire(worker)
        assert job is not None  # workers are retired as soon as there is no job for them
        advance(-worker.steps)
        attempts = self._attempts[job.part]
        if attempts <= self._retries:
            self._start(job)
            return
        if waiting:
            self._start(waiting.popleft())
        yield JobOutcome(job, Status.FAILED, f"its worker process died ({words})", None, attempts)

    def _retire(self, worker: _Worker) -> None:
        self._workers.discard(worker)
        self._retired.append(worker)
        worker.dismiss()

    def _stop(self) -> None:
        for worker in self._workers:
            worker.process.terminate()
        for worker in [*self._workers, *self._retired]:
            worker.close()
        self._workers.clear()
        self._retired.clear()


def _scratch() -> IO[bytes]:
    return tempfile.TemporaryFile()


def _environment(threads: int) -> dict[str, str]:
    paths = [p for p in sys.path if p]  # "" would mean another folder in another process
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*paths, os.getcwd()] if "" in sys.path else paths),
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
    }
