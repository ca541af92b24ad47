"""`bertology run STUDY`: one subcommand for each study, made from its fields and docstring."""

from __future__ import annotations

import inspect
import shlex
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import typer
from typer.core import TyperCommand

from bertology.cli.command import Command, PlainGroup, PlainHelp, command_line
from bertology.cli.console import examples, say, say_next, warn
from bertology.cli.option_groups import CorpusOptions, EngineOptions, LoadingOptions, StoreOptions
from bertology.errors import ParameterError
from bertology.parameters import flag, parameter

if TYPE_CHECKING:
    from typer._click import Command as ClickCommand
    from typer._click import Context

    from bertology.data.corpus import Corpus
    from bertology.registry import Registry
    from bertology.results.result import Result
    from bertology.results.store import Store
    from bertology.studies.study import Needs, Study

_EXAMPLE_MODEL, _EXAMPLE_TASK = "bertology-demo/model", "grammar-entailment"  # of `bertology demo`
_TASK_HEADS = ("classification", "token-classification", "multiple-choice")


@dataclass(frozen=True, kw_only=True)
class _NumberOptions:
    panel: ClassVar[str | None] = "Model"
    dtype: str = parameter(
        "float32", "The type of number to compute with.",
        choices=("float32", "bfloat16", "float16", "auto"),
    )  # fmt: skip
    num_labels: int | None = parameter(
        None, "If the model has no head: add one with random weights and so many labels.",
        minimum=1,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class RunOptions(EngineOptions, StoreOptions, CorpusOptions, _NumberOptions, LoadingOptions):
    """The options of every run, next to the study's own parameters."""

    panel: ClassVar[str | None] = None
    force: bool = flag("Compute again, even if the result is stored.")

    def load_corpora(self) -> list[Corpus | None]:
        """The data of each run."""
        return [self.load_corpus("run")]


@dataclass(frozen=True, kw_only=True)
class TaskRunOptions(RunOptions):
    """The options where data must have a task."""

    tasks: tuple[str, ...] = parameter(
        (), "Several tasks one after the other, in place of --task; and what joins their results."
    )

    def load_corpora(self) -> list[Corpus | None]:
        """The data of each task, all of them before any work."""
        if not self.tasks:
            return super().load_corpora()
        for option, given in (("--task", self.task), ("--corpus", self.corpus)):
            if given is not None:
                raise ParameterError(option, "run", "be left out when --tasks is given", given)
        if len(set(self.tasks)) < len(self.tasks):
            raise ParameterError("--tasks", "run", "name each task once", ",".join(self.tasks))
        return [replace(self, task=task).load_corpus("run") for task in self.tasks]


class QuestionGroup(PlainGroup, ABC):
    """One subcommand for each study or join; none is imported before it is needed."""

    @abstractmethod
    def registry(self) -> Registry[type[Any]]:
        """Where they are found by name."""

    @abstractmethod
    def command(self, name: str, kind: type[Any]) -> Command:
        """The subcommand of one of them."""

    def list_commands(self, ctx: Context) -> list[str]:
        return self.registry().names()

    def get_command(self, ctx: Context, cmd_name: str) -> ClickCommand:
        # An app of its own: docstrings of studies are Markdown.
        app = typer.Typer(add_completion=False, rich_markup_mode="markdown")
        self.command(cmd_name, self.registry().get(cmd_name)).add_to(app, kind=self.kind)
        command = typer.main.get_command(app)
        command.name = cmd_name
        return command

    kind: ClassVar[type[TyperCommand] | None] = None

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str, ClickCommand, list[str]]:
        # Typer's own message for an unknown name knows less than the registry's.
        name = args[0]
        return name, self.get_command(ctx, name), args[1:]


