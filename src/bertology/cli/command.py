"""One factory for all commands: dataclasses of options and a function become a typer command."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from bertology.cli.console import examples
from bertology.cli.typer_options import given_values, in_options, options_of
from bertology.errors import ParameterError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_LINE: ContextVar[str] = ContextVar("command_line", default="bertology")


class PlainHelp:
    """A command whose help names no type beside `--help`, which takes no value."""

    def get_help_option(self, ctx: Any) -> Any:
        """The option `--help`."""
        found = super().get_help_option(ctx)  # type: ignore[misc]
        if found is not None:
            found.metavar = ""
        return found


class _PlainCommand(PlainHelp, TyperCommand):
    pass


class PlainGroup(PlainHelp, TyperGroup):
    """The same of a group of commands."""


@dataclass(frozen=True)
class Command:
    """A command: the function that does the work, its options, and examples for `--help`.

    `options` are frozen dataclasses. Their fields, declared with `parameter` or `flag`, become
    options (or arguments, see `typer_options.argument`). `work` gets one instance of each class.
    Its docstring is the help, and the first line of it stands in the list of commands.
    """

    name: str
    work: Callable[..., None]
    options: Sequence[type[DataclassInstance]] = ()
    examples: Sequence[str] = ()
    help: str | None = None  # in place of the docstring of `work`
    panel: str | None = None  # for options of a class without a `panel` of its own
    needs_input: bool = False  # without any argument or option, the help is shown

    def add_to(self, app: typer.Typer, *, kind: type[TyperCommand] | None = None) -> None:
        """Put the command into the app."""
        text = self.help or inspect.getdoc(self.work) or ""
        app.command(
            self.name,
            cls=kind or _PlainCommand,
            help=text,
            short_help=text.partition("\n")[0],
            epilog=examples(*self.examples),
            no_args_is_help=self.needs_input,
        )(self.function())

    def function(self) -> Callable[..., None]:
        """A function whose signature is the options, for typer to read."""

        def call(ctx: typer.Context, **given: object) -> None:
            if ctx.invoked_subcommand is not None:
                return  # this is a group, and its subcommand works
            try:
                self.work(*(kind(**given_values(kind, given)) for kind in self.options))
            except ParameterError as error:
                raise in_options(error, self.name, self.options, given) from error

        context = inspect.Parameter(
            "ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
        )
        signature = [context, *self._parameters()]
        call.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
        call.__annotations__ = {p.name: p.annotation for p in signature}
        call.__doc__ = self.help or self.work.__doc__
        return call

    def _parameters(self) -> list[inspect.Parameter]:
        found: dict[str, inspect.Parameter] = {}
        for kind in self.options:
            for option in options_of(kind, panel=self.panel):
                if option.name in found:
                    must = f"have another name: {self.name!r} has an option of this name"
                    raise ParameterError(option.name, kind.__name__, must, option.name)
                found[option.name] = option
        return list(found.values())


def command(
    name: str, options: Sequence[type[DataclassInstance]] = (), **more: Any
) -> Callable[[Callable[..., None]], Command]:
    """Makes a command of the function that does its work; see `Command`."""
    return lambda work: Command(name, work, options, **more)


def remember_command_line(words: Sequence[str]) -> None:
    """Keep the words that the user typed, for provenance and for hints."""
    _LINE.set(shlex.join(["bertology", *words]))


def command_line(*, without: str | None = None) -> str:
    """The command that the user typed; `without` leaves out a flag such as --force."""
    return shlex.join(word for word in shlex.split(_LINE.get()) if word != without)
