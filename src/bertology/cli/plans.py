"""What `reproduce` and `verify` share: options, the plan as a table, and a log of its steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bertology.cli.console import say, show_table, warn
from bertology.cli.option_groups import ACROSS_CLAIMS, EngineOptions, LoadingOptions, RootOptions
from bertology.errors import StoreError
from bertology.parameters import flag, parameter

if TYPE_CHECKING:
    from bertology.reproduce.plan import PlanStep, ReproductionOptions, StepPlan
    from bertology.run.at_hand import ModelAtHand
    from bertology.run.session import Session


@dataclass(frozen=True, kw_only=True)
class PlanOptions(EngineOptions, RootOptions, LoadingOptions):
    """The options of a command that carries out a plan of several steps."""

    tasks: tuple[str, ...] = parameter(
        (), "Tasks, such as mrpc,rte. If not given: tasks that the bundled grammar makes."
    )
    to: str | None = parameter(None, "The folder for models and results.", metavar="FOLDER")
    store: str | None = parameter(
        None, "Where results are stored: a folder or an fsspec URL. If not given: inside --to."
    )
    examples: int | None = parameter(
        None,
        "Study so many examples of each task, drawn at random; all if not given.",
        minimum=2,
        option="limit",
    )
    train_examples: int | None = parameter(
        None,
        "Fine-tune on so many examples of each task, drawn at random; all if not given.",
        minimum=2,
        option="train-limit",
    )
    epochs: int | None = parameter(None, "Passes over the training data.", minimum=1)
    seeds: int | None = parameter(
        None, "Fine-tuning runs for each start. Verdicts need at least two.", minimum=1
    )
    across_claims: bool = flag(ACROSS_CLAIMS)
    dry_run: bool = flag("Show the plan and do nothing.")


def reproduction_options(options: PlanOptions) -> ReproductionOptions:
    """What the plan must know of the options."""
    from bertology.reproduce.plan import ReproductionOptions

    names = (
        "model", "tasks", "root", "examples", "train_examples", "epochs", "seeds", "across_claims",
    )  # fmt: skip
    return ReproductionOptions(**{n: getattr(options, n) for n in names})


def model_at_hand(options: PlanOptions, session: Session, where: str, head: str) -> ModelAtHand:
    """A model, loaded when it is needed and as the options allow."""
    from bertology.run.at_hand import ModelAtHand

    return ModelAtHand(replace(options.model_source(), name=where), head, session.store)


def check_folder(to: Path) -> None:
    """Refuse a folder that cannot be written, before hours of work and not after."""
    try:
        to.mkdir(parents=True, exist_ok=True)
        probe = to / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise StoreError(
            f"{to} cannot be written: {error.strerror or error}.",
            hint="Choose another folder with --to.",
        ) from error


class StepLog:
    """Prints a line whenever a step of the plan has started or ended."""

    def __init__(self, plan: StepPlan) -> None:
        self._numbers = {step.key: i for i, step in enumerate(plan.steps, start=1)}

    def log(self, step: PlanStep, status: str, more: str) -> None:
        """Print the number of the step, its status, study and data."""
        total = len(self._numbers)
        number = f"{self._numbers[step.key]:>{len(str(total))}}"
        study, _, data = step.key.partition("@")
        line = f"  {number}/{total}  {status:<8} {study:<19} {data}"
        say(f"{line}: {more}" if more else line)


def show_missing(plan: StepPlan) -> None:
    """Print which data are not on this machine."""
    for missing in plan.missing:
        warn(f"Left out: {missing.name}. {missing.reason}")


def show_plan(plan: StepPlan, model: str, *, title: str) -> None:
    """The steps as a table, if there are any."""
    from bertology.reproduce.plan import Combine, FineTune, RunSteps, RunStudy

    if not plan.steps:
        say(f"{title}: nothing that can be run here.")
        return
    rows = []
    for number, step in enumerate(plan.steps, start=1):
        study, _, _ = step.key.partition("@")
        given: dict[str, object] = {}
        tuned = isinstance(step, RunStudy) and step.fine_tuned_by is not None
        if isinstance(step, RunStudy | RunSteps):
            given = {
                k: "no" if v is False else v
                for k, v in step.parameters.items()
                if v not in (None, ())
            }
        elif isinstance(step, FineTune):
            given = {"examples": step.data.train_limit, "epochs": step.epochs}
        of = "combined results" if isinstance(step, Combine) else model
        of = f"{of}, all steps" if isinstance(step, RunSteps) else of
        rows.append(
            (
                number,
                study,
                f"{of}, fine-tuned" if tuned else of,
                step.data.title,
                "all" if step.data.limit is None else step.data.limit,
                ", ".join(f"{k} {'all' if v is None else v}" for k, v in given.items()),
            )
        )
    columns = ("", "step", "model", "data", "examples", "settings")
    show_table(columns, rows, title=title)
