"""The `bertology` command: its subcommands, and how errors are shown."""

from __future__ import annotations

import shlex
import signal
import sys
import traceback
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from bertology import __version__
from bertology.cli import (
    annotate,
    ask,
    claims,
    compress,
    conclude,
    datasets,
    demo,
    distil_static,
    explore,
    export_model,
    families,
    finetune,
    join,
    models,
    pretrain,
    prune,
    report,
    reproduce,
    results,
    run,
    score,
    steps,
    studies,
    verify,
    view,
)
from bertology.cli.command import PlainGroup, command_line, remember_command_line
from bertology.cli.console import examples, say_error
from bertology.errors import BertologyError, InterruptedRunError
from bertology.quiet import be_verbose, hush, is_verbose

if TYPE_CHECKING:
    from typer._click import Context


class _Cli(PlainGroup):
    """The root command: keeps the command line, and turns errors into messages."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        remember_command_line(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Context) -> object:
        try:
            return super().invoke(ctx)
        except BertologyError as error:
            _trace_if_verbose()
            say_error(error)
            raise typer.Exit(error.exit_code) from None
        except KeyboardInterrupt:
            stopped = InterruptedRunError(
                "Interrupted. What is finished is kept.", hint=f"To go on: {command_line()}"
            )
            say_error(stopped)
            raise typer.Exit(stopped.exit_code) from None
        except BrokenPipeError:
            # `bertology list | head` closes the output early; that is no error.
            sys.stderr.close()
            raise typer.Exit(0) from None
        except (typer.Exit, typer.Abort, typer.TyperException):
            raise  # typer handles them
        except Exception as error:
            raise _unexpected(error) from None


app = typer.Typer(
    cls=_Cli,
    name="bertology",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog=examples(
        "bertology studies",
        "bertology run attention-maps --corpus grammar",
        "bertology list",
    ),
)
for one in (
    demo.demo,
    explore.explore,
    view.view,
    ask.ask,
    run,
    steps.steps,
    join,
    score.score,
    report.report,
    reproduce.reproduce,
    verify.verify,
    conclude.conclude,
    conclude.drop,
    studies.list_studies,
    finetune.finetune,
    prune.prune,
    compress.compress,
    export_model.export_model,
    distil_static.distil_static,
    pretrain.pretrain,
    annotate.annotate,
    models.list_models,
    datasets.list_datasets,
    claims,
    results.list_results,
    results.show,
    results.export,
    families.list_families,
):
    one.add_to(app)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"bertology {__version__}")
        raise typer.Exit


@app.callback()
def root(
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", "-v", help="Show messages of the libraries, and tracebacks.", metavar=""
        ),
    ] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version.", metavar=""
        ),
    ] = False,
) -> None:
    """Study BERT-like encoders: see attention, disable parts, and test claims of the literature."""
    if verbose:
        be_verbose()
    hush()


def _trace_if_verbose() -> None:
    if is_verbose():
        traceback.print_exc()


def _unexpected(error: Exception) -> typer.Exit:
    _trace_if_verbose()
    words = shlex.split(command_line())
    again = shlex.join([words[0], "-v", *words[1:]])
    hint = None if is_verbose() else f"This is a bug. For the traceback run with -v: {again}"
    text = str(error) or "no further message"
    say_error(BertologyError(f"Unexpected {type(error).__name__}: {text}", hint=hint))
    return typer.Exit(1)


def main() -> None:
    """Run the command line; the entry point of the console script."""
    signal.signal(signal.SIGTERM, _stop)
    app(prog_name="bertology")


def _stop(number: int, frame: FrameType | None) -> None:
    """TERM, which batch systems send when the time is up, saves what Ctrl-C saves."""
    signal.signal(number, signal.SIG_DFL)  # a second one ends the process at once
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
