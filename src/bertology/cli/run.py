"""`bertology run STUDY`: one subcommand for each study, made from its fields and docstring."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from bertology.cli.console import examples, say, warn
from bertology.errors import ParameterError

if TYPE_CHECKING:
    from bertology.cli.run_options import RunOptions
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.results.result import Result
    from bertology.results.store import Store
    from bertology.studies.study import Study

__all__ = ["COMMAND", "add_to", "summary_line"]

COMMAND = "bertology.command"
"""Where the context keeps the command line, for provenance and for resuming."""

_EXAMPLE_MODEL, _EXAMPLE_TASK = "bertology-demo/model", "grammar-entailment"  # of `bertology demo`
_TASK_HEADS = ("classification", "token-classification", "multiple-choice")


class _Studies(TyperGroup):
    """Subcommands are found by name when asked for, so no other study is imported."""

    def list_commands(self, ctx: Any) -> list[str]:
        from bertology.studies import STUDIES

        return STUDIES.names()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        from bertology.studies import STUDIES

        return _command_of(cmd_name, STUDIES.get(cmd_name))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        # Typer's own message for an unknown name knows less than the registry's.
        name = args[0]
        return name, self.get_command(ctx, name), args[1:]


class _Study(TyperCommand):
    """Says what to do with a word that is no option: other commands take a model like that."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.allow_extra_args = True
        rest = super().parse_args(ctx, args)
        if ctx.args:
            ctx.fail(f"Unexpected {ctx.args[0]!r}. A model is named by --model {ctx.args[0]}")
        return rest


def add_to(app: typer.Typer) -> None:
    """Put `run` into the app."""
    group = typer.Typer(
        cls=_Studies,
        no_args_is_help=True,
        epilog=examples(
            "bertology run attention-maps --corpus grammar",
            f"bertology run head-ablation --model {_EXAMPLE_MODEL} --task {_EXAMPLE_TASK}",
            "bertology run head-ablation --help",
        ),
    )
    group.callback()(_group)
    app.add_typer(group, name="run")


def _group() -> None:
    """Ask a study's question of a model. What is stored is not computed again."""


def _command_of(name: str, kind: type[Study[Any]]) -> Any:
    from bertology.cli.options import options_of
    from bertology.cli.run_options import RunOptions

    own = options_of(kind, panel="Parameters of the study")
    common = options_of(RunOptions, panel="Options of every run")
    for option in own:
        if option.name in {c.name for c in common}:
            raise ParameterError(
                option.name, f"study {name!r}", "have another name: every run has it", option.name
            )
    app = typer.Typer(add_completion=False, rich_markup_mode="markdown")
    app.command(
        name=name,
        cls=_Study,
        help=inspect.getdoc(kind),
        short_help=summary_line(kind),
        epilog=examples(*_examples(name, kind)),
        # A study that needs no data can be run as it is: there is a model by default.
        no_args_is_help=kind.needs.task or bool(kind.needs.fields),
    )(_function(name, kind, [*common, *own]))
    command = typer.main.get_command(app)
    command.name = name
    return command


def summary_line(kind: type[Any]) -> str:
    """The first line of a docstring."""
    return (inspect.getdoc(kind) or "").partition("\n")[0]


def _examples(name: str, kind: type[Study[Any]]) -> list[str]:
    data = f" --task {_EXAMPLE_TASK}" if kind.needs.task else ""
    if kind.needs.fields and not data:
        data = " --corpus grammar"
    # The default model has no trained head for a task.
    model = f" --model {_EXAMPLE_MODEL}" if kind.needs.head in _TASK_HEADS else ""
    bundled, other = (f"{data} {more}".rstrip() for more in kind.help_options)
    return [
        f"bertology run {name}{model}{bundled}",
        f"bertology run {name} --model user/model-on-the-hub{other} --workers 2",
    ]


def _function(
    name: str, kind: type[Study[Any]], options: list[inspect.Parameter]
) -> Callable[..., None]:
    """A function whose signature is the options, for typer to read."""
    from bertology.cli.options import given_values
    from bertology.cli.run_options import RunOptions

    def command(ctx: typer.Context, **given: Any) -> None:
        study = kind(**given_values(kind, given))
        settings = RunOptions(**given_values(RunOptions, given))
        _execute(name, study, settings, command=ctx.meta.get(COMMAND))

    context = inspect.Parameter(
        "ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
    )
    # Typer asks for required options first only in the help, not in the signature.
    command.__signature__ = inspect.Signature([context, *options])  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in [context, *options]}
    return command


def _execute(name: str, study: Study[Any], options: RunOptions, *, command: str | None) -> None:
    from bertology.results.store import Store
    from bertology.run.api import make_engine
    from bertology.run.describing import described
    from bertology.run.local import cores
    from bertology.run.others import resolve_others
    from bertology.run.progress import choose_progress
    from bertology.run.requirements import check_corpus
    from bertology.run.session import Session

    store = Store(options.store)
    session = Session(
        store=store,
        engine=make_engine(options.engine, workers=options.workers),
        progress=choose_progress(None),
        force=options.force,
        batch_tokens=options.batch_tokens,
        cpus=max(1, cores() // max(1, options.workers)),
        command=command,
    )
    corpus = _load_corpus(options)
    check_corpus(name, study, corpus)  # cheaper to be told before a model is loaded
    encoder = _load_encoder(options, head=study.needs.head)
    if encoder.new_weights and study.needs.head != "base":
        warn(f"The {study.needs.head} head was started at random: scores are at chance level.")
    learned = described(encoder).get("tuned_from", {}).get("task")
    if study.needs.task and corpus is not None and learned not in (None, corpus.name):
        warn(f"This model was fine-tuned for {learned}, not for {corpus.name}.")
    others = resolve_others(
        study,
        encoder,
        allow_pickle=options.allow_pickle,
        trust_remote_code=options.trust_remote_code,
    )
    _present(session.run(name, study, encoder, corpus, others=others), store)


def _load_encoder(options: RunOptions, *, head: str) -> Encoder:
    from bertology.model.encoder import Encoder

    return Encoder.load(
        options.model,
        head=head,
        device=options.device,
        num_labels=options.num_labels,
        dtype=options.dtype,
        allow_pickle=options.allow_pickle,
        trust_remote_code=options.trust_remote_code,
    )


def _load_corpus(options: RunOptions) -> Corpus | None:
    from bertology.cli.options import columns_of
    from bertology.data.loading import load_corpus
    from bertology.run.api import resolve_corpus

    if options.task is not None and options.corpus is not None:
        raise ParameterError("--corpus", "run", "be left out when --task is given", options.corpus)
    wanted = options.task if options.corpus is None else options.corpus
    if wanted is None:
        return None
    columns: dict[str, Any] = columns_of(options.columns, of="run")
    corpus = load_corpus(
        wanted, split=options.split, limit=options.limit, root=options.root, **columns
    )
    return resolve_corpus(corpus, poses_task=options.task is not None)


def _present(result: Result, store: Store) -> None:
    from bertology.cli.results import show_result

    show_result(result)
    folder = store.folder(result.provenance)
    elsewhere = "" if store.url == "results" else f" --store {store.url}"
    short = result.identity[:8]
    say(f"Result:  {folder}")
    if result.figures():
        say(f"Figures: {folder}/figures/ ({', '.join(result.figures())})")
    say("Next:")
    say(f"  bertology show {short}{elsewhere}")
    say(f"  bertology export {short} --format csv --to tables{elsewhere}")
    if result.figures():
        say(f"  bertology export {short} --format pdf --to figures{elsewhere}")
