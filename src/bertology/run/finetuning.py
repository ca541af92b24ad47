"""`bertology.finetune`: from a pre-trained model to one that knows a task, in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertology.data.corpus import Corpus
from bertology.errors import InterruptedRunError, ParameterError
from bertology.quiet import hush
from bertology.run.loading import Asked, ModelSource, seen_and_unseen
from bertology.run.progress import Progress, TrainingLine, choose_progress, started_progress

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder
    from bertology.train.records import TrainingRecord
    from bertology.train.stage_watch import StageWatch
    from bertology.train.tuned import Finetuned
    from bertology.train.tuning import TuningJob
    from bertology.train.ways import Way

_IN_NAMES = str.maketrans(dict.fromkeys(":,=/\\ ", "-"))  # what folders are not called


def finetune(
    model: Encoder | ModelSource | str | Path,
    task: Corpus | str | Path,
    validation: Corpus | str | Path | None = None,
    *,
    to: str | Path | None = None,
    start: str = "pretrained",
    ways: Sequence[str | Way] = (),
    epochs: int = 3,
    batch_size: int = 32,
    rate: float | None = None,
    seeds: int | Sequence[int] = 0,
    max_length: int | None = None,
    early_stopping: int | None = None,
    precision: str = "float32",
    limit: int | None = None,
    validation_limit: int | None = None,
    train_split: str = "train",
    split: str = "validation",
    device: str = "auto",
    force: bool = False,
    progress: bool | Progress | None = None,
    tell: Callable[[str], None] | None = None,
    **reading: Any,
) -> Finetuned:
    """Fine-tune a pre-trained model on a task, once for each seed.

    Args:
        model: A loaded encoder, or a name or folder. It gets a new head.
        task: The data to learn from: a name (`"mrpc"`), a file, a folder, a hub id, or a corpus.
        validation: The data for the scores; by default another split of `task`.
        to: The folder for the models; by default `results/finetuned/MODEL/TASK-START`.
        start: `"pretrained"`, `"random"` (all weights), `"frozen"` (a random head, no training) or
            `"frozen-features"` (only the head is trained).
        ways: Other ways to fine-tune: `["adapters:size=16", "layer_rates:decay=0.9"]`.
        epochs: Passes over the training data.
        batch_size: Examples in one update.
        rate: The highest learning rate; by default one that suits the model's size.
        seeds: One model for each: new weights, order of examples, dropout.
        max_length: Cut texts to so many tokens; by default to what the model can read.
        early_stopping: Stop after so many epochs without a better score; keep the best epoch.
        precision: `"bfloat16"`: mixed precision, on a GPU.
        limit: Learn from so many examples, drawn at random; all if not given.
        validation_limit: Validate on so many examples; all if not given.
        train_split: The split to learn from.
        split: The split to validate on.
        device: Where a named model is loaded: `"cpu"`, `"cuda"`, …
        force: Train again what is already there.
        progress: Show a progress bar; by default on a terminal and in a notebook, and elsewhere
            a line every 30 seconds on standard error.
        tell: Is told what is done, in words; `print` shows it.
        **reading: How named data are read, as `load_corpus` takes it: `root`, `columns`, `labels`.

    Returns:
        Folders, and scores with intervals; print it. After a stop, the same call goes on.

    Example:
        >>> tuned = bt.finetune("bertology-mini", "mrpc")  # doctest: +SKIP
        >>> bt.run("head-ablation", tuned.encoder, task="mrpc")  # doctest: +SKIP
    """
    hush()
    data = seen_and_unseen(
        Asked(task, train_split, limit), Asked(validation, split, validation_limit), **reading
    )
    settings = {
        "epochs": epochs,
        "batch_size": batch_size,
        "max_length": max_length,
        "early_stopping": early_stopping,
        "precision": precision,
    }
    chosen = _chosen(seeds)
    job = _job(data, (model, device), start, rate, settings | {"ways": ways})
    place = Path(to) if to is not None else _usual_place(job)
    return _make(job, place, chosen, force=force, progress=progress, tell=tell or _silent)


def _silent(line: str) -> None:
    """Tell nobody."""


def _chosen(seeds: int | Sequence[int]) -> tuple[int, ...]:
    chosen = (seeds,) if isinstance(seeds, int) else tuple(seeds)
    if not chosen or len(set(chosen)) < len(chosen):
        raise ParameterError("seeds", "finetune", "name each seed once", list(chosen))
    return chosen


def _job(
    corpora: tuple[Corpus, Corpus],
    model: tuple[Encoder | ModelSource | str | Path, str],
    start: str,
    rate: float | None,
    settings: Mapping[str, Any],
) -> TuningJob:
    from bertology.train.finetune import FinetuneSettings
    from bertology.train.starts import default_rate, find_start
    from bertology.train.tuning import TuningJob
    from bertology.train.ways import read_ways

    how = find_start(start)
    ways = read_ways(settings["ways"], start=start)
    encoder = _pretrained(*model)
    rate = default_rate(how, encoder.shape.hidden, ways) if rate is None else rate
    chosen = FinetuneSettings(learning_rate=rate, **{**settings, "ways": ways})
    return TuningJob(encoder, *corpora, how, chosen)


def _make(
    job: TuningJob,
    place: Path,
    seeds: Sequence[int],
    *,
    force: bool,
    progress: bool | Progress | None,
    tell: Callable[[str], None],
) -> Finetuned:
    """Train the models of all seeds, or find those that are finished."""
    from bertology.train.tuned import Finetuned
    from bertology.train.tuning import make_tuned

    for line in _described(job):
        tell(line)
    records: list[TrainingRecord] = []
    folders = [place / f"seed-{seed}" for seed in seeds]
    for seed, folder in zip(seeds, folders, strict=True):
        shown = TrainingLine(f"seed {seed}", job.settings.epochs, choose_progress(progress), tell)
        of_seed = replace(job, settings=replace(job.settings, seed=seed))
        try:
            record = make_tuned(
                folder,
                of_seed,
                force=force,
                progress=shown.step,
                stages=_stages(f"seed {seed}", progress, tell),
                tell=tell,
            )
            records.append(record)
        except (InterruptedRunError, KeyboardInterrupt) as stopped:
            raise InterruptedRunError(
                f"{getattr(stopped, 'problem', 'Stopped.')} {len(records)} of {len(seeds)} models "
                "are finished.",
                hint="To continue, make the same call again.",
            ) from None
        finally:
            shown.stop()
    trusted = bool((job.encoder.spec or {}).get("trust_remote_code"))
    loading = {"device": str(job.encoder.device), "trust_remote_code": trusted}
    return Finetuned(tuple(folders), tuple(records), job.validation, loading)


def _stages(run: str, progress: bool | Progress | None, tell: Callable[[str], None]) -> StageWatch:
    """Shows what ways do before the training."""
    from bertology.train.stage_watch import StageWatch

    return StageWatch(
        lambda name, epochs: TrainingLine(
            f"{run}, {name}", epochs, choose_progress(progress), tell
        ),
        lambda title, total: started_progress(f"{run}, {title}", total, progress),
    )


def _pretrained(model: Encoder | ModelSource | str | Path, device: str) -> Encoder:
    """The model without a head, so that the record names the same model whoever loaded it."""
    from bertology.run.loading import body_of

    if isinstance(model, str | Path):
        model = ModelSource(str(model), device=device)
    encoder = model.load() if isinstance(model, ModelSource) else body_of(model)
    encoder.require_tokenizer()
    return encoder


def _usual_place(job: TuningJob) -> Path:
    name = Path(job.encoder.name.rstrip("/")).name or job.encoder.name
    ways = "".join(f"-{way.text.translate(_IN_NAMES)}" for way in job.settings.ways)
    return Path("results") / "finetuned" / name / f"{job.train.name}-{job.start.name}{ways}"


def _described(job: TuningJob) -> Iterator[str]:
    """What will be done, in words."""
    learns = job.start.learns != "nothing"
    yield f"{job.encoder.name}: {job.start.title}"
    learned = f"{len(job.train):,} training examples, " * learns
    yield (
        f"  {job.train.name}: {learned}{len(job.validation):,} validation examples; "
        f"on {job.encoder.device}"
    )
    if learns:
        s = job.settings
        passes = "1 epoch" if s.epochs == 1 else f"{s.epochs} epochs"
        yield f"  {passes}, batches of {s.batch_size}, rate {s.learning_rate:g}"
    for way in job.settings.ways:
        yield f"  {way.text}: {way.summary}"
