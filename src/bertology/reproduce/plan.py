"""What a reproduction runs: on which model and data, in which order, and what needs what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from bertology.errors import ParameterError

__all__ = ["Ask", "Data", "Join", "Missing", "Note", "Plan", "Step", "Teach", "Wishes"]


@dataclass(frozen=True)
class Wishes:
    """What the reader asks for. None: as the reproduction thinks best for the data at hand."""

    model: str
    tasks: tuple[str, ...] = ()
    root: str | None = None
    examples: int | None = None
    train_examples: int | None = None
    epochs: int | None = None
    seeds: int | None = None

    def __post_init__(self) -> None:
        for name, least in {"examples": 2, "train_examples": 2, "epochs": 1, "seeds": 1}.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise ParameterError(name, "a reproduction", f"be at least {least}", value)
        if len(set(self.tasks)) < len(self.tasks):
            raise ParameterError("tasks", "a reproduction", "name each task once", self.tasks)


@dataclass(frozen=True)
class Data:
    """A corpus, and how it is loaded. `sample`: only a part of the original is here."""

    name: str
    split: str = "validation"
    limit: int | None = None
    train_split: str = "train"
    train_limit: int | None = None
    root: str | None = None
    sample: bool = False

    @property
    def title(self) -> str:
        """What it is called before readers."""
        return f"{self.name} (sample)" if self.sample else self.name


@dataclass(frozen=True)
class Teach:
    """Fine-tune the model on a task; it is kept and used by later steps."""

    data: Data
    epochs: int = 3
    batch_size: int = 32
    learning_rate: float | None = None
    seed: int = 0

    @property
    def key(self) -> str:
        """Names the step."""
        return f"finetune@{self.data.name}"

    @property
    def needs(self) -> tuple[str, ...]:
        """Keys of steps that come before."""
        return ()


@dataclass(frozen=True)
class Ask:
    """Run a study: on the model itself, or on what a `Teach` made of it (`of` is its key).

    `compared` is the study's parameter that names the model itself, where it compares two.
    """

    study: str
    data: Data
    of: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    compared: str | None = None

    @property
    def key(self) -> str:
        """Names the step."""
        return f"{self.study}@{self.data.name}"

    @property
    def needs(self) -> tuple[str, ...]:
        """Keys of steps that come before."""
        return () if self.of is None else (self.of,)


@dataclass(frozen=True)
class Join:
    """Lay results side by side, by head or by task; those that are missing are left out."""

    data: Data
    results: tuple[str, ...]
    study: str = "head-profile"

    @property
    def key(self) -> str:
        """Names the step."""
        return f"{self.study}@{self.data.name}"

    @property
    def needs(self) -> tuple[str, ...]:
        """The first of the results, which a profile is about; of tasks, any two will do."""
        return self.results[:1] if self.study == "head-profile" else ()


Step = Teach | Ask | Join


@dataclass(frozen=True)
class Missing:
    """Data that were asked for and are not here."""

    name: str
    reason: str


@dataclass(frozen=True)
class Note:
    """Something that differs from the paper because of the data or the wishes."""

    section: str
    text: str


@dataclass(frozen=True)
class Plan:
    """Steps in an order in which they can be done, and what is known before they are."""

    tasks: tuple[Data, ...]
    steps: tuple[Step, ...]
    missing: tuple[Missing, ...] = ()
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        done: set[str] = set()
        for step in self.steps:
            if step.key in done:
                raise ParameterError("steps", "a plan", "have different keys", step.key)
            if not done >= set(step.needs):
                raise ParameterError("steps", "a plan", "come after what they need", step.key)
            done.add(step.key)

    def asked(self, study: str) -> Iterator[Ask | Join]:
        """The steps of a study."""
        for step in self.steps:
            if not isinstance(step, Teach) and step.study == study:
                yield step

    def notes_of(self, section: str) -> list[str]:
        """What is known to differ in a section."""
        return [note.text for note in self.notes if note.section == section]
