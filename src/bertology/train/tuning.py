"""A fine-tuning run as a job: it can be stopped at any time, and is not done twice.

`FinetunePlan` names everything, so that the same model can be made again from its record.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from bertology.data.corpus import Corpus
from bertology.data.loading import load_corpus
from bertology.errors import DataError, ModelError, StoreError
from bertology.model.encoder import Encoder
from bertology.model.loading.names import DEFAULT_MODEL
from bertology.train.checkpoint import check_folder, read_record, record_of, save_checkpoint
from bertology.train.encoded import CHOICE, encode, encode_once, head_for, learnable, task_of
from bertology.train.evaluate import baseline, predict, predict_under, scores
from bertology.train.finetune import FinetuneSettings, finetune, lesson_of, try_ways
from bertology.train.fit import check_fit, name_labels, row_limit
from bertology.train.history import Epoch, History, OnStep, Step, Watch
from bertology.train.memory import Memory
from bertology.train.model_card import card_head, card_table, card_versions
from bertology.train.protocols import Classifier
from bertology.train.recorded import gains_by_recording
from bertology.train.records import TrainingRecord
from bertology.train.stage_watch import StageWatch
from bertology.train.starts import Start, begin, draw_heads, find_start, new_weights
from bertology.train.ways import compatible

_UNFINISHED = "-unfinished"
Held = Callable[[Classifier], AbstractContextManager[object]]
_LOADING = """\
```python
import bertology as bt

encoder = bt.load("{name}", head="{head}")  # the path of this folder
```"""


@dataclass(frozen=True)
class TuningJob:
    """Everything that decides what the model will be."""

    encoder: Encoder
    train: Corpus
    validation: Corpus
    start: Start
    settings: FinetuneSettings = field(default_factory=FinetuneSettings)

    def __post_init__(self) -> None:
        compatible(self.settings.ways, start=self.start.name)

    @property
    def identity(self) -> str:
        """A hash of the job; names, paths and devices are left out."""
        model = self.encoder.fingerprint
        return tuning_identity(model, self.train, self.validation, self.start, self.settings)


def tuning_identity(
    model: str, train: Corpus, validation: Corpus, start: Start, settings: FinetuneSettings
) -> str:
    """The identity of a `TuningJob`, of the model's fingerprint alone."""
    asked = {
        "model": model,
        "train": train.fingerprint,
        "validation": validation.fingerprint,
        "start": start.name,
        "settings": settings.as_record(),
    }
    ways = settings.ways
    if more := {k: v for way in ways for k, v in way.ingredients(train).items()}:
        asked["ingredients"] = more
    return sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]


def check_apart(train: Corpus, validation: Corpus) -> None:
    """Refuse to score a model on the data that it is trained on."""
    same = {(e.text, e.text_b) for e in train} == {(e.text, e.text_b) for e in validation}
    if same:
        raise DataError(
            f"The training and the validation data of {train.name!r} are the same examples.",
            hint="Name other data for the scores (--validation), or other splits (--train-split, "
            "--split).",
        )


def tune(
    job: TuningJob,
    *,
    progress: OnStep = lambda step: None,
    memory: Memory | None = None,
    held: Held = nullcontext,
    watch: Watch | None = None,
    stages: StageWatch | None = None,
) -> tuple[Classifier, History]:
    """The model and its history. A model that is not trained has an epoch 0 only.

    `held` is given the model before its training and holds what must not change meanwhile, such as
    weights that a mask removed: `lambda model: weights_held_at_zero(model, mask)`. A `watch` looks
    at the model during its training; `stages` shows what ways do before.
    """
    chosen, task = job.settings, learnable(job.train)
    drawn_by = chosen.seed if chosen.weights_seed is None else chosen.weights_seed
    model = begin(job.encoder, task, job.start, seed=drawn_by)
    if job.start.learns == "nothing":
        return model, _scored_as_is(model, job)
    # Not part of the job's identity: the weights are the same up to rounding.
    recorded = job.settings.recorded or gains_by_recording(model)
    recorded = recorded and all(way.recordable for way in job.settings.ways)
    # Batches of questions hold all their answers: a recording of each length would fill a GPU.
    recorded = recorded and task.kind != CHOICE
    with held(model):
        history = finetune(
            model,
            job.encoder.tokenizer,
            job.train,
            job.validation,
            settings=replace(job.settings, recorded=recorded),
            progress=progress,
            memory=memory,
            head=new_weights(job.encoder, model),
            source=job.encoder.spec,
            watch=watch,
            stages=stages,
        )
    model.requires_grad_(True)
    return model, history


