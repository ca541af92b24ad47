"""`bertology prune MODEL --task TASK --to FOLDER`: a smaller model at a price that is told."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import typer

from bertology.cli.command import Command, command_line
from bertology.cli.console import say, say_next, show_table, warn
from bertology.cli.option_groups import (
    MODEL_HELP,
    LoadingOptions,
    SmallerModelOptions,
    SourceOptions,
    values_of,
)
from bertology.cli.typer_options import argument
from bertology.errors import InterruptedRunError
from bertology.parameters import parameter

if TYPE_CHECKING:
    from bertology.train.pruned import Pruned


@dataclass(frozen=True, kw_only=True)
class _Pruning:
    """What `bt.prune` takes by the same names."""

    panel: ClassVar[str | None] = None
    method: str = parameter(
        "measured",
        "measured: layers, MLPs and heads are cut, by what happens without each. importance: heads "
        "and MLPs, by gradients. magnitude: the smallest weights become zero. movement: weights "
        "that a training moves towards zero.",
        choices=("measured", "importance", "magnitude", "movement"),
    )
    max_loss: float | None = parameter(
        None,
        "How many points of the task's main score may be lost: 1 is 0.01. If neither this nor "
        "--keep nor --weights is given: 1.",
        minimum=0.0,
    )
    keep: float | None = parameter(
        None, "In place of --max-loss: the share of the score that must be kept, such as 0.9."
    )
    weights: float | None = parameter(
        None, "In place of --max-loss, for magnitude and movement: the share of weights that stays."
    )
    parts: tuple[str, ...] = parameter(
        (),
        "What may be cut: layers,mlps,heads or some of them; all that the method can cut if not "
        "given. With layers alone, plain transformers loads the model.",
    )
    epochs: int | None = parameter(
        None, "For movement: how many epochs each training has; 6 if not given.", minimum=1
    )
    recover: int = parameter(
        0, "Train what is left for so many epochs, on all of the training data.", minimum=0
    )
    cut_loss: float | None = parameter(
        None,
        "With --recover: how many points may be lost before the training. If not given: 5 times "
        "as many as in the end.",
        minimum=0.0,
    )
    recover_limit: int | None = parameter(
        None,
        "With --recover, and for movement: train on so many examples, drawn at random; all if not "
        "given.",
        minimum=1,
    )
    limit: int | None = parameter(
        2000, "Rank and select on so many training examples, drawn at random.", minimum=40
    )
    train_split: str = parameter("train", "The split to rank and select on.")
    seed: int = parameter(0, "Which training examples rank parts, and which select.", minimum=0)
    batch_tokens: int = parameter(
        4096, "Tokens in one batch. More is faster on a GPU, fewer need less memory.", minimum=1
    )


@dataclass(frozen=True, kw_only=True)
class PruneOptions(SmallerModelOptions, SourceOptions, LoadingOptions, _Pruning):
    """The options of `prune`."""

    panel: ClassVar[str | None] = None
    model: str = argument(f"{MODEL_HELP} It must have been fine-tuned on the task.")


def add_to(app: typer.Typer) -> None:
    """Put `prune` into the app."""
    Command(
        "prune",
        prune,
        [PruneOptions],
        examples=[
            "bertology prune bertology-demo/model --task grammar-entailment --to small",
            "bertology prune my-model --task mrpc --max-loss 2 --parts layers --to small",
            "bertology prune my-model --task sst-2 --recover 2 --to small",
            "bertology prune my-model --task mrpc --method importance --keep 0.9 --to small",
            "bertology prune my-model --task mrpc --method movement --weights 0.3 --to sparse",
            "bertology prune my-model --task train.csv --validation held-out.csv "
            "--columns text=review,label=stars --to small",
        ],
        needs_input=True,
    ).add_to(app)


def prune(options: PruneOptions) -> None:
    """Cut layers, MLPs, heads or single weights out of a model, as far as a task's score allows.

    Some training examples rank the parts, others say how much may go, and held-out data, looked at
    once, tell the loss with its interval. The smaller model is saved with a card that says all of
    it. With --recover, more is cut and what is left is trained.

    Cutting parts makes a model smaller and faster. Single weights (--method magnitude, movement)
    become zeros: more of them can go, but the file is smaller only when packed, and not faster.

    If the command is stopped, the same command continues.
    """
    from bertology.run.progress import TrainingLine, choose_progress
    from bertology.run.pruning import prune as prune_model
    from bertology.train.prune_settings import MOVEMENT_EPOCHS
    from bertology.train.pruned import PruneWatch

    epochs = options.recover or options.epochs or MOVEMENT_EPOCHS
    line = TrainingLine("what is left", epochs, choose_progress(None), say)
    try:
        found = prune_model(
            options.model_source(),
            **values_of(options, SmallerModelOptions, _Pruning),
            watch=PruneWatch(lambda text: say(f"  {text}"), line.step, command_line()),
            **options.reading("prune"),
        )
    except (InterruptedRunError, KeyboardInterrupt) as stopped:
        problem = getattr(stopped, "problem", "Stopped. The cuts so far are kept.")
        raise InterruptedRunError(problem, hint=f"Continue with: {command_line()}") from None
    finally:
        line.stop()
    _show(found)
    folder = shlex.quote(str(found.folder))
    commands = [options.scored_again(folder, options.reading("prune"))]
    if not found.plain:
        commands.append(f"bertology export-model {folder} --to {folder}-file")
    say_next(*commands)


def _show(found: Pruned) -> None:
    say(found.sentence, style="bold")
    (before, after), sizes = found.speeds, found.parameters
    rows = [
        (found.metric, f"{found.before.value:.3f}", f"{found.after.value:.3f}"),
        *(
            (f"  {name}", f"{getattr(found.before, end):.3f}", f"{getattr(found.after, end):.3f}")
            for name, end in (("at least (95 %)", "low"), ("at most", "high"))
        ),
        ("parameters", f"{sizes[0]:,}", f"{sizes[1]:,}"),
        ("weights (MB)", *(f"{size:,.1f}" for size in found.megabytes)),
        *([("  packed with gzip", *(f"{n:,.1f}" for n in found.packed))] if found.packed else []),
        ("one text alone (ms)", *(f"{spent:.1f}" for spent in found.latencies)),
        (
            "examples a second",
            f"{before.examples_per_second:,.0f}",
            f"{after.examples_per_second:,.0f}",
        ),
    ]
    show_table(("", "before", "after"), rows)
    if found.max_loss is not None and found.loss.low > found.max_loss:
        warn(
            f"On held-out data the loss is surely larger than {found.max_loss:.3g} points, more "
            "than on the data that chose. Allow less (--max-loss, --keep), or select on more "
            "(--limit)."
        )
    if not found.knows:
        warn(
            "The model is not surely better than a constant answer any more: too much is gone. "
            "Keep more (--keep, --max-loss, --weights), or train for longer (--recover, --epochs)."
        )
    how = "plain transformers" if found.plain else "bt.load(…, head='classification')"
    say(f"The model: {found.folder} (its README.md tells all of this); load it with {how}")
    if found.mask is None and found.times_as_fast < 1.1:
        warn("It is hardly faster than the model before: whole layers save most (--max-loss).")
