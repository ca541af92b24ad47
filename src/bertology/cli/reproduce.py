"""`bertology reproduce PAPER`: a whole paper done again, and one page that says how it went."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from bertology.cli.carrying_out import (
    PlanOptions,
    Teller,
    check_folder,
    load_encoder,
    make_session,
    show_missing,
    show_plan,
    typed,
    wishes_of,
)
from bertology.cli.console import examples, say, warn
from bertology.cli.options import given_values
from bertology.cli.run import COMMAND
from bertology.errors import JobError
from bertology.parameters import parameter

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder
    from bertology.reproduce.account import Account

__all__ = ["ReproduceOptions", "add_to"]

_HELP = """Do a whole paper again: fine-tune, run every study, judge every claim, write one page.

PAPER is a name such as dark-secrets. Without options it takes the bundled model and tasks that \
the bundled grammar makes, and needs no files and no network. Data that are not on this machine \
are named on the page and left out.

What was done is kept: the same command goes on where it was stopped, and does nothing twice.
"""


@dataclass(frozen=True)
class ReproduceOptions(PlanOptions):
    """What a reproduction may be given."""

    to: str | None = parameter(
        None,
        "Where the page, the models and the results go. If not given: reproductions/PAPER-MODEL.",
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
    )(typed(_command, "paper", ReproduceOptions))


def _command(ctx: typer.Context, paper: str, **given: Any) -> None:
    options = ReproduceOptions(**given_values(ReproduceOptions, given))
    _reproduce(paper, options, command=ctx.meta.get(COMMAND))


def _reproduce(name: str, options: ReproduceOptions, *, command: str | None) -> None:
    from bertology.reproduce import REPRODUCTIONS
    from bertology.reproduce.account import Account, short_name
    from bertology.reproduce.carrying import Carrying

    paper = REPRODUCTIONS.get(name)
    wishes = wishes_of(options)
    encoder = load_encoder(options, wishes.model, "base")
    encoder.require_tokenizer()
    plan = paper.plan(wishes, encoder.shape)
    show_missing(plan)
    if options.dry_run:
        show_plan(plan, wishes.model, title=f"{paper.title}: the plan")
        return
    to = Path(options.to or Path("reproductions") / f"{paper.name}-{short_name(wishes.model)}")
    check_folder(to)
    session = make_session(options, to, command)
    say(f"{paper.title}: {len(plan.steps)} steps", style="bold")
    carrying = Carrying(
        wishes.model,
        to,
        session,
        load=lambda where, head: load_encoder(options, where, head),
        tell=Teller(plan).tell,
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


def _described(encoder: Encoder) -> dict[str, Any]:
    return {
        "name": encoder.name,
        "fingerprint": encoder.fingerprint,
        "family": encoder.family.model_type,
        "shape": asdict(encoder.shape),
    }


def _present(account: Account, to: Path) -> None:
    from bertology.reproduce.page import reproduction_page
    from bertology.reproduce.summary import as_json, as_markdown

    say("Drawing the page …")
    before = _command_before(to)
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
    if before not in (None, account.command):
        say(f"The page that was here, of another command, is replaced. To have it again: {before}")
    say(f"Page:    {to / 'index.html'}")
    say(f"Summary: {to / 'summary.md'}, {to / 'summary.json'}")
    say("Next:")
    say(f"  bertology list --store {shlex.quote(account.store)}")


def _command_before(to: Path) -> str | None:
    """What made the page that lies there, if one does."""
    try:
        return str(json.loads((to / "summary.json").read_text(encoding="utf-8"))["command"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