def try_job(job: TuningJob, scored: Corpus) -> None:
    """Refuse ways that do not fit the model or the data, before any work; no stage is done.

    `scored` is what the model answers after the training; the validation data may be others.
    """
    ways, encoder = job.settings.ways, job.encoder
    if not ways:
        return
    model = begin(encoder, learnable(job.train), job.start, seed=0)
    lesson = lesson_of(
        model,
        encoder.tokenizer,
        job.train,
        [job.validation, scored],
        job.settings,
        head=new_weights(encoder, model),
        source=encoder.spec,
    )
    try_ways(lesson, ways)


def answers_of(model: Classifier, job: TuningJob) -> NDArray[np.float64]:
    """What the model of a job says of each example of the validation data."""
    limit = row_limit(model, job.encoder.tokenizer, job.settings.max_length)
    unseen = encode_once(job.validation, job.encoder.tokenizer, limit)
    return predict(model, unseen, learnable(job.validation))


def score_heads(
    encoder: Encoder, validation: Corpus, *, seeds: Sequence[int], max_length: int | None
) -> tuple[list[dict[str, float]], int]:
    """Scores without fine-tuning under one random head for each seed, and how many texts were cut.

    Each is what `tune` gives for the frozen start; but the encoder reads the texts once for all.
    """
    task = learnable(validation)
    model, heads = draw_heads(encoder, task, seeds=seeds)
    check_fit(model, task, validation)
    limit = row_limit(model, encoder.tokenizer, max_length)
    unseen = encode(validation, encoder.tokenizer, limit)
    said = predict_under(model, heads, unseen, task)
    return [scores(row, unseen.targets, task) for row in said], unseen.truncated


def _scored_as_is(model: Classifier, job: TuningJob) -> History:
    task = learnable(job.train)
    check_fit(model, task, job.validation)
    name_labels(model, task)
    limit = row_limit(model, job.encoder.tokenizer, job.settings.max_length)
    unseen = encode_once(job.validation, job.encoder.tokenizer, limit)
    found = scores(predict(model, unseen, task), unseen.targets, task)
    return History((Epoch(0, math.nan, found, 0.0),), truncated_validation=unseen.truncated)


def make_tuned(
    folder: str | Path,
    job: TuningJob,
    *,
    force: bool = False,
    progress: OnStep = lambda step: None,
    stages: StageWatch | None = None,
    tell: Callable[[str], None] = lambda line: None,
    again: str = "--force makes it again",
) -> TrainingRecord:
    """Fine-tune into `folder`, continue a stopped run, or find it finished; the model's record.

    `again` tells how a finished model is made again. The record of `save_checkpoint` has more
    entries here: `identity`, `base` (the encoder's name and fingerprint), `start`, `baseline` (the
    scores of always giving the same answer), `device`.
    """
    place = check_folder(folder)
    memory = Memory(place.with_name(place.name + _UNFINISHED), job.identity)
    if force:
        memory.forget()
    else:
        made = _find_made(place, memory)
        if made is not None:
            tell(f"{place} was made on {made['created'][:10]} ({again}).")
            return made
        if done := memory.found():
            tell(f"{place}: continuing after epoch {done} of {job.settings.epochs}.")
    model, history = tune(job, progress=progress, memory=memory, stages=stages)
    record = _record(job, history, memory.identity)
    head = head_for(learnable(job.train))
    # Models of several seeds lie in one folder, whose name tells more than theirs.
    by_seed = place.parent.name and place.name.startswith("seed-")
    name = f"{place.parent.name}-{place.name}" if by_seed else place.name
    card = tuned_card(record, name=name, head=head)
    save_checkpoint(place, model, job.encoder.tokenizer, record=record, card=card)
    memory.forget()
    return record


