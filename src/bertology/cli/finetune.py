"""`bertology finetune`: teach a pre-trained encoder a task, once for each seed."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertology.cli.console import examples, say, show_table, warn
from bertology.cli.options import columns_of, given_values, options_of
from bertology.cli.run import COMMAND
from bertology.errors import InterruptedRunError, ParameterError
from bertology.parameters import parameter

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus
    from bertology.train.finetune import Step
    from bertology.train.tuning import TuningJob

__all__ = ["FinetuneOptions", "add_to"]

_HELP = """Teach a pre-trained model a task: any corpus that poses a classification or regression.

MODEL is a bundled model, a folder or a Hugging Face id; its head is a new one. TASK is a name of
the catalogue (all nine of GLUE are there), a file or folder, or a hub id. There is one ordinary
Hugging Face folder for each seed, with its model card and, in bertology.json, where it comes from.

The same command goes on where it was stopped, and does nothing twice.
"""


@dataclass(frozen=True)
class FinetuneOptions:
    """What a fine-tuning may be given."""

    start: str = parameter(
        "pretrained",
        "pretrained; random: all weights drawn from the normal distribution, then fine-tuned; "
        "frozen: not fine-tuned at all, with a random head; frozen-features: only the head learns.",
        choices=("pretrained", "random", "frozen", "frozen-features"),
    )
    epochs: int = parameter(3, "Passes over the training data.", minimum=1)
    batch_size: int = parameter(32, "Examples in one update.", minimum=1)
    rate: float | None = parameter(
        None,
        "The highest learning rate. If not given: 2e-5; 1e-4 for models less than 512 wide and "
        "3e-4 for less than 256 (such as bertology-mini); 1e-3 where only the head learns.",
        minimum=1e-9,
    )
    seeds: tuple[int, ...] = parameter(
        (0,), "One run for each: 0,1,2. Of the new weights, the order of examples and dropout."
    )
    max_length: int | None = parameter(
        None, "Cut texts to so many tokens; if not given, to what the model takes.", minimum=3
    )
    early_stopping: int | None = parameter(
        None,
        "Stop after so many epochs without a better validation score, and keep the best epoch.",
        minimum=1,
    )
    precision: str = parameter(
        "float32",
        "bfloat16 is mixed precision, for GPUs; weights stay float32.",
        choices=("float32", "bfloat16"),
    )
    limit: int | None = parameter(None, "Learn from at most so many examples.", minimum=1)
    validation: str | None = parameter(
        None, "Other data to judge by: a name, file, folder or hub id."
    )
    validation_limit: int | None = parameter(None, "Judge by at most so many examples.", minimum=1)
    train_split: str = parameter("train", "The split to learn from.")
    split: str = parameter("validation", "The split to judge by.")
    columns: tuple[str, ...] = parameter(
        (), "Columns of a file of your own: text=sentence,label=gold."
    )
    root: str | None = parameter(None, "The folder that holds the data of catalogue entries.")
    allow_pickle: bool = field(
        default=False,
        metadata={"help": "Load pickled weights, which can run code.", "flag": True},
    )
    trust_remote_code: bool = field(
        default=False, metadata={"help": "Run code that comes with the model.", "flag": True}
    )
    device: str = parameter("auto", "cpu, cuda, cuda:1, mps; auto takes what is there.")
    to: str | None = parameter(
        None, "Where the models go. If not given: results/finetuned/MODEL/TASK-START."
    )
    force: bool = field(
        default=False, metadata={"help": "Make models anew that are there.", "flag": True}
    )


def add_to(app: typer.Typer) -> None:
    """Put `finetune` into the app."""
    app.command(
        "finetune",
        help=_HELP,
        short_help="Teach a pre-trained model a task.",
        no_args_is_help=True,
        epilog=examples(
            "bertology finetune bertology-mini grammar-entailment --epochs 1 --batch-size 16",
            "bertology finetune bertology-mini mrpc --seeds 0,1,2 --to my-mrpc",
            "bertology finetune bertology-mini rte --start random --early-stopping 2",
            "bertology finetune user/model-on-the-hub reviews.csv --validation held-out.csv "
            "--columns text=review,label=stars",
        ),
    )(_command())


def _command() -> Callable[..., None]:
    """A function whose signature is the options, for typer to read."""

    def command(ctx: typer.Context, model: str, task: str, **given: Any) -> None:
        options = FinetuneOptions(**given_values(FinetuneOptions, given))
        again = shlex.split(str(ctx.meta.get(COMMAND, "bertology finetune")))
        _finetune(model, task, options, again=shlex.join(w for w in again if w != "--force"))

    places = {"ctx": typer.Context, "model": _argument("MODEL"), "task": _argument("TASK")}
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = [inspect.Parameter(n, kind, annotation=a) for n, a in places.items()]
    signature += [_escaped(o) for o in options_of(FinetuneOptions, panel="Options")]
    command.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in signature}
    return command


def _escaped(option: inspect.Parameter) -> inspect.Parameter:
    """The main app reads help as rich's markup, where `[default: 3]` would be a style."""
    from rich.markup import escape

    (settings,) = option.annotation.__metadata__
    settings.help = escape(settings.help)
    return option


