"""Fine-tuning by a plan that names everything, so that the same model can be made again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bertology.data.corpus import Corpus
from bertology.data.loading import load_corpus
from bertology.errors import ModelError
from bertology.model.encoder import Encoder
from bertology.model.loading.names import DEFAULT_MODEL
from bertology.train.checkpoint import check_folder, read_record, record_of, save_checkpoint
from bertology.train.encoded import task_of
from bertology.train.evaluate import baseline
from bertology.train.finetune import FinetuneSettings, finetune
from bertology.train.history import Step
from bertology.train.records import TrainingRecord


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
