"""What simple models reach on a task: a constant answer, bags of words, networks over vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertology.data.corpus import Corpus
from bertology.errors import UnknownNameError
from bertology.model.encoder import Encoder
from bertology.train.encoded import checked_targets, task_of
from bertology.train.evaluate import constant_answer

BASELINES = ("majority", "bag-of-words", "cbow", "bilstm")
SEEDLESS = frozenset({"majority", "bag-of-words"})  # nothing in them is drawn

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class BaselineRun:
    """The predictions of one baseline, class ids or numbers, in the order of the examples."""

    predictions: Floats
    covered: float = math.nan  # the share of scored words that have a vector


def train_baseline(
    name: str,
    encoder: Encoder,
    train: Corpus,
    scored: Corpus,
    *,
    seed: int = 0,
    vectors: str = "",
    progress: Callable[[float], None] = lambda share: None,
) -> BaselineRun:
    """Train a baseline on `train` and let it answer `scored`.

    `vectors`: a file for the networks; if not given, the input embeddings of the encoder.
    `progress` is told the share of the work that is done.
    """
    task_of(train)
    checked_targets(scored)
    if name == "majority":
        return BaselineRun(np.full(len(scored), constant_answer(train)))
    if name == "bag-of-words":
        from bertology.train.baselines.bags import bag_of_words

        return BaselineRun(bag_of_words(train, scored))
    if name not in BASELINES:
        raise UnknownNameError("baseline", name, BASELINES)
    from bertology.train.baselines.networks import NetworkJob, train_network
    from bertology.train.baselines.vectors import vectors_for

    table = vectors_for(encoder, [train, scored], vectors)
    job = NetworkJob(name, table, train, scored, seed, encoder.device)
    return BaselineRun(train_network(job, progress), table.covered(scored))
