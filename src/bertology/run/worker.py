"""How a job is done, and the worker process that does one job after another.

`python -m bertology.run.worker` reads jobs from its standard input and reports on its standard
output, one line of JSON each. A worker writes its part to the store itself, so nothing is lost
when the parent process dies. It is started as a new program (no fork, no `multiprocessing`), so
scripts need no `if __name__ == "__main__"` and no torch state is copied.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TextIO

from bertology.errors import DataError, InterruptedRunError, ModelError
from bertology.quiet import hush
from bertology.run.engine import Advance, EndMessage, Inputs, Status, StepsMessage, message_of
from bertology.run.plan import Job, ModelReference
from bertology.studies.study import Context

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder

SECONDS = "bertology_seconds"
"""Attribute of a stored part: the seconds it took, for the total time of a continued run."""


def perform(job: Job, inputs: Inputs, advance: Advance) -> Status:
    """Measure one part and store it, unless another process has done so in the meantime."""
    store = inputs.store
    if store.measured.has_part(job.measurement, job.part):
        return Status.SKIPPED
    started = time.monotonic()
    study = job.make_study()
    context = Context(
        job.batch_tokens,
        inputs.others,
        advance,
        store.folder_of_states(),
        store.folder_of_trained(),
    )
    # A study that reads only weights needs no corpus, and there may be none.
    corpus: Any = inputs.corpus
    try:
        measured = study.measure(inputs.encoder, corpus, job.part, context)
    except InterruptedRunError:
        # The session knows what is kept of a study; the training of a part does not.
        raise KeyboardInterrupt from None
    measured = measured.assign_attrs({SECONDS: time.monotonic() - started})
    store.measured.save_part(job.measurement, job.part, measured)
    return Status.DONE


def attempt(
    job: Job, advance: Advance, *, find: Callable[[Job], Inputs] | None = None
) -> EndMessage:
    """Do a job and report its end as plain data."""
    try:
        status = perform(job, (find or load_inputs)(job), advance)
    except Exception as error:
        return {
            **message_of(error, trace=traceback.format_exc()),
            "transient": isinstance(error, OSError),
        }
    return {"status": status.value}


def load_inputs(job: Job) -> Inputs:
    """Load what a job names, and check that it is the same as when the run was planned."""
    from bertology.results.store import Store

    wanted: dict[str, ModelReference] = {
        "": {"model": job.model, "model_fingerprint": job.model_fingerprint},
        **job.others,
    }
    models = _load_models(json.dumps({k: w["model"] for k, w in wanted.items()}, sort_keys=True))
    for name, encoder in models.items():
        if encoder.fingerprint != wanted[name]["model_fingerprint"]:
            raise ModelError(
                f"The model {encoder.name!r} has changed since this run was planned.",
                hint="Run the same command again.",
            )
    corpus = _load_corpus(json.dumps(job.corpus, sort_keys=True)) if job.corpus else None
    if corpus is not None and corpus.fingerprint != job.corpus_fingerprint:
        raise DataError(
            f"The corpus {corpus.name!r} has changed since this run was planned.",
            hint="Run the same command again.",
        )
    others = {name: encoder for name, encoder in models.items() if name}
    store = Store() if job.store is None else Store(**job.store)
    return Inputs(models[""], corpus, store, others)


# A worker does many parts of one study: the models and corpus of the last job are kept.
@lru_cache(maxsize=1)
def _load_models(specs: str) -> dict[str, Encoder]:
    from bertology.model.encoder import Encoder

    return {name: Encoder.load(**spec) for name, spec in json.loads(specs).items()}


@lru_cache(maxsize=1)
def _load_corpus(origin: str) -> Corpus:
    from bertology.data.loading import load_corpus

    return load_corpus(**json.loads(origin))


class _Reporter:
    """Sends messages to the parent; progress at most ten times a second."""

    def __init__(self, channel: TextIO) -> None:
        self._channel = channel
        self._steps, self._last = 0, 0.0

    def send(self, message: StepsMessage | EndMessage) -> None:
        self._channel.write(json.dumps(message) + "\n")
        self._channel.flush()

    def advance(self, steps: int) -> None:
        self._steps += steps
        if time.monotonic() - self._last >= 0.1:
            # If the parent has died, the part is still finished and stored.
            with suppress(BrokenPipeError):
                self.send({"steps": self._steps})
            self._steps, self._last = 0, time.monotonic()

    def finish(self, message: EndMessage) -> None:
        self._steps = 0  # the parent adds the missing steps when the job ends
        self.send(message)


def main() -> None:
    """Serve jobs until standard input is closed."""
    # Ctrl-C reaches all processes of the terminal; the parent then stops its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _leave)
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints must not mix with the messages
    hush()
    reporter = _Reporter(channel)
    try:
        for line in sys.stdin:
            reporter.finish(attempt(Job.from_json(line), reporter.advance))
    except BrokenPipeError:
        pass  # The parent has died. The part is stored.


def _leave(signum: int, frame: object) -> None:
    # As an exception, so that half-written files are removed.
    sys.exit(128 + signum)


if __name__ == "__main__":
    main()
