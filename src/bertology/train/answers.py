"""What a classifier answers on a task, whatever order its outputs have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from bertology.arrays import Floats
from bertology.data.corpus import Corpus, Task
from bertology.errors import CapabilityError
from bertology.metrics import Metric, find_metric
from bertology.results.comparison import beats_constant_answer
from bertology.train.encoded import encode, task_of
from bertology.train.token_rows import Encoded

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder
    from bertology.model.label_match import LabelMatch


@dataclass(frozen=True)
class Answers:
    """A prediction for each example of a task: a class, or a number in regression."""

    predictions: Floats  # (N,)
    labels: Floats  # (N,)
    task: Task

    @property
    def metric(self) -> Metric:
        """The task's main metric."""
        return find_metric(self.task.metrics[0])

    @property
    def score(self) -> float:
        """The main metric over all examples."""
        return self.metric.score(self.predictions, self.labels)

    @property
    def scores(self) -> dict[str, float]:
        """All metrics of the task."""
        return {
            name: find_metric(name).score(self.predictions, self.labels)
            for name in self.task.metrics
        }

    @property
    def knowing(self) -> bool:
        """Whether they are surely better than a constant answer."""
        classes = self.task.kind != "regression"
        return beats_constant_answer(
            self.predictions, self.labels, classes=classes, metric=self.metric.name
        )

    def statistics(self, metric: Metric) -> Floats:
        """(N, K), as the metric wants them."""
        return metric.statistics(self.predictions, self.labels)


def encode_for(encoder: Encoder, corpus: Corpus) -> Encoded:
    """The corpus in this model's tokens; refuses a model that answers another kind of question."""
    encoder.require_tokenizer()
    task = task_of(corpus)
    wanted = 1 if task.kind == "regression" else len(task.labels)
    given = int(encoder.config.num_labels)
    if given != wanted:
        raise CapabilityError(
            f"{encoder.name!r} has {given} outputs; {task.name!r} needs {wanted}.",
            hint="Fine-tune a model on this task first: bertology finetune MODEL TASK.",
        )
    match_of(encoder, task)
    return encode(corpus, encoder.tokenizer, encoder.max_length)


def match_of(encoder: Encoder, task: Task) -> LabelMatch:
    """Which output of the model stands for which label; refused where that is not clear."""
    return encoder.match_labels(task.labels, ordered=task.ordered)


def in_order(encoder: Encoder, corpus: Corpus) -> Corpus:
    """The same examples with labels numbered as the model's outputs are."""
    task = task_of(corpus)
    order = match_of(encoder, task).order
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


def answer(
    encoder: Encoder,
    encoded: Encoded,
    task: Task,
    *,
    batch_tokens: int = 4096,
    progress: Callable[[int], None] = lambda answered: None,
) -> Answers:
    """The answers of the model as it is: nothing is recorded or changed."""
    found = np.zeros(len(encoded))
    for chosen, logits in _outputs(encoder, encoded, task, batch_tokens):
        said = logits[:, 0] if task.kind == "regression" else logits.argmax(-1)
        found[chosen] = said.numpy()
        progress(len(chosen))
    return Answers(found, np.asarray(encoded.targets, dtype=np.float64), task)


def leanings(encoder: Encoder, encoded: Encoded, task: Task, *, batch_tokens: int = 4096) -> Floats:
    """(N,): how far a classifier of two classes leans to the second, in log odds."""
    found = np.zeros(len(encoded))
    for chosen, logits in _outputs(encoder, encoded, task, batch_tokens):
        found[chosen] = (logits[:, 1] - logits[:, 0]).numpy()
    return found


def outputs(encoder: Encoder, encoded: Encoded, task: Task, *, batch_tokens: int = 4096) -> Floats:
    """(N, classes): probabilities in the order of the task's labels; or numbers (N, 1)."""
    found = np.zeros((len(encoded), max(1, len(task.labels))))
    for chosen, logits in _outputs(encoder, encoded, task, batch_tokens):
        said = logits if task.kind == "regression" else logits.softmax(-1)
        found[chosen] = said.numpy()
    return found


def _outputs(
    encoder: Encoder, encoded: Encoded, task: Task, batch_tokens: int
) -> Iterator[tuple[Sequence[int], torch.Tensor]]:
    """Some examples and their outputs (B, classes), in the order of the task's labels."""
    order = torch.tensor(match_of(encoder, task).order)
    with encoder.turn(), torch.no_grad():
        for chosen in encoded.in_order_of_length(batch_tokens):
            inputs, _ = encoded.batch(chosen, encoder.device)
            yield chosen, encoder.model(**inputs).logits.float().cpu()[:, order]
