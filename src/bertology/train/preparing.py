"""What is between the settings of a training and its first step: checks, a trial, the preparation.

What does not fit is refused before any work. Most ways say so when they prepare a model; where a
stage comes before, which may take hours, all that is no stage is prepared on a copy first.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bertology.data.corpus import Corpus
from bertology.errors import InterruptedRunError, ParameterError
from bertology.train.fresh import seeded
from bertology.train.memory import Memory
from bertology.train.protocols import Classifier, Model, Tokenizer
from bertology.train.stage_watch import StageWatch
from bertology.train.ways import Lesson, Way
from bertology.train.ways.way import Moment

if TYPE_CHECKING:
    from bertology.train.finetune import FinetuneSettings


def lesson_of(
    model: Classifier,
    tokenizer: Tokenizer,
    train: Corpus,
    scored: Sequence[Corpus],
    settings: FinetuneSettings,
    *,
    head: Collection[str] | None = None,
    source: Mapping[str, Any] | None = None,
    memory: Memory | None = None,
    stages: StageWatch | None = None,
) -> Lesson:
    """What ways may know of a training; without a `head`, it is all that is outside of the body."""
    if head is None:
        body = {id(p) for p in model.base_model.parameters()}
        head = frozenset(n for n, p in model.named_parameters() if id(p) not in body)
    return Lesson(
        model,
        tokenizer,
        train,
        settings.seed,
        settings.learning_rate,
        settings.batch_size,
        settings.max_length,
        head,
        source,
        None if memory is None else memory.stages,
        watch=stages or StageWatch(),
        epochs=settings.epochs,
        precision=settings.precision,
        recorded=settings.recorded,
        scored=scored,
    )


def prepare(lesson: Lesson, ways: Sequence[Way]) -> None:
    """Let all ways prepare the model of a lesson, stages first."""
    try:
        if any(way.stage for way in ways):
            try_ways(lesson, ways)
        else:
            _check(lesson, ways)
        with seeded(lesson.seed, lesson.model.device):
            for way in ways:
                way.prepare(lesson)
    except KeyboardInterrupt:
        raise InterruptedRunError(
            "Training stopped in a stage before it; what was finished is kept.",
            hint="The same command goes on.",
        ) from None
    _check_learning(lesson.model, ways)


def try_ways(lesson: Lesson, ways: Sequence[Way]) -> None:
    """Refuse what does not fit the model or the data, as all ways together would; no stage is done.

    What ways do to a model, they do to a copy of it.
    """
    _check(lesson, ways)
    tried = [way for way in ways if not way.stage]
    if not tried:
        return
    model = copy.deepcopy(lesson.model)
    own = replace(lesson, model=model, spent={}, passed={}, moment=Moment(), kept={})
    try:
        with seeded(lesson.seed, model.device):
            for way in tried:
                way.prepare(own)
            for way in tried:
                way.rates(own)
        _check_learning(model, ways)
    finally:
        for way in tried:
            way.finish(own)


def _check(lesson: Lesson, ways: Sequence[Way]) -> None:
    for way in ways:
        way.check(lesson, ways)


def _check_learning(model: Model, ways: Sequence[Way]) -> None:
    if not any(weight.requires_grad for weight in model.parameters()):
        raise ParameterError("ways", "finetune", "leave something to train", ways)
