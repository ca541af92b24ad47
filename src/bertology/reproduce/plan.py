"""What is run for a paper: on which model and data, in which order, and what needs what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from bertology.data.languages import language
from bertology.errors import ParameterError


@dataclass(frozen=True)
class ReproductionOptions:
    """What the reader asks for. None: what the paper's plan has for the data."""

    model: str
    tasks: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    root: str | None = None
    examples: int | None = None
    train_examples: int | None = None
    epochs: int | None = None
    seeds: int | None = None
    quick: bool = False
    """Whether less data are read than the plan has, so that intervals are wider."""
    across_claims: bool = False
    """Whether the error of the verdicts is held over all claims of the page."""

    def __post_init__(self) -> None:
        for name, least in {"examples": 2, "train_examples": 2, "epochs": 1, "seeds": 1}.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise ParameterError(name, "a reproduction", f"be at least {least}", value)
        for kind, names in (("task", self.tasks), ("language", self.languages)):
            if len(set(names)) < len(names):
                raise ParameterError(f"{kind}s", "a reproduction", f"name each {kind} once", names)


@dataclass(frozen=True)
class Data:
    """A corpus, and how it is loaded. `sample`: only a part of the original is on this machine."""

    name: str
    split: str = "validation"
    limit: int | None = None
    train_split: str = "train"
    train_limit: int | None = None
    root: str | None = None
    sample: bool = False
    languages: str | None = None
    """Of a corpus in several languages, those that are read."""

    @property
    def key(self) -> str:
        """The name of a step over it."""
        return f"{self.name}:{self.languages}" if self._one_language else self.name

    @property
    def title(self) -> str:
        """The name that readers see."""
        if self.languages is not None and self._one_language:
            return language(self.languages).name
        return f"{self.name} (sample)" if self.sample else self.name

    @property
    def _one_language(self) -> bool:
        return self.languages is not None and "," not in self.languages


@dataclass(frozen=True)
class FineTune:
    """Fine-tune the model on a task; later steps use the model that it makes."""

    data: Data
    epochs: int = 3
    batch_size: int = 32
    learning_rate: float | None = None
    seed: int = 0

    @property
    def key(self) -> str:
        """The name of the step."""
        return f"finetune@{self.data.key}"

    @property
    def needs(self) -> tuple[str, ...]:
        """Keys of steps that must be done before; there are none."""
        return ()


@dataclass(frozen=True)
class RunStudy:
    """Run a study: on the model itself, or on the model that a `FineTune` made (by its key).

    A study that compares two models is given the model itself as its parameter `base_model_as`.
    """

    study: str
    data: Data
    fine_tuned_by: str | None = None
    parameters: Mapping[str, object] = field(default_factory=dict)
    base_model_as: str | None = None

    @property
    def key(self) -> str:
        """The name of the step."""
        return f"{self.study}@{self.data.key}"

    @property
    def needs(self) -> tuple[str, ...]:
        """Keys of steps that must be done before."""
        return () if self.fine_tuned_by is None else (self.fine_tuned_by,)


@dataclass(frozen=True)
class Combine:
    """Make one result of several. Those that were not made are left out, except for `needs`."""

    study: str
    data: Data
    results: tuple[str, ...]
    needs: tuple[str, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The name of the step."""
        return f"{self.study}@{self.data.key}"


@dataclass(frozen=True)
class RunSteps:
    """Run a study at every training step that the model kept; the result is the join of all."""

    of: str
    measure: str
    data: Data
    parameters: Mapping[str, object] = field(default_factory=dict)
    study: str = "training-steps"

    @property
    def key(self) -> str:
        """The name of the step."""
        return f"{self.study}@{self.data.key}"

    @property
    def needs(self) -> tuple[str, ...]:
        """Keys of steps that must be done before; there are none."""
        return ()


PlanStep = FineTune | RunStudy | Combine | RunSteps


@dataclass(frozen=True)
class MissingData:
    """Data that the plan would use, and that are not on this machine."""

    name: str
    reason: str


@dataclass(frozen=True)
class StepPlan:
    """Steps in an order in which they can be done, and what is known before they are.

    `notes` say what differs from the paper, by the number of its section; `left_out` why a study
    that was asked for has no step.
    """

    tasks: tuple[Data, ...]
    steps: tuple[PlanStep, ...]
    missing: tuple[MissingData, ...] = ()
    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        done: set[str] = set()
        for step in self.steps:
            if step.key in done:
                raise ParameterError("steps", "a plan", "have different keys", step.key)
            if not done >= set(step.needs):
                raise ParameterError("steps", "a plan", "come after what they need", step.key)
            done.add(step.key)

    def steps_of(self, study: str) -> Iterator[RunStudy | Combine | RunSteps]:
        """The steps that run a study, or combine results into one of that name."""
        for step in self.steps:
            if not isinstance(step, FineTune) and step.study == study:
                yield step
