"""A short training in which what is left learns to do without what is gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bertology.data.corpus import Corpus
from bertology.model.encoder import Encoder
from bertology.train.answers import match_of
from bertology.train.encoded import task_of
from bertology.train.finetune import FinetuneSettings, finetune
from bertology.train.history import History, OnStep
from bertology.train.movement import Movement
from bertology.train.stage_watch import StageWatch

if TYPE_CHECKING:
    from bertology.train.memory import Memory


def recover(
    encoder: Encoder,
    training: Corpus,
    selection: Corpus,
    settings: FinetuneSettings,
    *,
    memory: Memory | None,
    progress: OnStep = lambda step: None,
    movement: Movement | None = None,
    stages: StageWatch | None = None,
) -> History:
    """Train the model in place. Nothing is chosen: the number of epochs is given before.

    Its outputs keep their meaning, also where the data have their labels in another order.
    """
    order = match_of(encoder, task_of(training)).order
    config = encoder.config
    kept = {n: getattr(config, n, None) for n in ("id2label", "label2id", "problem_type")}
    try:
        return finetune(
            encoder.model,
            encoder.tokenizer,
            in_order(training, order),
            in_order(selection, order),
            settings=settings,
            progress=progress,
            memory=memory,
            movement=movement,
            stages=stages,
        )
    finally:
        for name, value in kept.items():
            setattr(config, name, value)


def in_order(corpus: Corpus, order: Sequence[int]) -> Corpus:
    """The same examples with labels numbered as the model's outputs are."""
    task = task_of(corpus)
    if task.kind == "regression" or list(order) == sorted(order):
        return corpus
    labels = [""] * len(order)
    for label, output in enumerate(order):
        labels[output] = task.labels[label]
    return replace(
        corpus,
        examples=[replace(e, label=order[int(e.get("label"))]) for e in corpus],
        task=replace(task, labels=tuple(labels)),
        origin={},
        drawn_from=None,
    )
