"""`bertology finetune`: fine-tune a pre-trained encoder on a task, once for each seed."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bertology.cli.command import command, command_line
from bertology.cli.console import say, say_next, show_table, warn
from bertology.cli.option_groups import (
    MODEL_HELP,
    LoadingOptions,
    SourceOptions,
    data_words,
    values_of,
)
from bertology.cli.typer_options import argument
from bertology.errors import InterruptedRunError
from bertology.parameters import flag, parameter

if TYPE_CHECKING:
    from bertology.train.records import TrainingRecord
    from bertology.train.tuned import Finetuned


@dataclass(frozen=True, kw_only=True)
class _Training:
    """What `bt.finetune` takes by the same names."""

    start: str = parameter(
        "pretrained",
        "pretrained: the weights as they are. random: all weights random, then fine-tuned. "
        "frozen: a random head and no training. frozen-features: only the head is trained.",
        choices=("pretrained", "random", "frozen", "frozen-features"),
    )
    ways: list[str] = field(
        default_factory=list,
        metadata={
            "help": "Another way to fine-tune, with its options if you like: adapters or "
            "adapters:size=16; all are listed above. May be given several times: ways combine.",
            "option": "way",
            "metavar": "WAY:OPTION=VALUE,…",
        },
    )
    epochs: int = parameter(3, "Passes over the training data.", minimum=1)
    batch_size: int = parameter(32, "Examples in one update.", minimum=1)
    rate: float | None = parameter(
        None,
        "The highest learning rate. If not given: 2e-5; 1e-4 for a hidden size below 512 and "
        "2e-4 below 256 (such as bertology-mini); 1e-3 where only the head is trained.",
        minimum=1e-9,
    )
    seeds: tuple[int, ...] = parameter(
        (0,), "One model for each seed: 0,1,2. It sets new weights, order of examples, dropout."
    )
    max_length: int | None = parameter(
        None, "Cut texts to so many tokens. If not given: to what the model can read.", minimum=3
    )
    early_stopping: int | None = parameter(
        None,
        "Stop after so many epochs without a better validation score; keep the best epoch.",
        minimum=1,
    )
    precision: str = parameter(
        "float32",
        "bfloat16: mixed precision, for GPUs; the weights stay float32.",
        choices=("float32", "bfloat16"),
    )
    limit: int | None = parameter(
        None, "Train on so many examples, drawn at random; all if not given.", minimum=1
    )
    validation_limit: int | None = parameter(
        None, "Validate on so many examples, drawn at random; all if not given.", minimum=1
    )
    train_split: str = parameter("train", "The split to train on.")
    split: str = parameter("validation", "The split to validate on.")
    to: str | None = parameter(
        None,
        "The folder for the models. If not given: results/finetuned/MODEL/TASK-START.",
        metavar="FOLDER",
    )
    force: bool = flag("Train again models that are already there.")


@dataclass(frozen=True, kw_only=True)
class FinetuneOptions(SourceOptions, LoadingOptions, _Training):
    """The options of `finetune`."""

    model: str = argument(f"{MODEL_HELP} It gets a new head.")
    task: str = argument("A corpus with a task: a name such as mrpc, a file, a folder or a hub id.")
    validation: str | None = parameter(
        None, "Other data for validation: a name, file, folder or hub id."
    )


@command(
    "finetune",
    [FinetuneOptions],
    examples=[
        "bertology finetune bertology-mini grammar-entailment --epochs 1 --batch-size 16",
        "bertology finetune bertology-mini mrpc --seeds 0,1,2 --to my-mrpc",
        "bertology finetune bertology-mini rte --start random --early-stopping 2",
        "bertology finetune bertology-mini mrpc --way adapters:size=16 --way layer_rates:decay=0.9",
        "bertology finetune user/model-on-the-hub reviews.csv --validation held-out.csv "
        "--columns text=review,label=stars",
    ],
    needs_input=True,
)
def finetune(options: FinetuneOptions) -> None:
    """Fine-tune a pre-trained model on a task, and get one model for each seed.

    TASK may be any corpus for classification, regression or multiple choice;
    all nine tasks of GLUE have names. Each model is an ordinary Hugging Face
    folder with a model card; its file bertology.json records how it was made.

    Finished models are kept. If the command is stopped, the same command
    continues.

    Ways to fine-tune (--way), each with its options and their defaults:

    - adapters:size=16: small bottlenecks in each layer are trained
    - bias_only: bias terms are trained
    - lora:rank=8,alpha=16,dropout=0.1: low-rank changes of queries and values
    - frozen_bottom:layers=1: the lowest layers stay as they are
    - top_again:layers=1: the highest layers begin with new weights
    - layer_rates:decay=0.9: lower layers learn with smaller rates
    - layer_mix:rate=0.01: the head reads a learnt mix of all layers
    - layer_choice:which=last-4,how=joined: the head reads chosen layers
    - mixout:share=0.5: weights are mixed with their pre-trained values
    - layer_drop:share=0.2: layers are left out at random
    - adversarial:steps=3,start=0.1,rate=0.1,limit=0.5: moved embeddings
    - substitution:share=0.1,by=random: some tokens are replaced
    - masked_lm:epochs=1,rate=0.0001,share=0.15: first more masked-LM training
    - intermediate:task=mnli,split=train,limit=0,epochs=1: first another task
    - siamese: both texts of a pair are read apart, and then compared
    - hex: for pairs; what a bag of words predicts is taken out of the answers
    """
    from bertology.run.finetuning import finetune as finetune_model

    if options.start == "frozen" and (options.early_stopping, options.rate) != (None, None):
        warn("--start frozen trains nothing: epochs, rate and early stopping have no effect.")
    try:
        found = finetune_model(
            options.model_source(),
            options.task,
            options.validation,
            **values_of(options, _Training),
            tell=say,
            **options.reading("finetune"),
        )
    except InterruptedRunError as stopped:
        again = command_line(without="--force")
        raise InterruptedRunError(stopped.problem, hint=f"Continue with: {again}") from None
    _tell_cut(found.records[0])
    _show(found)
    _show_next(found, options)


def _tell_cut(record: TrainingRecord) -> None:
    cut, unseen = record["truncated"], record["truncated_validation"]
    if cut or unseen:
        warn(
            f"Texts that were too long and were cut: {cut:,} of {record['train']['size']:,} for "
            f"training, {unseen:,} of {record['validation']['size']:,} for validation."
        )


def _show(found: Finetuned) -> None:
    metrics, several = list(found.scores), len(found.records) > 1
    rows: list[list[object]] = [
        [f"seed {r['settings']['seed']}", r["kept_epoch"], *(r["scores"][m] for m in metrics)]
        for r in found.records
    ]
    if several:
        rows.append(["mean", None, *(e.value for e in found.scores.values())])
    bounds = [
        "all equal" if e.low != e.low else f"{e.low:.3f} … {e.high:.3f}"
        for e in found.scores.values()
    ]
    rows.append([f"95 % interval, over {found.over}", None, *bounds])
    rows.append(["always the same label", None, *(found.constant[m] for m in metrics)])
    show_table(("", "epoch", *metrics), rows, title="Scores on the validation data")
    say(f"Models: {found.folder.parent}/seed-*" if several else f"The model: {found.folder}")


def _show_next(found: Finetuned, options: FinetuneOptions) -> None:
    if not found.learnt:
        warn(
            "The model has not learnt the task: its scores are not clearly better than always "
            "giving the same label. A study of its heads would show nothing. Train it again with "
            "more --epochs, another --rate or more data."
        )
        return
    record = found.records[0]
    data = data_words(record["validation"]["origin"]) or f"--task {record['task']}"
    rest = f"--model {shlex.quote(str(found.folder))} {data}"
    for name in ("allow_pickle", "trust_remote_code"):
        rest += f" --{name.replace('_', '-')}" * getattr(options, name)
    compared = ["attention-change"] if record["start"] == "pretrained" else []
    say_next(*(f"bertology run {study} {rest}" for study in ("head-ablation", *compared)))