class _StudyCommand(PlainHelp, TyperCommand):
    """Explains --model to users who give the model without it, as other commands take it."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        ctx.allow_extra_args = True
        rest = super().parse_args(ctx, args)
        if ctx.args:
            ctx.fail(f"Unexpected {ctx.args[0]!r}. A model is named by --model {ctx.args[0]}")
        return rest


class _Studies(QuestionGroup):
    kind: ClassVar[type[TyperCommand] | None] = _StudyCommand

    def registry(self) -> Registry[type[Study]]:
        from bertology.studies import STUDIES

        return STUDIES

    def command(self, name: str, kind: type[Study]) -> Command:
        return Command(
            name,
            partial(_run, name),
            (TaskRunOptions if kind.needs.task else RunOptions, kind),
            examples=_examples(name, kind),
            help=inspect.getdoc(kind),
            panel="Parameters of the study",
            # A study that needs no data can be run as it is: there is a model by default.
            needs_input=kind.needs.task or bool(kind.needs.fields),
        )


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
    """Run one study on a model: prints its table and verdicts, and stores result and figures.

    A result that is stored is not computed again.
    """


def _examples(name: str, kind: type[Study]) -> list[str]:
    data = ""
    if kind.needs.task or kind.needs.fields:
        option = "--task" if kind.needs.task else "--corpus"
        data = f" {option} {_bundled_corpus(name, kind.needs)}"
    # The default model has no trained head for a task.
    model = f" --model {_EXAMPLE_MODEL}" if kind.needs.head in _TASK_HEADS else ""
    # Fields do not tell all that a study can be asked of: it may name its data itself.
    bundled, other = (
        f" {more}" if "--corpus" in more else f"{data} {more}".rstrip()
        for more in kind.help_options
    )
    return [
        f"bertology run {name}{model}{bundled}",
        f"bertology run {name} --model user/model-on-the-hub{other} --workers 2",
    ]


def _bundled_corpus(study: str, needs: Needs) -> str:
    """A corpus that has what the study needs: of the grammar its own, or the plainest; or any."""
    from bertology.data.catalog import entries

    known = entries()
    made = [name for name in known if name.startswith("grammar")]
    own = f"grammar-{study}"
    plain = [own, _EXAMPLE_TASK] if needs.task else ["grammar", "grammar-agreement"]
    fitting = (
        name
        for name in (*plain, *made, *known)
        if name in known
        and needs.fields <= set(map(str, known[name].fields))
        and (known[name].task is not None or not needs.task)
    )
    return next(fitting, plain[-1])


def _run(name: str, options: RunOptions, study: Study) -> None:
    from bertology.run.api import run_study

    session = options.session(options.store, force=options.force)
    model = replace(options.model_source(), dtype=options.dtype, num_labels=options.num_labels)
    results = []
    for corpus in options.load_corpora():
        result = run_study(name, study, session, model=model, corpus=corpus, notify=warn)
        present(result, session.store)
        results.append(result)
    if len(results) > 1:
        _join_tasks(name, results, session.store)


def _join_tasks(name: str, results: list[Result], store: Store) -> None:
    """Make and show what combines results of this study, and no others, over tasks."""
    from bertology.studies import JOINS

    for joining in JOINS.names():
        kind = JOINS.get(joining)
        if kind.sources == (name,) and kind.over:
            keep_joined(kind().join(results), store)


def keep_joined(found: Result, store: Store) -> None:
    """Store and print what was made of other results."""
    about = replace(found.provenance, command=command_line())
    store.save(replace(found, provenance=about))
    present(found, store)


def present(result: Result, store: Store) -> None:
    """Print a result that was made just now, where it lies, and what can be done with it."""
    from bertology.cli.results import show_result

    show_result(result)
    folder = store.folder(result.provenance)
    elsewhere = "" if store.url == "results" else f" --store {shlex.quote(store.url)}"
    short = result.identity[:8]
    say(f"Result:  {folder}")
    if result.figures():
        say(f"Figures: {folder}/figures/ ({', '.join(result.figures())})")
    files = ["--format csv,latex --to tables"]
    files += ["--format pdf --to figures"] if result.figures() else []
    say_next(
        f"bertology show {short}{elsewhere}",
        *(f"bertology export {short} {how}{elsewhere}" for how in files),
    )
