"""`bertology compress MODEL --task TASK --method METHOD,… --to FOLDER`: a smaller model."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path
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
from bertology.parameters import flag, parameter
from bertology.train.compress.settings import CompressSettings

if TYPE_CHECKING:
    from bertology.train.compress.compressed import Compressed


@dataclass(frozen=True, kw_only=True)
class _Compressing(CompressSettings):
    """What `bt.compress` takes by the same names."""

    panel: ClassVar[str | None] = None
    method: list[str] = field(
        metadata={
            "help": "Methods, each with its options, applied one after the other: "
            "low_rank:share=0.3,int8. Layers and parts: layer_choice, layer_drop, "
            "heads_and_mlps. Students: soft_labels, patient, tiny, minilm, theseus, distil_text, "
            "small_vocabulary, bilstm. Other parts: low_rank, factorised, token_elimination, "
            "early_exit. Zeros: magnitude, movement, rewound. Fewer bits: half, int8, int8_aware, "
            "mixed_precision, dictionary. A baseline without a teacher: alone. May be given "
            "several times.",
            "metavar": "METHOD:OPTION=VALUE,…",
        },
    )
    limit: int | None = parameter(
        None, "Train on so many examples, drawn at random; all if not given.", minimum=10
    )
    train_split: str = parameter("train", "The split to train on.")
    finetune: bool = flag(
        "Fine-tune the model on the task first, even if it already has a head for one."
    )


@dataclass(frozen=True, kw_only=True)
class CompressOptions(SmallerModelOptions, SourceOptions, LoadingOptions, _Compressing):
    """The options of `compress`."""

    panel: ClassVar[str | None] = None
    model: str = argument(f"{MODEL_HELP} One without a head for a task is fine-tuned on it first.")


def add_to(app: typer.Typer) -> None:
    """Put `compress` into the app."""
    Command(
        "compress",
        compress,
        [CompressOptions],
        examples=[
            "bertology compress bertology-mini --task grammar-entailment --method half --epochs 1 "
            "--limit 400 --validation-limit 200 --to small",
            "bertology compress my-model --task mrpc --method soft_labels:layers=6,int8 --to small",
            "bertology compress my-model --task sst-2 --method layer_choice:layers=6,epochs=0 "
            "--method low_rank:share=0.5,epochs=0 --method soft_labels --to small",
            "bertology compress my-model --task train.csv --validation held-out.csv "
            "--columns text=review,label=stars --method magnitude:weights=0.3 --to sparse",
        ],
        needs_input=True,
    ).add_to(app)


def compress(options: CompressOptions) -> None:
    """Make a model smaller by any methods of compression, and measure what that saves and costs.

    The smaller model is saved with a card: size on disk, parameters, memory, speed one by one and
    in batches of 32, the score with its interval beside that of the original, which answers
    changed, and what was done. Nothing is chosen by the held-out data. The page
    docs/how-to/compress.md tells of all methods and their options.

    If the command is stopped, even killed, the same command continues.
    """
    from bertology.run.compressing import compress as compress_model
    from bertology.run.progress import TrainingLine, choose_progress, started_progress
    from bertology.train.compress.work import CompressWatch

    watch = CompressWatch(
        tell=lambda text: say(f"  {text}"),
        training=lambda name, epochs: TrainingLine(name, epochs, choose_progress(None), say),
        counting=started_progress,
        command=command_line(without="--force"),
    )
    try:
        found = compress_model(
            options.model_source(),
            **values_of(options, SmallerModelOptions, _Compressing),
            watch=watch,
            **options.reading("compress"),
        )
    except (InterruptedRunError, KeyboardInterrupt) as stopped:
        problem = getattr(stopped, "problem", "Stopped. What is finished is kept.")
        again = command_line(without="--force")
        raise InterruptedRunError(problem, hint=f"Continue with: {again}") from None
    _show(found)
    folder = shlex.quote(str(found.folder))
    commands = [options.scored_again(folder, options.reading("compress"))]
    original = found.record["compressed_from"]["name"]
    if Path(original).expanduser().is_dir():
        both = f"{folder} --compare {shlex.quote(original)}"
        commands.append(f"bertology report {both} --measure  # what else was lost; some minutes")
    say_next(*commands)


def _show(found: Compressed) -> None:
    from bertology.train.compress.compressed import number_rows

    say(found.sentence, style="bold")
    show_table(("", "original", "this model"), number_rows(found))
    flips = found.measured["flips"]
    if "changed" in flips:
        say(
            f"{flips['changed']:,} of {flips['examples']:,} answers changed: {flips['lost']:,} "
            f"were right before, {flips['won']:,} are right now (flips.json)."
        )
    if not found.measured["knows"]:
        warn(
            "The model is not surely better than a constant answer: compress it less, or train it "
            "for longer (--epochs)."
        )
    plain = "plain transformers" if found.measured["plain"] else "bt.load(…, head='classification')"
    say(f"The model: {found.folder} (its README.md tells all of this); load it with {plain}")
