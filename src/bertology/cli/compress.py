"""`bertology compress MODEL --task TASK --method METHOD,… --to FOLDER`: a smaller model."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import typer

from bertology.cli.command import Command, command_line
from bertology.cli.console import say, say_next, show_table, warn
from bertology.cli.option_groups import MODEL_HELP, LoadingOptions, SourceOptions, data_words
from bertology.cli.typer_options import argument, required
from bertology.errors import InterruptedRunError
from bertology.parameters import flag, parameter

if TYPE_CHECKING:
    from bertology.train.compress.compressed import Compressed


@dataclass(frozen=True, kw_only=True)
class CompressOptions(SourceOptions, LoadingOptions):
    """The options of `compress`."""

    panel: ClassVar[str | None] = None
    model: str = argument(f"{MODEL_HELP} One without a head for a task is fine-tuned on it first.")
    task: str = required("The task: a name such as mrpc, a file, a folder or a hub id.")
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
    to: str = required("The folder for the smaller model.", metavar="FOLDER")
    epochs: int = parameter(
        3, "Passes over the training data of each training; epochs=… of a method goes before.",
        minimum=1,
    )  # fmt: skip
    batch_size: int = parameter(32, "Examples in one update.", minimum=1)
    rate: float | None = parameter(
        None, "The highest learning rate. If not given: as for bertology finetune.", minimum=1e-9
    )
    max_length: int | None = parameter(
        None, "Cut texts to so many tokens in training. If not given: to what the model can read.",
        minimum=3,
    )  # fmt: skip
    precision: str = parameter(
        "float32", "bfloat16: mixed precision in training, for GPUs.",
        choices=("float32", "bfloat16"),
    )  # fmt: skip
    seed: int = parameter(
        0, "Of new weights, order of examples, dropout, and of the examples that choose.", minimum=0
    )
    limit: int | None = parameter(
        None, "Train on so many examples, drawn at random; all if not given.", minimum=10
    )
    validation: str | None = parameter(
        None, "Other data to score on: a name, file, folder or hub id."
    )
    validation_limit: int | None = parameter(
        None, "Score on so many examples, drawn at random; all if not given.", minimum=2
    )
    train_split: str = parameter("train", "The split to train on.")
    split: str = parameter("validation", "The split to score on.")
    finetune: bool = flag(
        "Fine-tune the model on the task first, even if it already has a head for one."
    )
    force: bool = flag("Replace a model that is already in the folder.")


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
            options.task,
            options.validation,
            method=options.method,
            to=options.to,
            epochs=options.epochs,
            batch_size=options.batch_size,
            rate=options.rate,
            max_length=options.max_length,
            precision=options.precision,
            seed=options.seed,
            limit=options.limit,
            validation_limit=options.validation_limit,
            train_split=options.train_split,
            split=options.split,
            finetune=options.finetune,
            force=options.force,
            watch=watch,
            **options.reading("compress"),
        )
    except (InterruptedRunError, KeyboardInterrupt) as stopped:
        problem = getattr(stopped, "problem", "Stopped. What is finished is kept.")
        again = command_line(without="--force")
        raise InterruptedRunError(problem, hint=f"Continue with: {again}") from None
    _show(found)
    origin = {
        "name_or_path": options.validation or options.task,
        "split": options.split,
        **options.reading("compress"),
    }
    folder = shlex.quote(str(found.folder))
    commands = [f"bertology score {folder} {data_words(origin)}"]
    original = found.record["compressed_from"]["name"]
    if Path(original).expanduser().is_dir():
        both = f"{folder} --compare {shlex.quote(original)}"
        commands.append(f"bertology report {both} --measure  # what else was lost; some minutes")
    say_next(*commands)


def _show(found: Compressed) -> None:
    from bertology.train.compress.card import number_rows

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
