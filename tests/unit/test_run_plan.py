"""Jobs are plain data with an identity."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from bertology.errors import CapabilityError, StoreError
from bertology.run.engine import JobOutcome, Status, message_of
from bertology.run.plan import Job, Resources, target_of
from toy.study import ToyLengths


@pytest.fixture
def job() -> Job:
    study = ToyLengths(layers=(1, 2), heads=((0, 1),))
    return Job(
        study="toy-lengths",
        target=target_of(ToyLengths),
        version=1,
        parameters=study.parameters,
        part="part-0",
        measurement="00ff",
        model={"name": "m", "head": "base"},
        model_fingerprint="aa",
        corpus={"name_or_path": "c"},
        corpus_fingerprint="bb",
        store={"url": "s", "options": {}},
    )


def test_a_job_goes_through_json(job: Job) -> None:
    asked = replace(job, resources=Resources(cpus=2, gpus=1, memory=10))
    back = Job.from_json(asked.to_json())
    assert back == asked
    assert back.make_study() == ToyLengths(layers=(1, 2), heads=((0, 1),))
    assert "\n" not in asked.to_json()


@pytest.mark.parametrize(
    "change",
    [
        {"part": "part-1"},
        {"parameters": {}},
        {"model_fingerprint": "x"},
        {"corpus_fingerprint": None},
        {"version": 2},
    ],
)
def test_identity_follows_what_changes_numbers(job: Job, change: dict[str, object]) -> None:
    assert replace(job, **change).identity != job.identity


@pytest.mark.parametrize(
    "change",
    [{"batch_tokens": 1}, {"store": None}, {"model": None}, {"resources": Resources(9)}],
)
def test_identity_ignores_how_it_is_done(job: Job, change: dict[str, object]) -> None:
    assert replace(job, **change).identity == job.identity


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"model": None}, "The model was made in memory"),
        ({"corpus": {}}, "The corpus was made in memory"),
        ({"corpus": {"task": object()}}, "The corpus was made in memory"),
        ({"store": None}, "A store in memory"),
        ({"target": "__main__:Mine"}, "defined in a script or notebook"),
    ],
)
def test_what_cannot_travel_is_refused(job: Job, change: dict[str, object], text: str) -> None:
    job.check_shippable()
    with pytest.raises(CapabilityError, match=text) as caught:
        replace(job, **change).check_shippable()
    assert caught.value.hint


def test_an_error_keeps_its_kind_and_words_between_processes(job: Job) -> None:
    message = message_of(StoreError("The disk is full.", hint="Free some space."))
    outcome = JobOutcome.from_message(job, message)
    assert outcome.status is Status.FAILED
    assert isinstance(outcome.cause, StoreError)
    assert (outcome.cause.problem, outcome.cause.hint) == ("The disk is full.", "Free some space.")
    assert pickle.loads(pickle.dumps(outcome.cause)).hint == "Free some space."
    bug = JobOutcome.from_message(job, message_of(ValueError("no"), trace="Traceback …"))
    assert (bug.error, bug.cause, bug.trace) == ("ValueError: no", None, "Traceback …")
