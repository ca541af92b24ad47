"""`bertology join NAME ID ID …`: an answer made of stored results, one subcommand for each join."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import typer

from bertology.cli.command import Command
from bertology.cli.console import examples
from bertology.cli.option_groups import StoreOptions
from bertology.cli.run import QuestionGroup, keep_joined
from bertology.cli.typer_options import argument
from bertology.errors import ParameterError

if TYPE_CHECKING:
    from bertology.registry import Registry
    from bertology.studies.join import Join


@dataclass(frozen=True, kw_only=True)
class JoinOptions(StoreOptions):
    """The options of every join, next to its own parameters."""

    panel: ClassVar[str | None] = None
    results: list[str] = argument(
        "Identities of stored results, or their first characters: bertology list shows them.",
        metavar="ID",
    )


class _Joins(QuestionGroup):
    def registry(self) -> Registry[type[Join]]:
        from bertology.studies import JOINS

        return JOINS

    def command(self, name: str, kind: type[Join]) -> Command:
        of = kind.sources[0] if kind.sources else "token-classes"
        return Command(
            name,
            partial(_join, name),
            (JoinOptions, kind),
            examples=[
                f"bertology list --study {of}",
                f"bertology join {name} 1f2e3d4c 5a6b7c8d --store results",
            ],
            help=inspect.getdoc(kind),
            panel="Parameters of the join",
            needs_input=True,
        )


def add_to(app: typer.Typer) -> None:
    """Put `join` into the app."""
    group = typer.Typer(
        cls=_Joins,
        no_args_is_help=True,
        epilog=examples(
            "bertology list --study heuristics",
            "bertology join model-sizes 1f2e3d4c 5a6b7c8d 9e0f1a2b",
            "bertology join model-sizes --help",
        ),
    )
    group.callback()(_group)
    app.add_typer(group, name="join")


def _group() -> None:
    """Make one answer of several stored results, such as those of models of several sizes.

    Prints its table and verdicts, and stores result and figures. No model is needed.
    """


def _join(name: str, options: JoinOptions, join: Join) -> None:
    from bertology.results.store import Store

    store = Store(options.store)
    loaded = {of: store.load(of) for of in options.results}
    if len({result.identity for result in loaded.values()}) < len(options.results):
        must = "name each result once"
        raise ParameterError("ID", f"join {name}", must, " ".join(options.results))
    keep_joined(join.join(list(loaded.values())), store)
