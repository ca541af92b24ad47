"""`bertology prune MODEL --task TASK --to FOLDER`: a smaller model at a price that is told."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import ClassVar

from bertology.cli.command import command
from bertology.cli.console import say_next, warn
from bertology.cli.option_groups import (
    MODEL_HELP,
    LoadingOptions,
    SmallerModelOptions,
    SourceOptions,
    values_of,
)
from bertology.cli.smaller import made_smaller, say_where, show_smaller
from bertology.cli.typer_options import argument
from bertology.parameters import parameter
from bertology.train.prune_settings import PruneSettings


@dataclass(frozen=True, kw_only=True)
class _Pruning(PruneSettings):
    """What `bt.prune` takes by the same names."""

    panel: ClassVar[str | None] = None
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


@command(
    "prune",
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
)
def prune(options: PruneOptions) -> None:
    """Cut layers, MLPs, heads or single weights out of a model, as far as a task's score allows.

    Some training examples rank the parts, others say how much may go, and held-out data, looked at
    once, tell the loss with its interval. The smaller model is saved with a card that says all of
    it. With --recover, more is cut and what is left is trained.

    Cutting parts makes a model smaller and faster. Single weights (--method magnitude, movement)
    become zeros: more of them can go, but the file is smaller only when packed, and not faster.

    If the command is stopped, the same command continues.
    """
    from bertology.run.pruning import prune as prune_model

    found = made_smaller(
        lambda watch: prune_model(
            options.model_source(),
            **values_of(options, SmallerModelOptions, _Pruning),
            watch=watch,
            **options.reading("prune"),
        )
    )
    show_smaller(found)
    if found.max_loss is not None and found.loss.low > found.max_loss:
        warn(
            f"On held-out data the loss is surely larger than {found.max_loss:.3g} points, more "
            "than on the data that chose. Allow less (--max-loss, --keep), or select on more "
            "(--limit)."
        )
    if not found.measured["knows"]:
        warn(
            "The model is not surely better than a constant answer any more: too much is gone. "
            "Keep more (--keep, --max-loss, --weights), or train for longer (--recover, --epochs)."
        )
    say_where(found)
    if "weights" not in found.found and found.times_as_fast() < 1.1:
        warn("It is hardly faster than the model before: whole layers save most (--max-loss).")
    folder = shlex.quote(str(found.folder))
    commands = [options.scored_again(folder, options.reading("prune"))]
    if not found.measured["plain"]:
        commands.append(f"bertology export-model {folder} --to {folder}-file")
    say_next(*commands)
