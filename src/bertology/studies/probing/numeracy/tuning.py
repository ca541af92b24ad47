"""The whole model fine-tuned to decode numbers: one model for each group, by the usual trainer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.annotated.numbers import DEV, FAR, NEAR, TRAIN, Numbers

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder

Floats = NDArray[np.float64]


def tuned(
    encoder: Encoder,
    texts: Corpus,
    numbers: Numbers,
    groups: Sequence[str],
    *,
    epochs: int,
    seed: int,
    advance: Callable[[int], None],
) -> Floats:
    """(examples,): what models say of all examples; NaN of groups that are left out.

    Values are learnt in units of their spread, since no head of a small learning rate reaches
    9,999. `advance` is told the examples of each group.
    """
    from bertology.train.encoded import encode, task_of
    from bertology.train.evaluate import predict
    from bertology.train.finetune import FinetuneSettings
    from bertology.train.fit import row_limit
    from bertology.train.starts import default_rate, find_start
    from bertology.train.tuning import TuningJob, tune

    start, said = find_start("pretrained"), np.full(len(numbers.target), np.nan)
    settings = FinetuneSettings(
        epochs=epochs, learning_rate=default_rate(start, encoder.shape.hidden), seed=seed
    )
    for group in groups:
        own = np.flatnonzero(numbers.group == group)
        learnt = numbers.target[own[numbers.role[own] == TRAIN]]
        middle, unit = (0.0, 1.0) if numbers.lists else (learnt.mean(), learnt.std() or 1.0)

        of = partial(_of_group, texts, numbers, own, middle, unit)
        job = TuningJob(encoder, of(TRAIN), of(DEV), start, settings)
        model, _ = tune(job)
        unseen = of(NEAR, FAR)
        limit = row_limit(model, encoder.tokenizer, settings.max_length)
        found = predict(model, encode(unseen, encoder.tokenizer, limit), task_of(unseen))
        said[own[np.isin(numbers.role[own], (NEAR, FAR))]] = middle + unit * found
        advance(len(own))
    return said


def _of_group(
    texts: Corpus,
    numbers: Numbers,
    own: NDArray[np.int64],
    middle: float,
    unit: float,
    *roles: str,
) -> Corpus:
    """The examples of some roles, values in units of their spread."""
    made = []
    for at in own[np.isin(numbers.role[own], roles)].tolist():
        value = float((numbers.target[at] - middle) / unit)
        made.append(texts[at] if numbers.lists else replace(texts[at], label=value))
    return replace(texts, examples=made)
