"""Small fine-tuning jobs: a tiny encoder, and whether a text has a cat."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import tiny
from bertology.data.corpus import Corpus, Example, Field, Task
from bertology.model.encoder import Encoder
from bertology.train.finetune import FinetuneSettings
from bertology.train.history import Step
from bertology.train.starts import STARTS
from bertology.train.tuning import TuningJob

WORDS = ("cat", "dog", "owl", "fox", "hen", "elk")
YES_NO = Task("has-cat", "classification", ("no", "yes"), ("accuracy", "f1"))
LENGTH = Task("length", "regression", (), ("pearson", "spearman"))
FAST = FinetuneSettings(epochs=3, batch_size=8, learning_rate=2e-3)


def corpus(first: int, last: int, task: Task = YES_NO) -> Corpus:
    examples = []
    for i in range(first, last):
        text = " ".join(WORDS[(i * 7 + j * j * (i % 11)) % 6] for j in range(1 + i % 5))
        label = int("cat" in text) if task is YES_NO else len(text.split()) / 5
        examples.append(Example(str(i), text, label=label))
    return Corpus(task.name, examples, frozenset({Field.TEXT, Field.LABEL}), task, "train")


def encoder(kind: str = "bert", head: str = "base", **given: Any) -> Encoder:
    model = tiny.model(kind, head, **given)
    return Encoder(model, tiny.tokenizer(list(WORDS)), head=head, name=f"tiny-{kind}")


def job(start: str = "pretrained", settings: FinetuneSettings = FAST, **more: Any) -> TuningJob:
    made = TuningJob(encoder(), corpus(0, 40), corpus(40, 70), STARTS[start], settings)
    return replace(made, **more)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    loaded = Encoder.load(str(folder), head="classification", device="cpu").model
    return dict(loaded.state_dict())


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[n], other[n]) for n in one)


class KilledError(BaseException):
    """As if the process had gone: nothing but what is on the disk remains."""


def killed_at(number: int) -> Any:
    def hear(step: Step) -> None:
        if step.done == number:
            raise KilledError

    return hear
