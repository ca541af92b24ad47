"""The scores of a model on its task, and those of always giving the same answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from bertology.data.corpus import Corpus, Task
from bertology.metrics import find_metric
from bertology.train.encoded import Encoded, task_of
from bertology.train.protocols import Classifier

__all__ = ["baseline", "predict", "scores"]

_TOKENS_PER_BATCH = 4096


def predict(model: Classifier, encoded: Encoded, task: Task) -> NDArray[np.float64]:
    """The model's prediction for each example, in their order: class ids, or numbers."""
    found = np.zeros(len(encoded))
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            for chosen in encoded.in_order_of_length(_TOKENS_PER_BATCH):
                inputs, _ = encoded.batch(chosen, model.device)
                logits = model(**inputs).logits  # (B, classes), or (B, 1) for regression
                said = logits[:, 0] if task.kind == "regression" else logits.argmax(-1)
                found[chosen] = said.float().cpu().numpy()
    finally:
        model.train(was_training)
    return found


def scores(
    predictions: NDArray[np.float64], targets: Sequence[float], task: Task
) -> dict[str, float]:
    """All of the task's metrics, the main one first."""
    return {name: find_metric(name).score(predictions, targets) for name in task.metrics}


def baseline(train: Corpus, validation: Corpus) -> dict[str, float]:
    """The scores of one constant answer: the most frequent class, or the mean, of `train`."""
    task = task_of(train)
    if task.kind == "regression":
        always = float(np.mean(train.labels))
    else:
        counts = Counter(train.labels)
        always = min(counts, key=lambda label: (-counts[label], label))
    return scores(np.full(len(validation), always), validation.labels, task)
