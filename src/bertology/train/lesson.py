"""A model that was taught one task, by a lesson that can be given again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bertology.data.corpus import Corpus
from bertology.data.loading import load_corpus
from bertology.errors import ModelError
from bertology.model.encoder import Encoder
from bertology.model.loading.names import DEFAULT_MODEL
from bertology.train.checkpoint import check_folder, read_record, record_of, save_checkpoint
from bertology.train.encoded import task_of
from bertology.train.evaluate import baseline
from bertology.train.finetune import FinetuneSettings, Step, finetune

__all__ = ["Lesson", "find_made", "make"]


@dataclass(frozen=True)
class Lesson:
    """All that decides what the model will be."""

    corpus: str  # a name for load_corpus
    examples: int | None = None  # to learn from; None for all there are
    unseen: int | None = None  # to be judged by; None for all there are
    start: str = DEFAULT_MODEL  # the pre-trained model; its new head is the same every time
    settings: FinetuneSettings = field(default_factory=FinetuneSettings)

    def train(self) -> Corpus:
        """What the model learns from."""
        return load_corpus(self.corpus, split="train", limit=self.examples)

    def validation(self) -> Corpus:
        """What it is judged by."""
        return load_corpus(self.corpus, split="validation", limit=self.unseen)

    def untaught(self, corpus: Corpus) -> Encoder:
        """The model before it is taught the task of `corpus`, on the CPU, where runs repeat."""
        labels = len(task_of(corpus).labels) or 1  # a regression has one output and no labels
        return Encoder.load(self.start, head="classification", num_labels=labels, device="cpu")


def find_made(folder: str | Path, lesson: Lesson, validation: Corpus) -> dict[str, Any] | None:
    """The record of the model in `folder`, if it was made by this lesson on this data."""
    try:
        record = read_record(folder)
    except ModelError:
        return None  # what cannot be read cannot be reused
    if record is None or record.get("lesson") != asdict(lesson):
        return None
    if record["validation"]["fingerprint"] != validation.fingerprint:
        return None
    # A name stays the same when the model behind it changes.
    same = record["start"] == lesson.untaught(validation).fingerprint
    return record if same else None


def make(
    folder: str | Path,
    lesson: Lesson,
    validation: Corpus,
    *,
    progress: Callable[[Step], None] = lambda step: None,
) -> dict[str, Any]:
    """Give the lesson, save the model to `folder`, and give its record.

    The record of `save_checkpoint` has three more entries here: `lesson`; `start`, the
    fingerprint of the model before; and `baseline`, the scores of always giving the same answer.
    """
    check_folder(folder)
    train = lesson.train()
    encoder = lesson.untaught(train)
    start = encoder.fingerprint
    history = finetune(
        encoder.model,
        encoder.tokenizer,
        train,
        validation,
        settings=lesson.settings,
        progress=progress,
    )
    record = record_of(train, validation, lesson.settings, history)
    record |= {
        "lesson": asdict(lesson),
        "start": start,
        "baseline": baseline(train, validation),
    }
    save_checkpoint(folder, encoder.model, encoder.tokenizer, record=record)
    return record
