"""`bertology compress MODEL --task TASK --method METHOD,… --to FOLDER`: a smaller model."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path
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
from bertology.parameters import flag, parameter
from bertology.train.compress.settings import CompressSettings


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
            "mixed_precision, dictionary. As far as the score allows: prune. A baseline without a "
            "teacher: alone. May be given several times.",
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


@command(
    "compress",
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
)
def compress(options: CompressOptions) -> None:
    """Make a model smaller by any methods of compression, and measure what that saves and costs.

    The smaller model is saved with a card: size on disk, parameters, memory, speed one by one and
    in batches of 32, the score with its interval beside that of the original, which answers
    changed, and what was done. Nothing is chosen by the held-out data. The page
    docs/how-to/compress.md tells of all methods and their options.

    If the command is stopped, even killed, the same command continues.
    """
    from bertology.run.compressing import compress as compress_model

    found = made_smaller(
        lambda watch: compress_model(
            options.model_source(),
            **values_of(options, SmallerModelOptions, _Compressing),
            watch=watch,
            **options.reading("compress"),
        )
    )
    show_smaller(found)
    if not found.measured["knows"]:
        warn(
            "The model is not surely better than a constant answer: compress it less, or train it "
            "for longer (--epochs)."
        )
    say_where(found)
    folder = shlex.quote(str(found.folder))
    commands = [options.scored_again(folder, options.reading("compress"))]
    original = found.record["compressed_from"]["name"]
    if Path(original).expanduser().is_dir():
        both = f"{folder} --compare {shlex.quote(original)}"
        commands.append(f"bertology report {both} --measure  # what else was lost; some minutes")
    say_next(*commands)
