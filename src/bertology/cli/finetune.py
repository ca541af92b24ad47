"""`bertology finetune`: fine-tune a pre-trained encoder on a task, once for each seed."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from bertology.cli.command import Command, command_line
from bertology.cli.console import say, show_table, warn
from bertology.cli.option_groups import MODEL_HELP, LoadingOptions, SourceOptions, data_words
from bertology.cli.typer_options import argument
from bertology.errors import InterruptedRunError, ParameterError
from bertology.parameters import flag, parameter

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus
    from bertology.train.finetune import Step
    from bertology.train.records import TrainingRecord
    from bertology.train.tuning import TuningJob

__all__ = ["FinetuneOptions", "add_to"]


@dataclass(frozen=True, kw_only=True)
class FinetuneOptions(SourceOptions, LoadingOptions):
    """The options of `finetune`."""

    model: str = argument(f"{MODEL_HELP} It gets a new head.")
    task: str = argument("A corpus with a task: a name such as mrpc, a file, a folder or a hub id.")
    start: str = parameter(
        "pretrained",
        "pretrained: the weights as they are. random: all weights random, then fine-tuned. "
        "frozen: a random head and no training. frozen-features: only the head is trained.",
        choices=("pretrained", "random", "frozen", "frozen-features"),
    )
    epochs: int = parameter(3, "Passes over the training data.", minimum=1)
    batch_size: int = parameter(32, "Examples in one update.", minimum=1)
    rate: float | None = parameter(
        None,
        "The highest learning rate. If not given: 2e-5; 1e-4 for a hidden size below 512 and "
        "3e-4 below 256 (such as bertology-mini); 1e-3 where only the head is trained.",
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
    validation: str | None = parameter(
        None, "Other data for validation: a name, file, folder or hub id."
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


def add_to(app: typer.Typer) -> None:
    """Put `finetune` into the app."""
    Command(
        "finetune",
        finetune,
        [FinetuneOptions],
        examples=[
            "bertology finetune bertology-mini grammar-entailment --epochs 1 --batch-size 16",
            "bertology finetune bertology-mini mrpc --seeds 0,1,2 --to my-mrpc",
            "bertology finetune bertology-mini rte --start random --early-stopping 2",
            "bertology finetune user/model-on-the-hub reviews.csv --validation held-out.csv "
            "--columns text=review,label=stars",
        ],
        needs_input=True,
    ).add_to(app)


def finetune(options: FinetuneOptions) -> None:
    """Fine-tune a pre-trained model on a task, and get one model for each seed.

    TASK may be any corpus for classification or regression; all nine tasks of GLUE have names.
    Each model is an ordinary Hugging Face folder with a model card; its file bertology.json
    records how it was made.

    Finished models are kept. If the command is stopped, the same command continues.
    """
    from bertology.train.tuning import make_tuned

    if not options.seeds or len(set(options.seeds)) < len(options.seeds):
        raise ParameterError("--seeds", "finetune", "name each seed once", list(options.seeds))
    job = _job(options)
    place = Path(options.to) if options.to else _default_place(options.model, job)
    _tell_job(job, options)
    records: list[TrainingRecord] = []
    for seed in options.seeds:
        line = _Line(seed, job.settings.epochs)
        try:
            record = make_tuned(
                place / f"seed-{seed}",
                replace(job, settings=replace(job.settings, seed=seed)),
                force=options.force,
                progress=line.show,
                tell=say,
            )
        except (InterruptedRunError, KeyboardInterrupt) as stopped:
            done = f"{len(records)} of {len(options.seeds)} models are finished"
            problem = getattr(stopped, "problem", "Stopped.")
            again = command_line(without="--force")
            raise InterruptedRunError(
                f"{problem} {done}.", hint=f"Continue with: {again}"
            ) from None
        finally:
            line.stop()
        records.append(record)
    _tell_cut(records[0])
    _show(records, place)


def _job(options: FinetuneOptions) -> TuningJob:
    from bertology.train.encoded import task_of
    from bertology.train.finetune import FinetuneSettings
    from bertology.train.starts import default_rate, find_start
    from bertology.train.tuning import TuningJob, check_apart

    train, validation = _corpora(options)
    for corpus in (train, validation):
        task_of(corpus)
    check_apart(train, validation)
    encoder = options.model_source().load()
    encoder.require_tokenizer()
    start = find_start(options.start)
    rate = options.rate
    if rate is None:
        rate = default_rate(start, encoder.shape.hidden)
    settings = FinetuneSettings(
        epochs=options.epochs,
        batch_size=options.batch_size,
        learning_rate=rate,
        max_length=options.max_length,
        early_stopping=options.early_stopping,
        precision=options.precision,
    )
    return TuningJob(encoder, train, validation, start, settings)


def _corpora(options: FinetuneOptions) -> tuple[Corpus, Corpus]:
    from bertology.run.api import resolve_corpus

    reading = options.reading("finetune")
    train, validation = (
        resolve_corpus(name, must_have_task=True, split=split, limit=limit, **reading)
        for name, split, limit in (
            (options.task, options.train_split, options.limit),
            (options.validation or options.task, options.split, options.validation_limit),
        )
    )
    return train, validation


def _default_place(model: str, job: TuningJob) -> Path:
    name = Path(model.rstrip("/")).name or model
    return Path("results") / "finetuned" / name / f"{job.train.name}-{job.start.name}"


def _tell_job(job: TuningJob, options: FinetuneOptions) -> None:
    say(f"{job.encoder.name}: {job.start.title}", style="bold")
    learned = f"{len(job.train):,} training examples, " * (job.start.learns != "nothing")
    say(
        f"  {job.train.name}: {learned}{len(job.validation):,} validation examples; "
        f"on {job.encoder.device}"
    )
    s = job.settings
    if job.start.learns != "nothing":
        passes = "1 epoch" if s.epochs == 1 else f"{s.epochs} epochs"
        say(f"  {passes}, batches of {s.batch_size}, rate {s.learning_rate:g}")
    elif options.early_stopping is not None or options.rate is not None:
        warn("--start frozen trains nothing: epochs, rate and early stopping have no effect.")


class _Line:
    """The progress bar of one seed, and a line for each epoch."""

    def __init__(self, seed: int, epochs: int) -> None:
        from bertology.run.progress import choose_progress

        self._seed, self._epochs, self._done = seed, epochs, 0
        self._bar = choose_progress(None)

    def show(self, step: Step) -> None:
        """Show one step."""
        if not self._done:
            self._bar.start(f"seed {self._seed}", step.total)
        self._bar.advance(step.done - self._done)
        self._done = step.done
        if step.epoch is not None:
            found = ", ".join(f"{name} {v:.3f}" for name, v in step.epoch.scores.items())
            say(
                f"  seed {self._seed}, epoch {step.epoch.number} of {self._epochs}: "
                f"loss {step.epoch.loss:.3f}, {found}"
            )

    def stop(self) -> None:
        """Remove the bar."""
        self._bar.stop()


def _tell_cut(record: TrainingRecord) -> None:
    cut, unseen = record["truncated"], record["truncated_validation"]
    if cut or unseen:
        warn(
            f"Texts that were too long and were cut: {cut:,} of {record['train']['size']:,} for "
            f"training, {unseen:,} of {record['validation']['size']:,} for validation."
        )


def _show(records: Sequence[TrainingRecord], place: Path) -> None:
    from bertology.metrics import find_metric
    from bertology.stats import repeated

    metrics = list(records[0]["scores"])
    rows: list[list[object]] = [
        [f"seed {r['settings']['seed']}", r["kept_epoch"], *(r["scores"][m] for m in metrics)]
        for r in records
    ]
    if len(records) > 1:
        found = [
            repeated([r["scores"][m] for r in records], within=find_metric(m).within)
            for m in metrics
        ]
        rows.append(["mean", None, *(e.value for e in found)])
        bounds = ["all equal" if e.low != e.low else f"{e.low:.3f} … {e.high:.3f}" for e in found]
        rows.append(["95 % interval", None, *bounds])
    rows.append(["always the same label", None, *(records[0]["baseline"][m] for m in metrics)])
    show_table(("", "epoch", *metrics), rows, title="Scores on the validation data")
    folder = place / f"seed-{records[0]['settings']['seed']}"
    say(f"Models: {place}/seed-*" if len(records) > 1 else f"The model: {folder}")
    origin = records[0]["validation"]["origin"]
    data = data_words(origin) or f"--task {records[0]['task']}"
    if _is_at_chance(records):
        warn(
            "The model has not learnt the task: its scores are not clearly better than always "
            "giving the same label. A study of its heads would show nothing."
        )
        say("Next: train it again with more --epochs, another --rate or more data.")
        return
    say("Next:")
    say(f"  bertology run head-ablation --model {shlex.quote(str(folder))} {data}")


def _is_at_chance(records: Sequence[TrainingRecord]) -> bool:
    """Whether no metric, in the mean over seeds, is clearly above that of a constant answer.

    Clearly: by two standard errors of a share (or of a correlation), at their largest.
    """
    from bertology.metrics import find_metric

    root = math.sqrt(records[0]["validation"]["size"])
    for name, constant in records[0]["baseline"].items():
        lowest, highest = find_metric(name).within
        mean = sum(r["scores"][name] for r in records) / len(records)
        if mean > min(constant + (highest - lowest) / root, (constant + highest) / 2):
            return False
    return True
