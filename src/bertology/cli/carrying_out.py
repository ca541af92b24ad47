"""What commands that carry out a plan have in common: options, the session, lines of progress."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertology.cli.console import say, show_table, warn
from bertology.cli.options import options_of
from bertology.errors import StoreError
from bertology.model.loading.names import DEFAULT_MODEL
from bertology.parameters import parameter

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder
    from bertology.reproduce.plan import Plan, Step, Wishes
    from bertology.run.session import Session

__all__ = [
    "PlanOptions",
    "Teller",
    "check_folder",
    "load_encoder",
    "make_session",
    "show_missing",
    "show_plan",
    "typed",
    "wishes_of",
]


@dataclass(frozen=True)
class PlanOptions:
    """What a command that carries out a plan may be given."""

    model: str = parameter(DEFAULT_MODEL, "A bundled model, a folder or a Hugging Face id.")
    tasks: tuple[str, ...] = parameter(
        (), "Tasks such as mrpc,rte; if not given, those of the bundled grammar."
    )
    root: str | None = parameter(None, "The folder that holds the data of catalogue entries.")
    to: str | None = parameter(None, "Where models and results go.")
    store: str | None = parameter(
        None, "Where results are kept: a folder or an fsspec URL. If not given: in --to."
    )
    examples: int | None = parameter(None, "Look at so many examples of a task at most.", minimum=2)
    train_examples: int | None = parameter(
        None, "Learn from so many examples of a task at most.", minimum=2
    )
    epochs: int | None = parameter(None, "Passes over the training data.", minimum=1)
    seeds: int | None = parameter(
        None, "Fine-tunings of each start; one gives no verdicts.", minimum=1
    )
    engine: str = parameter(
        "local", "Who runs the studies. ray joins the cluster at RAY_ADDRESS, if set.",
        choices=("local", "ray"),
    )  # fmt: skip
    workers: int = parameter(1, "Worker processes; each holds the model.", minimum=0)
    device: str = parameter("auto", "cpu, cuda, cuda:1, mps; auto takes what is there.")
    batch_tokens: int | None = parameter(
        None, "Tokens in one batch; less saves memory. Without: as suits the device.", minimum=1
    )
    allow_pickle: bool = field(
        default=False,
        metadata={"help": "Load pickled weights, which can run code.", "flag": True},
    )
    trust_remote_code: bool = field(
        default=False, metadata={"help": "Run code that comes with the model.", "flag": True}
    )
    dry_run: bool = field(
        default=False, metadata={"help": "Show the plan and do nothing.", "flag": True}
    )


def typed(work: Callable[..., None], argument: str, kind: type[PlanOptions]) -> Callable[..., None]:
    """`work(ctx, ARGUMENT, **options)` with a signature for typer: one argument, then options."""
    from rich.markup import escape

    def command(ctx: typer.Context, **given: Any) -> None:
        work(ctx, **given)

    place = inspect.Parameter.POSITIONAL_OR_KEYWORD
    settings = typer.Argument(metavar=argument.upper(), show_default=False)
    signature = [
        inspect.Parameter("ctx", place, annotation=typer.Context),
        inspect.Parameter(argument, place, annotation=Annotated[str, settings]),
    ]
    for option in options_of(kind, panel="Options"):
        if option.name != argument:
            # The main app reads help as rich's markup, where `[default: 3]` would be a style.
            (words,) = option.annotation.__metadata__
            words.help = escape(words.help)
            signature.append(option)
    command.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in signature}
    return command


def wishes_of(options: PlanOptions) -> Wishes:
    """What the plan must know of the options."""
    from bertology.reproduce.plan import Wishes

    names = ("model", "tasks", "root", "examples", "train_examples", "epochs", "seeds")
    return Wishes(**{n: getattr(options, n) for n in names})


def load_encoder(options: PlanOptions, where: str, head: str) -> Encoder:
    """A model, as the options allow."""
    from bertology.model.encoder import Encoder

    return Encoder.load(
        where,
        head=head,
        device=options.device,
        allow_pickle=options.allow_pickle,
        trust_remote_code=options.trust_remote_code,
    )


def make_session(options: PlanOptions, to: Path, command: str | None) -> Session:
    """Where results are kept, and who does the work."""
    from bertology.results.store import Store
    from bertology.run.api import make_engine
    from bertology.run.local import cores
    from bertology.run.progress import choose_progress
    from bertology.run.session import Session

    return Session(
        store=Store(options.store or str(to / "results")),
        engine=make_engine(options.engine, workers=options.workers),
        progress=choose_progress(None),
        batch_tokens=options.batch_tokens,
        cpus=max(1, cores() // max(1, options.workers)),
        command=command,
    )


def check_folder(to: Path) -> None:
    """Hours of work shall not end at a file that cannot be written."""
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


class Teller:
    """One line for each thing that becomes of a step."""

    def __init__(self, plan: Plan) -> None:
        self._numbers = {step.key: i for i, step in enumerate(plan.steps, start=1)}

    def tell(self, step: Step, status: str, more: str) -> None:
        """Say it."""
        total = len(self._numbers)
        number = f"{self._numbers[step.key]:>{len(str(total))}}"
        study, _, data = step.key.partition("@")
        line = f"  {number}/{total}  {status:<8} {study:<19} {data}"
        say(f"{line}: {more}" if more else line)


def show_missing(plan: Plan) -> None:
    """Name the data that are not here."""
    for missing in plan.missing:
        warn(f"Left out: {missing.name}. {missing.reason}")


def show_plan(plan: Plan, model: str, *, title: str) -> None:
    """The steps as a table."""
    from bertology.reproduce.plan import Ask, Join, Teach

    rows = []
    for number, step in enumerate(plan.steps, start=1):
        study, _, _ = step.key.partition("@")
        given: dict[str, Any] = {}
        taught = isinstance(step, Ask) and step.of is not None
        if isinstance(step, Ask):
            given = {
                k: "no" if v is False else v
                for k, v in step.parameters.items()
                if v not in (None, ())
            }
        elif isinstance(step, Teach):
            given = {"examples": step.data.train_limit, "epochs": step.epochs}
        of = "joined results" if isinstance(step, Join) else model
        rows.append(
            (
                number,
                study,
                f"{of}, fine-tuned" if taught else of,
                step.data.title,
                "all" if step.data.limit is None else step.data.limit,
                ", ".join(f"{k} {'all' if v is None else v}" for k, v in given.items()),
            )
        )
    columns = ("", "step", "model", "data", "examples", "settings")
    show_table(columns, rows, title=title)
