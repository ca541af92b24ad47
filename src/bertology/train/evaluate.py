"""The scores of a model on its task, and those of always giving the same answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call

from bertology.data.corpus import Corpus, Task
from bertology.metrics import find_metric
from bertology.train.encoded import learnable
from bertology.train.protocols import Classifier
from bertology.train.token_rows import Encoded

_TOKENS_PER_BATCH = {"cpu": 4096, "cuda": 32768}  # a GPU is idle over few tokens


def predict(model: Classifier, encoded: Encoded, task: Task) -> NDArray[np.float64]:
    """The model's prediction for each example, in their order: class ids, or numbers."""
    [found] = predict_under(model, [{}], encoded, task)
    return np.asarray(found)


def predict_under(
    model: Classifier, heads: Sequence[Mapping[str, Tensor]], encoded: Encoded, task: Task
) -> NDArray[np.float64]:
    """(heads, examples): predictions under each head, which are weights by their names.

    What no head changes is computed once for all of them. Every such weight must come before those
    of the heads, as an encoder does.
    """
    assert isinstance(model, nn.Module)
    found = np.zeros((len(heads), len(encoded)))
    was_training = model.training
    most = _TOKENS_PER_BATCH.get(model.device.type, _TOKENS_PER_BATCH["cpu"])
    model.eval()
    try:
        with torch.no_grad():
            for chosen in encoded.in_order_of_length(most):
                inputs, _ = encoded.batch(chosen, model.device)
                with _computed_once(model, heads[0]):
                    for head, row in zip(heads, found, strict=True):
                        # (B, classes), or (B, 1) for regression
                        logits = functional_call(model, dict(head), kwargs=inputs).logits
                        said = logits[:, 0] if task.kind == "regression" else logits.argmax(-1)
                        row[chosen] = said.float().cpu().numpy()
    finally:
        model.train(was_training)
    return found


@contextmanager
def _computed_once(model: nn.Module, changed: Mapping[str, Tensor]) -> Iterator[None]:
    """Modules that hold weights, and none of the `changed` ones, keep their first answer."""
    kept = list(_largest_without(model, changed)) if changed else []
    for module in kept:
        module.forward = _Once(module.forward)
    try:
        yield
    finally:
        for module in kept:
            del module.forward


class _Once:
    """A call whose first answer is given again, whatever is asked."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call, self._answer = call, None

    def __call__(self, *given: Any, **more: Any) -> Any:
        if self._answer is None:
            self._answer = self._call(*given, **more)
        return self._answer


def _largest_without(
    module: nn.Module, changed: Collection[str], at: str = ""
) -> Iterator[nn.Module]:
    """The largest modules that have weights of their own or below, but none of the `changed`."""
    for name, child in module.named_children():
        here = f"{at}{name}."
        if any(weight.startswith(here) for weight in changed):
            yield from _largest_without(child, changed, here)
        elif any(True for _ in child.parameters()):
            yield child


def scores(
    predictions: NDArray[np.float64], targets: Sequence[float], task: Task
) -> dict[str, float]:
    """All of the task's metrics, the main one first."""
    return {name: find_metric(name).score(predictions, targets) for name in task.metrics}


def baseline(train: Corpus, validation: Corpus) -> dict[str, float]:
    """The scores of one constant answer: the most frequent class, or the mean, of `train`."""
    always = np.full(len(validation), constant_answer(train))
    return scores(always, validation.labels, learnable(train))


def constant_answer(train: Corpus) -> float:
    """The mean, or the most frequent class; of equally frequent ones the first."""
    if learnable(train).kind == "regression":
        return float(np.mean(train.labels))
    counts = Counter(train.labels)
    return float(min(counts, key=lambda label: (-counts[label], label)))
