"""The record that is saved with every model: what it was trained on, how, and with which scores."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class CorpusRecord(TypedDict):
    """A corpus that a model was fine-tuned or scored on."""

    name: str
    split: str | None
    size: int
    fingerprint: str
    origin: dict[str, object]  # what loads it again


class EpochRecord(TypedDict):
    """One epoch of fine-tuning. Epoch 0 is a model that was not fine-tuned: it has scores only."""

    number: int
    loss: NotRequired[float]
    scores: dict[str, float]
    seconds: NotRequired[float]


class BaseModelRecord(TypedDict):
    """The model that fine-tuning started from."""

    name: str
    fingerprint: str


class TextRecord(TypedDict):
    """The text that a model was pre-trained on."""

    fingerprint: str
    tokens: int
    documents: int
    sentences: int
    held_out_tokens: int
    sources: list[dict[str, object]]


class EarlierTraining(TypedDict):
    """What the model that pre-training began with had seen, in all trainings before."""

    name: str
    steps: NotRequired[int]  # not known of a model that bertology did not make
    tokens_seen: NotRequired[int]


class TrainingRecord(TypedDict, total=False):
    """The record of a model; which keys it has depends on how the model was made."""

    schema: int
    method: str  # "finetune", "pretrain", "compress" or "export"; earlier releases had "prune"
    scores: dict[str, float]  # checkpoints from the middle of pre-training have null here
    versions: dict[str, str]
    created: str  # date and time
    device: str
    identity: str  # a hash of everything that decides what the model is

    # Fine-tuning.
    task: str | None
    train: CorpusRecord
    validation: CorpusRecord
    settings: dict[str, Any]  # the fields of FinetuneSettings
    history: list[EpochRecord]
    kept_epoch: int
    trained_parameters: int  # how many weights fine-tuning changed
    truncated: int
    truncated_validation: int
    threads: int
    base: BaseModelRecord
    start: str
    baseline: dict[str, float]  # the scores of always giving the same answer
    lesson: dict[str, object]  # the fields of FinetunePlan

    # Compression, of which pruning is one.
    command: str  # which makes the model again
    compressed_from: BaseModelRecord
    compression: dict[str, Any]  # the steps, and all numbers before and after

    # Export to one file.
    exported_from: BaseModelRecord
    export: dict[str, Any]  # format, difference to the original, times

    # Pre-training.
    recipe: dict[str, Any]  # the fields of Pretraining
    text: TextRecord
    made_by: dict[str, Any]  # the sections of the recipe file
    parameters: int
    relations: list[list[str]]
    processes: int
    step: int
    tokens_seen: int
    earlier: EarlierTraining  # where it began with a model that was trained before
    seconds: float