def _find_made(place: Path, memory: Memory) -> TrainingRecord | None:
    """The record of the finished model; raises an error if the folder holds another model.

    A run that was started with --force continues, so the model that it replaces is not checked.
    """
    if memory.begun:
        return None
    try:
        record = read_record(place)
    except ModelError as error:
        raise StoreError(error.problem, hint="Make it again with --force.") from error
    if record is not None and record.get("identity") != memory.identity:
        raise StoreError(
            f"{place} holds a model of other settings, data or model ({_described(record)}).",
            hint="Choose another folder (--to), or make it again here with --force.",
        )
    return record


def _described(record: TrainingRecord) -> str:
    settings = record.get("settings", {})
    base = (
        record["base"].get("name", record.get("method"))
        if "base" in record
        else record.get("method")
    )
    shown = [f"{n} {settings[n]}" for n in ("epochs", "batch_size", "learning_rate", "seed")
             if n in settings]  # fmt: skip
    shown += [f"way {way}" for way in settings.get("ways", ())]
    return ", ".join([str(base), str(record.get("task")), str(record.get("start")), *shown])


def _record(job: TuningJob, history: History, identity: str) -> TrainingRecord:
    record = record_of(job.train, job.validation, job.settings, history)
    if job.start.learns == "nothing":
        record["history"] = [{"number": 0, "scores": history.scores}]
    return record | {
        "identity": identity,
        "base": {"name": job.encoder.name, "fingerprint": job.encoder.fingerprint},
        "start": job.start.name,
        "baseline": baseline(job.train, job.validation),
        "device": device_name(job.encoder.device),
    }