def _argument(name: str) -> Any:
    return Annotated[str, typer.Argument(metavar=name, show_default=False)]


def _finetune(model: str, task: str, options: FinetuneOptions, *, again: str) -> None:
    from bertology.train.tuning import make_tuned

    if not options.seeds or len(set(options.seeds)) < len(options.seeds):
        raise ParameterError("--seeds", "finetune", "name each seed once", list(options.seeds))
    job = _job(model, task, options)
    place = Path(options.to) if options.to else _default_place(model, job)
    _tell_job(job, options)
    records: list[dict[str, Any]] = []
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
            raise InterruptedRunError(f"{problem} {done}.", hint=f"Go on with: {again}") from None
        finally:
            line.stop()
        records.append(record)
    _tell_cut(records[0])
    _show(records, place)


def _job(model: str, task: str, options: FinetuneOptions) -> TuningJob:
    from bertology.model.encoder import Encoder
    from bertology.train.encoded import task_of
    from bertology.train.finetune import FinetuneSettings
    from bertology.train.starts import default_rate, find_start
    from bertology.train.tuning import TuningJob, check_apart

    train, validation = _corpora(task, options)
    for corpus in (train, validation):
        task_of(corpus)
    check_apart(train, validation)
    encoder = Encoder.load(
        model,
        device=options.device,
        allow_pickle=options.allow_pickle,
        trust_remote_code=options.trust_remote_code,
    )
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


def _corpora(task: str, options: FinetuneOptions) -> tuple[Corpus, Corpus]:
    from bertology.data.loading import load_corpus
    from bertology.run.api import resolve_corpus

    columns: dict[str, Any] = columns_of(options.columns, of="finetune")
    asked = (
        (task, options.train_split, options.limit),
        (options.validation or task, options.split, options.validation_limit),
    )
    train, validation = (
        resolve_corpus(
            load_corpus(name, split=split, limit=limit, root=options.root, **columns),
            poses_task=True,
        )
        for name, split, limit in asked
    )
    assert train is not None
    assert validation is not None
    return train, validation


def _default_place(model: str, job: TuningJob) -> Path:
    name = Path(model.rstrip("/")).name or model
    return Path("results") / "finetuned" / name / f"{job.train.name}-{job.start.name}"


def _tell_job(job: TuningJob, options: FinetuneOptions) -> None:
    say(f"{job.encoder.name}: {job.start.title}", style="bold")
    learned = f"{len(job.train):,} examples to learn from, " * (job.start.learns != "nothing")
    say(
        f"  {job.train.name}: {learned}{len(job.validation):,} to be judged by; "
        f"on {job.encoder.device}"
    )
    s = job.settings
    if job.start.learns != "nothing":
        passes = "1 epoch" if s.epochs == 1 else f"{s.epochs} epochs"
        say(f"  {passes}, batches of {s.batch_size}, rate {s.learning_rate:g}")
    elif options.early_stopping is not None or options.rate is not None:
        warn("The frozen start learns nothing: epochs, rate and early stopping have no effect.")


class _Line:
    """The live line of one run, and a line for each epoch."""

    def __init__(self, seed: int, epochs: int) -> None:
        from bertology.run.progress import choose_progress

        self._seed, self._epochs, self._done = seed, epochs, 0
        self._bar = choose_progress(None)

    def show(self, step: Step) -> None:
        """Hear of a step."""
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
        """Take the line away."""
        self._bar.stop()


def _tell_cut(record: dict[str, Any]) -> None:
    cut, unseen = record["truncated"], record["truncated_validation"]
    if cut or unseen:
        warn(
            f"Texts that were too long and cut: {cut:,} of {record['train']['size']:,} to learn "
            f"from, {unseen:,} of {record['validation']['size']:,} to be judged by."
        )


def _show(records: Sequence[dict[str, Any]], place: Path) -> None:
    from bertology.metrics import find_metric
    from bertology.stats import repeated

    metrics = list(records[0]["scores"])
    rows: list[list[Any]] = [
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
    rows.append(["always the same answer", None, *(records[0]["baseline"][m] for m in metrics)])
    show_table(("", "epoch", *metrics), rows, title="Scores on the validation data")
    folder = place / f"seed-{records[0]['settings']['seed']}"
    say(f"Models: {place}/seed-*" if len(records) > 1 else f"The model: {folder}")
    origin = records[0]["validation"]["origin"]
    given = {"model": folder, "task": origin.get("name_or_path", records[0]["task"])}
    if origin.get("split") not in (None, "validation"):
        given["split"] = origin["split"]
    if origin.get("root"):
        given["root"] = origin["root"]
    say("Next:")
    words = " ".join(f"--{name} {shlex.quote(str(value))}" for name, value in given.items())
    say(f"  bertology run head-ablation {words}")
