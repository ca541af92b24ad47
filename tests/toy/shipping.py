"""An engine that does what worker processes do, without starting any."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from bertology.run import worker
from bertology.run.engine import Advance, Inputs, JobOutcome
from bertology.run.plan import Job


class Shipped:
    """Each job is written and read as for a worker, which loads all that the job names.

    Processes that start, die and are replaced have tests of their own (test_engines_local.py);
    starting one takes longer than most studies of tests.
    """

    def run(
        self, jobs: Sequence[Job], inputs: Inputs, advance: Advance
    ) -> Generator[JobOutcome, None, None]:
        """Run the jobs; see `Engine.run`."""
        for kept in (worker._load_models, worker._load_corpus):
            kept.cache_clear()  # as in a new process
        for job in jobs:
            job.check_shippable()
            message = worker.attempt(Job.from_json(job.to_json()), advance)
            yield JobOutcome.from_message(job, message)
