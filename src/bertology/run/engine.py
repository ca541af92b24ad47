"""What an engine is, and how it reports the end of each job."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NotRequired, Protocol, TypedDict, final, runtime_checkable

from bertology import errors
from bertology.errors import BertologyError
from bertology.run.plan import Job

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.results.store import Store

Advance = Callable[[int], None]


class Status(StrEnum):
    """How a job ended."""

    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"  # its part was in the store already


@final
class EndMessage(TypedDict):
    """What a worker sends when a job has ended; plain data."""

    status: str
    kind: NotRequired[str]  # the class of a `BertologyError`
    error: NotRequired[str]
    hint: NotRequired[str | None]
    trace: NotRequired[str | None]
    transient: NotRequired[bool]  # worth another attempt
    attempts: NotRequired[int]


@final
class StepsMessage(TypedDict):
    """What a worker sends while it works on a job."""

    steps: int  # done since the last message


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """How one job ended and, when it failed, why."""

    job: Job
    status: Status
    error: str | None = None
    cause: BaseException | None = None
    attempts: int = 1
    trace: str | None = None  # the traceback, shown with -v

    @classmethod
    def from_message(cls, job: Job, message: EndMessage, *, attempts: int = 1) -> JobOutcome:
        """From the message of a worker, which is plain data."""
        kind, problem = message.get("kind"), message.get("error")
        cause = None
        if kind is not None and problem is not None:
            cause = _rebuild_error(kind, problem, message.get("hint"))
        status = Status(message["status"])
        return cls(job, status, problem, cause, attempts, message.get("trace"))


@dataclass(frozen=True, slots=True)
class Inputs:
    """The models, corpus and store that this process has loaded."""

    encoder: Encoder
    corpus: Corpus | None
    store: Store
    others: Mapping[str, Encoder] = field(default_factory=dict)  # by the parameter that names each
    notes: tuple[str, ...] = ()  # what limits the result


@runtime_checkable
class Engine(Protocol):
    """Runs jobs and saves each part in the store as soon as it is finished.

    Outcomes come in the order in which jobs end. An engine never raises for a job that fails.
    Closing the iterator stops the work; finished parts stay in the store.
    """

    def run(
        self, jobs: Sequence[Job], inputs: Inputs, advance: Advance
    ) -> Generator[JobOutcome, None, None]:
        """Run the jobs. `advance` gets the number of new steps, negative after a crash."""
        ...


def message_of(error: BaseException, *, trace: str | None = None) -> EndMessage:
    """A failure as plain data, which `JobOutcome.from_message` reads in the other process."""
    if isinstance(error, BertologyError):
        return {
            "status": Status.FAILED.value,
            "kind": type(error).__name__,
            "error": error.problem,
            "hint": error.hint,
        }
    text = f"{type(error).__name__}: {error}"
    return {"status": Status.FAILED.value, "error": text, "trace": trace}


def _rebuild_error(kind: str, problem: str, hint: str | None) -> BertologyError:
    found = getattr(errors, kind, BertologyError)
    revived: BertologyError = found.__new__(found)
    # Subclasses have other constructors, which would make the text again.
    BertologyError.__init__(revived, problem, hint=hint)
    return revived