def device_name(device: torch.device) -> str:
    """What a model is trained on, as records tell it."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def tuned_card(record: TrainingRecord, *, name: str, head: str = "classification") -> str:
    """A README.md with front matter; every number is the record's."""
    base = record["base"]
    lines = [
        *card_head("text-classification" if head == "classification" else head),
        f"# {name}",
        "",
        f"{base['name']} (fingerprint `{base['fingerprint']}`) for the task {record['task']}: "
        f"{find_start(record['start']).title}; seed {record['settings']['seed']}.",
        "",
        *_scores(record),
        *_training(record),
        *_data(record),
        "## How to load it",
        "",
        _LOADING.format(name=name, head=head),
        "",
        *_limits(record),
        *card_versions(record),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _scores(record: TrainingRecord) -> Iterator[str]:
    yield from ["## Scores on the validation data", ""]
    metrics = list(record["scores"])
    rows: list[tuple[str, ...]] = [
        (
            f"epoch {epoch['number']}" if epoch["number"] else "not fine-tuned",
            *(f"{epoch['scores'][m]:.4f}" for m in metrics),
        )
        for epoch in record["history"]
    ]
    rows.append(("always the same answer", *(f"{record['baseline'][m]:.4f}" for m in metrics)))
    yield from card_table(("", *metrics), rows)
    if record["settings"]["early_stopping"] is not None and record["kept_epoch"]:
        yield (
            f"Epoch {record['kept_epoch']} was kept because it scored best on these data, so its "
            "scores are a little too good."
        )
        yield ""


def _training(record: TrainingRecord) -> Iterator[str]:
    if find_start(record["start"]).learns == "nothing":
        return
    settings = record["settings"]
    patience = settings["early_stopping"]
    rows = [
        ("epochs", f"{len(record['history'])} of {settings['epochs']}"),
        ("batch size", settings["batch_size"]),
        ("learning rate", f"{settings['learning_rate']:g}, linear"),
        ("warm-up", f"{100 * settings['warmup']:g} % of the steps"),
        ("weight decay", f"{settings['weight_decay']:g}"),
        ("gradient clipped at", f"{settings['clip']:g}"),
        ("early stopping", "none" if patience is None else f"after {patience} epochs"),
        ("precision", settings["precision"]),
        ("device", record["device"]),
        *(("way", f"`{way}`") for way in settings.get("ways", ())),
    ]
    yield from ["## Training", "", *card_table(("", ""), rows)]


def _data(record: TrainingRecord) -> Iterator[str]:
    yield from ["## Data", ""]
    rows = [
        (
            part,
            f"{data['name']}, {data['split'] or 'one file'}",
            f"{data['size']:,}",
            f"{cut:,}",
            f"`{data['fingerprint']}`",
        )
        for part, data, cut in (
            ("train", record["train"], record["truncated"]),
            ("validation", record["validation"], record["truncated_validation"]),
        )
    ]
    yield from card_table(("", "corpus", "examples", "cut to fit", "fingerprint"), rows)


def _limits(record: TrainingRecord) -> Iterator[str]:
    yield from ["## Limits", ""]
    yield "- It is one run with one seed; other seeds give other numbers."
    yield "- It was not examined for harmful associations, and is meant for research."
    yield ""


@dataclass(frozen=True)
class FinetunePlan:
    """Everything that decides what the model will be."""

    corpus: str  # a name for load_corpus
    examples: int | None = None  # for training; None for all there are
    unseen: int | None = None  # for validation; None for all there are
    start: str = DEFAULT_MODEL  # the pre-trained model; its new head is the same every time
    settings: FinetuneSettings = field(default_factory=FinetuneSettings)

    def as_record(self) -> dict[str, object]:
        """Plain values, as they are saved with the model."""
        return asdict(self) | {"settings": self.settings.as_record()}

    def train(self) -> Corpus:
        """The training data."""
        return load_corpus(self.corpus, split="train", limit=self.examples)

    def validation(self) -> Corpus:
        """The validation data."""
        return load_corpus(self.corpus, split="validation", limit=self.unseen)

    def starting_encoder(self, corpus: Corpus) -> Encoder:
        """The model before it is fine-tuned on `corpus`, on the CPU, where runs can be repeated."""
        labels = len(task_of(corpus).labels) or 1  # a regression has one output and no labels
        return Encoder.load(self.start, head="classification", num_labels=labels, device="cpu")


def find_made(folder: str | Path, plan: FinetunePlan, validation: Corpus) -> TrainingRecord | None:
    """The record of the model in `folder`, if it was made by this plan on this data."""
    try:
        record = read_record(folder)
    except ModelError:
        return None  # what cannot be read cannot be reused
    if record is None or record.get("lesson") != plan.as_record():
        return None
    if record["validation"]["fingerprint"] != validation.fingerprint or "base" not in record:
        return None
    # A name stays the same when the model behind it changes.
    same = record["start"] == plan.starting_encoder(validation).fingerprint
    return record if same else None


def make(
    folder: str | Path,
    plan: FinetunePlan,
    validation: Corpus,
    *,
    progress: Callable[[Step], None] = lambda step: None,
) -> TrainingRecord:
    """Fine-tune by the plan, save the model to `folder`, and return its record.

    The record of `save_checkpoint` has more entries here: `lesson`, the plan; `start`, the
    fingerprint of the model before, with its new head; `base`, its name and its fingerprint without
    a head; and `baseline`, the scores of always giving the same answer.
    """
    check_folder(folder)
    train = plan.train()
    encoder = plan.starting_encoder(train)
    start = encoder.fingerprint
    history = finetune(
        encoder.model,
        encoder.tokenizer,
        train,
        validation,
        settings=plan.settings,
        progress=progress,
    )
    record = record_of(train, validation, plan.settings, history)
    record |= {
        "lesson": plan.as_record(),
        "start": start,
        "base": {
            "name": plan.start,
            "fingerprint": Encoder.load(plan.start, device="cpu").fingerprint,
        },
        "baseline": baseline(train, validation),
    }
    save_checkpoint(folder, encoder.model, encoder.tokenizer, record=record)
    return record
