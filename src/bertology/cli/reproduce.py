"""`bertology reproduce PAPER`: a whole paper done again, and one page that says how it went."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertology.cli.console import examples, say, show_table, warn
from bertology.cli.options import given_values, options_of
from bertology.cli.run import COMMAND
from bertology.errors import JobError, StoreError
from bertology.model.locating import DEFAULT_MODEL
from bertology.studies.study import parameter

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder
    from bertology.reproductions.account import Account
    from bertology.reproductions.paper import Reproduction
    from bertology.reproductions.plan import Plan, Step, Wishes
    from bertology.run.session import Session

__all__ = ["ReproduceOptions", "add_to"]

_HELP = """Do a whole paper again: fine-tune, run every study, judge every claim, write one page.

PAPER is a name such as dark-secrets. Without options it takes the bundled model and tasks that \
the bundled grammar makes, and needs no files and no network. Data that are not on this machine \
are named on the page and left out.

What was done is kept: the same command goes on where it was stopped, and does nothing twice.
"""


@dataclass(frozen=True)
class ReproduceOptions:
    """What a reproduction may be given."""

    model: str = parameter(DEFAULT_MODEL, "A bundled model, a folder or a Hugging Face id.")
    tasks: tuple[str, ...] = parameter(
        (), "Tasks such as mrpc,rte; if not given, those of the bundled grammar."
    )
    root: str | None = parameter(None, "The folder that holds the data of catalogue entries.")
    to: str | None = parameter(
        None,
        "Where the page, the models and the results go. If not given: reproductions/PAPER-MODEL.",
    )
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
    batch_tokens: int = parameter(4096, "Tokens in one batch; less saves memory.", minimum=1)
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


def add_to(app: typer.Typer) -> None:
    """Put `reproduce` into the app."""
    app.command(
        "reproduce",
        help=_HELP,
        short_help="Do a whole paper again, and write one page about it.",
        no_args_is_help=True,
        epilog=examples(
            "bertology reproduce dark-secrets",
            "bertology reproduce dark-secrets --dry-run",
            "bertology reproduce dark-secrets --tasks mrpc,rte,sts-b --root data --to my-page",
            "bertology reproduce dark-secrets --model user/model-on-the-hub --examples 500",
        ),
    )(_command())


def _command() -> Callable[..., None]:
    """A function whose signature is the options, for typer to read."""
    from rich.markup import escape

    def command(ctx: typer.Context, paper: str, **given: Any) -> None:
        options = ReproduceOptions(**given_values(ReproduceOptions, given))
        _reproduce(paper, options, command=ctx.meta.get(COMMAND))

    argument = Annotated[str, typer.Argument(metavar="PAPER", show_default=False)]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = [
        inspect.Parameter("ctx", kind, annotation=typer.Context),
        inspect.Parameter("paper", kind, annotation=argument),
    ]
    for option in options_of(ReproduceOptions, panel="Options"):
        # The main app reads help as rich's markup, where `[default: 3]` would be a style.
        (settings,) = option.annotation.__metadata__
        settings.help = escape(settings.help)
        signature.append(option)
    command.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in signature}
    return command


def _reproduce(name: str, options: ReproduceOptions, *, command: str | None) -> None:
    from bertology.reproductions import REPRODUCTIONS
    from bertology.reproductions.account import Account, short_name
    from bertology.reproductions.carrying import Carrying
    from bertology.reproductions.plan import Wishes

    paper = REPRODUCTIONS.get(name)
    names = ("model", "tasks", "root", "examples", "train_examples", "epochs", "seeds")
    wishes = Wishes(**{n: getattr(options, n) for n in names})
    encoder = _load(options, wishes.model, "base")
    encoder.require_tokenizer()
    plan = paper.plan(wishes, encoder.shape)
    _show_missing(plan)
    if options.dry_run:
        _show_plan(paper, wishes, plan)
        return
    to = Path(options.to or Path("reproductions") / f"{paper.name}-{short_name(wishes.model)}")
    _check_folder(to)
    session = _session(options, to, command)
    say(f"{paper.title}: {len(plan.steps)} steps", style="bold")
    carrying = Carrying(
        wishes.model,
        to,
        session,
        load=lambda where, head: _load(options, where, head),
        tell=_Teller(plan).tell,
    )
    account = Account(
        reproduction=paper,
        wishes=wishes,
        plan=plan,
        carried=carrying.carry_out(plan),
        model=_described(encoder),
        store=session.store.url,
    )
    _present(account, to)
    if account.carried.failed:
        failed = ", ".join(account.carried.failed)
        raise JobError(f"Failed: {failed}.", hint="The same command tries them again.")


def _load(options: ReproduceOptions, where: str, head: str) -> Encoder:
    from bertology.model.encoder import Encoder

    return Encoder.load(
        where,
        head=head,
        device=options.device,
        allow_pickle=options.allow_pickle,
        trust_remote_code=options.trust_remote_code,
    )


def _described(encoder: Encoder) -> dict[str, Any]:
    return {
        "name": encoder.name,
        "fingerprint": encoder.fingerprint,
        "family": encoder.family.model_type,
        "shape": asdict(encoder.shape),
    }


def _session(options: ReproduceOptions, to: Path, command: str | None) -> Session:
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


def _check_folder(to: Path) -> None:
    """Hours of work shall not end at a page that cannot be written."""
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


class _Teller:
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


def _show_missing(plan: Plan) -> None:
    for missing in plan.missing:
        warn(f"Left out: {missing.name}. {missing.reason}")


def _show_plan(paper: Reproduction, wishes: Wishes, plan: Plan) -> None:
    from bertology.reproductions.plan import Ask, Join, Teach

    rows = []
    for number, step in enumerate(plan.steps, start=1):
        study, _, _ = step.key.partition("@")
        given: dict[str, Any] = {}
        taught = isinstance(step, Ask) and step.of is not None
        if isinstance(step, Ask):
            given = {k: v for k, v in step.parameters.items() if v not in (None, ())}
        elif isinstance(step, Teach):
            given = {"examples": step.data.train_limit, "epochs": step.epochs}
        model = "joined results" if isinstance(step, Join) else wishes.model
        rows.append(
            (
                number,
                study,
                f"{model}, fine-tuned" if taught else model,
                step.data.title,
                "all" if step.data.limit is None else step.data.limit,
                ", ".join(f"{k} {'all' if v is None else v}" for k, v in given.items()),
            )
        )
    columns = ("", "step", "model", "data", "examples", "settings")
    show_table(columns, rows, title=f"{paper.title}: the plan")


def _present(account: Account, to: Path) -> None:
    from bertology.reproductions.page import reproduction_page
    from bertology.reproductions.summary import as_json, as_markdown

    say("Drawing the page …")
    texts = {
        "index.html": reproduction_page(account),
        "summary.json": as_json(account),
        "summary.md": as_markdown(account),
    }
    for name, text in texts.items():
        part = to / f".{name}.part"
        part.write_text(text, encoding="utf-8")
        part.replace(to / name)  # whole or not at all
    counts = ", ".join(f"{n} {name}" for name, n in account.counts.items())
    say(f"{len(account.judged)} claims: {counts}", style="bold")
    for step, _ in account.not_run():
        warn(f"{step.key} was not run; the page says why.")
    say(f"Page:    {to / 'index.html'}")
    say(f"Summary: {to / 'summary.md'}, {to / 'summary.json'}")
    say("Next:")
    say(f"  bertology list --store {shlex.quote(account.store)}")
