"""`bertology pretrain`: train a BERT from text, by a recipe."""

from __future__ import annotations

import os
import shlex
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from bertology.cli.command import command, command_line
from bertology.cli.console import say, say_next, show_table
from bertology.cli.option_groups import DeviceOptions
from bertology.errors import BertologyError, InterruptedRunError, ParameterError
from bertology.parameters import flag, parameter

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from bertology.train.pretrain.log import StepReport
    from bertology.train.pretrain.project import PretrainingPlan
    from bertology.train.pretrain.recipe import Recipe

EXAMPLE = """\
# A recipe for `bertology pretrain`. This one trains on sentences of the bundled grammar: it needs
# no files and no network, and takes about a minute on two cores.
#
#   bertology pretrain --config recipe.yaml --to my-bert

text:
  corpus: grammar          # any name that `bertology datasets` lists
  examples: 12000
  together: 12             # so many sentences make one document
  held_out: 0.03           # share of the documents that is only used for evaluation
  # Your own text: one sentence per line, an empty line between documents. Paths are relative
  # to the folder of this file.
  # files: [texts/*.txt, more/*.txt.xz, pairs.jsonl]
  # sources:               # for the model card
  #   - {name: Wikipedia, licence: CC BY-SA 3.0, words: 30000000}

vocabulary:
  size: 1000               # WordPiece; or  from: a folder with a tokenizer
  lowercase: true

model:
  layers: 2
  heads: 4
  hidden: 64
  max_length: 64
  dropout: 0.0
  spread: 0.1              # standard deviation of the first weights; small models need large ones

objective:
  pairing: nsp             # full-sentences, stream, nsp, sop, three-way, translation, labelled
  masking: {units: words, share: 0.15}
  losses: [mlm, sentence]

training:
  steps: 500
  batch_tokens: 2048       # in one update
  phases: [{length: 64, share: 1.0}]
  learning_rate: 2e-3
  log_every: 20
  evaluate_every: 100
  save_every: 100          # a stopped run continues from the last saved state

seed: 0

card:
  license: apache-2.0
  language: en
"""

_QUIET_SECONDS = 30  # between two lines of output where there is no terminal for a progress bar


@dataclass(frozen=True, kw_only=True)
class PretrainOptions(DeviceOptions):
    """The options of `pretrain`."""

    config: Path | None = parameter(None, "The recipe: a YAML file.", metavar="FILE")
    to: Path | None = parameter(
        None, "The folder for the model and all files of the training.", metavar="FOLDER"
    )
    steps: int | None = parameter(
        None, "Train for so many steps, not those of the recipe.", minimum=1
    )
    fresh: bool = flag("Delete the training state in the folder and start again.")
    dry_run: bool = flag("Show size, steps, tokens and disk space, and do nothing.")
    example: bool = flag("Print an example of a recipe, and do nothing.")


@command(
    "pretrain",
    [PretrainOptions],
    examples=[
        "bertology pretrain --example > recipe.yaml",
        "bertology pretrain --config recipe.yaml --to my-bert --dry-run",
        "bertology pretrain --config recipe.yaml --to my-bert",
        "torchrun --nproc-per-node 4 -m bertology pretrain --config recipe.yaml --to my-bert",
    ],
)
def pretrain(options: PretrainOptions) -> None:
    """Pre-train a BERT on text by a recipe, and get the model with its tokenizer and model card.

    Makes a vocabulary, prepares the text, trains and saves. If the command is stopped, the same
    command continues: vocabulary, prepared text, training state and model are kept in the folder.
    """
    if options.example:
        typer.echo(EXAMPLE, nl=False)
        return
    recipe = _recipe(options.config, options.steps)
    if options.dry_run:
        _show_plan(recipe, options.to)
        return
    if options.to is None:
        raise ParameterError("to", "bertology pretrain", "name a folder: --to my-bert", None)
    _train(recipe, options.to, device=options.device, fresh=options.fresh)


def _recipe(config: Path | None, steps: int | None) -> Recipe:
    from bertology.train.pretrain.config_files import read_recipe

    if config is None:
        raise BertologyError(
            "A recipe is needed: --config recipe.yaml",
            hint="Begin with an example: bertology pretrain --example > recipe.yaml",
        )
    recipe = read_recipe(config)
    return recipe if steps is None else recipe.with_steps(steps)


def _command_to_continue() -> str:
    """The same command without --fresh, which would start again."""
    command = command_line(without="--fresh")
    count = os.environ.get("LOCAL_WORLD_SIZE", "1")
    if count == "1":
        return command
    return f"torchrun --nproc-per-node {count} -m {command}"


