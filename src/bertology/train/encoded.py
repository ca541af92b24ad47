"""A corpus as numbers: tokenized once, checked against its task."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bertology.data.corpus import Corpus, Example, Field, Task
from bertology.errors import CapabilityError, DataError
from bertology.model.batch import tokenize
from bertology.train.choices import encode_choices
from bertology.train.protocols import Tokenizer
from bertology.train.token_rows import Encoded, Targets

TARGET_KINDS = ("classification", "regression")
CHOICE = "multiple-choice"
_KEPT = 8
"""Tokenized corpora: those of one seed of a study are wanted again for the next.

Six at most, with two tasks and early stopping, which holds a part of the training data back.
"""


def learnable(corpus: Corpus) -> Task:
    """The corpus's task, if a model can be fine-tuned on it: also to choose one of some answers."""
    return task_of(corpus, (*TARGET_KINDS, CHOICE))


def head_for(task: Task) -> str:
    """The head that a model of this task is loaded with."""
    return CHOICE if task.kind == CHOICE else "classification"


def task_of(corpus: Corpus, kinds: Sequence[str] = TARGET_KINDS) -> Task:
    """The corpus's task, if it is one that a sequence classifier can learn."""
    corpus.require(Field.LABEL)
    if corpus.task is None:
        raise CapabilityError(
            f"Corpus {corpus.name!r} has no task, so a model cannot be fine-tuned on it.",
            hint="`bertology datasets` shows which corpora have one.",
        )
    if corpus.task.kind not in kinds:
        raise CapabilityError(
            f"{corpus.task.name!r} is a {corpus.task.kind} task; this is for "
            f"{' and '.join(kinds)}.",
            hint="`bertology datasets` shows the kind of every task.",
        )
    return corpus.task


def encode(corpus: Corpus, tokenizer: Tokenizer, max_length: int | None) -> Encoded:
    """Tokenize a corpus; texts longer than `max_length` tokens are cut."""
    if learnable(corpus).kind == CHOICE:
        return encode_choices(corpus, checked_targets(corpus), tokenizer, max_length)
    targets = checked_targets(corpus)
    if len({len(e.texts) for e in corpus}) > 1:
        raise DataError(f"{corpus.name!r} mixes single texts and pairs of texts.")
    found = tokenize(
        tokenizer, corpus.texts, limit=max_length, too_long="truncate", name=corpus.name
    )
    return Encoded(found.rows, targets, tokenizer, len(found.cut), max_length)


_encoded: dict[tuple[str, int, int | None], Encoded] = {}


def encode_once(corpus: Corpus, tokenizer: Tokenizer, max_length: int | None) -> Encoded:
    """The same, but not again for the next model that learns from these data, such as a seed."""
    # What is kept holds its tokenizer, so that no other one can have its id.
    key = (corpus.fingerprint, id(tokenizer), max_length)
    found = _encoded.pop(key, None) or encode(corpus, tokenizer, max_length)
    _encoded[key] = found
    while len(_encoded) > _KEPT:
        del _encoded[next(iter(_encoded))]
    return found


def checked_targets(corpus: Corpus) -> Targets:
    """What is to be predicted for each example: a class of the task, or a finite number."""
    task = learnable(corpus)
    return [_target(e, task) for e in corpus]


def _target(example: Example, task: Task) -> float:
    label = example.get("label")
    if task.kind == "regression":
        if isinstance(label, bool) or not math.isfinite(label):
            raise DataError(
                f"The label of example {example.id!r} is {label!r}, not a finite number.",
                hint="Drop examples without a score.",
            )
        return float(label)
    if (
        isinstance(label, bool)
        or label != label
        or int(label) != label
        or not (0 <= label < len(task.labels))
    ):
        raise DataError(
            f"The label of example {example.id!r} is {label!r}, not a class of {task.name!r} "
            f"(0 to {len(task.labels) - 1}: {', '.join(task.labels)})."
        )
    return int(label)