def _train(recipe: Recipe, to: Path, *, device: str, fresh: bool) -> None:
    from bertology.train.pretrain.materials import is_first
    from bertology.train.pretrain.project import make

    line, hint = _Line() if is_first() else None, f"Continue with: {_command_to_continue()}"
    try:
        record = make(
            recipe,
            to,
            device=device,
            fresh=fresh,
            tell=say if line else lambda text: None,
            progress=line.show if line else lambda report: None,
        )
    except InterruptedRunError as stopped:
        raise InterruptedRunError(stopped.problem, hint=hint) from None
    except KeyboardInterrupt:
        raise InterruptedRunError(
            "Stopped before or after training; what was finished is kept.", hint=hint
        ) from None
    finally:
        if line:
            line.stop()
    if line:
        say(f"Held out: {_scores(record['scores'])}")
        say(f"The model: {to / 'model'}  (the log: {to / 'log.jsonl'})")
        model = shlex.quote(str(to / "model"))
        say_next(f"bertology run attention-maps --model {model} --corpus grammar")


class _Line:
    """The progress bar: step, losses, speed and time left."""

    def __init__(self) -> None:
        self._live = sys.stderr is not None and sys.stderr.isatty()
        self._bar: tuple[Progress, TaskID] | None = None
        self._began: tuple[int, float] | None = None
        self._said = time.monotonic()

    def show(self, report: StepReport) -> None:
        """Show a report."""
        # The time left is computed from the steps of this process, not of earlier ones.
        self._began = self._began or (report.step, report.seconds)
        text = f"{_numbers(report)}  {report.tokens_per_second:,.0f} tokens/s"
        if self._live:
            self._move(report, text)
        if report.scores is not None:
            self._say(f"step {report.step:,}, held out: {_scores(report.scores)}")
        elif not self._live and time.monotonic() - self._said > _QUIET_SECONDS:
            say(f"step {report.step:,} of {report.total:,}: {text}  left {self._left(report)}")
            self._said = time.monotonic()

    def _move(self, report: StepReport, text: str) -> None:
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

            made = Progress(
                TextColumn("step"),
                MofNCompleteColumn(),
                BarColumn(bar_width=20),
                TextColumn("{task.description}"),
                TextColumn("left {task.fields[left]}"),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar = made, made.add_task("", total=report.total, left="?")
            made.start()
        bar, task = self._bar
        bar.update(task, completed=report.step, description=text, left=self._left(report))

    def _say(self, text: str) -> None:
        """Print above the bar, where both are on one terminal."""
        if self._bar is not None and sys.stdout.isatty():
            self._bar[0].console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            say(text)

    def _left(self, report: StepReport) -> str:
        step, seconds = self._began or (0, 0.0)
        if report.step > step:
            each = (report.seconds - seconds) / (report.step - step)
        else:
            each = report.seconds / max(report.step, 1)
        left = round((report.total - report.step) * each)
        return f"{left // 3600}:{left // 60 % 60:02d}:{left % 60:02d}"

    def stop(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar[0].stop()


def _numbers(report: StepReport) -> str:
    return "  ".join(
        f"{name} {loss:.3f} ({100 * report.accuracies[name]:.1f} %)"
        if name in report.accuracies
        else f"{name} {loss:.3f}"
        for name, loss in report.losses.items()
    )


def _scores(scores: dict[str, float]) -> str:
    return ", ".join(
        f"{name.replace('_', ' ')} " + (f"{100 * v:.1f} %" if "accuracy" in name else f"{v:.3f}")
        for name, v in scores.items()
    )


def _show_plan(recipe: Recipe, to: Path | None) -> None:
    from bertology.train.pretrain.project import plan

    found = plan(recipe, to)
    show_table(("", ""), _plan_rows(found), title="The plan; nothing was done")


def _plan_rows(found: PretrainingPlan) -> list[tuple[str, str]]:
    unknown = "known once the text is prepared"
    prepared = found.text_tokens is not None
    return [
        ("parameters", ("" if prepared else "at most ") + f"{found.parameters:,}"),
        ("pieces in the vocabulary", ("" if prepared else "at most ") + f"{found.vocabulary:,}"),
        ("steps", f"{found.steps:,}"),
        ("tokens per update", f"{found.tokens_per_update:,}"),
        ("tokens in all", f"{found.steps * found.tokens_per_update:,}"),
        ("tokens of text", f"{found.text_tokens:,}" if prepared else unknown),
        ("passes over the text", unknown if found.passes is None else f"{found.passes:.2f}"),
        *((f"disk, {k}", f"{v / 1e6:,.1f} MB") for k, v in found.disk.items()),
        *(() if prepared else (("disk, shards", unknown),)),
    ]
