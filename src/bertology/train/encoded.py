"""A corpus as numbers: tokenized once, checked against its task.

Multiple choice is a row of tokens for each answer, all answers of a question together. A row is
the text and then question and answer (`Example`: TEXT, TEXT_B, CANDIDATES). Where it is too long,
the longer of both loses its end, which is the text's unless that is short.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from bertology.data.corpus import Corpus, Example, Field, Task
from bertology.errors import CapabilityError, DataError
from bertology.model.batch import by_length, tokenize
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


@dataclass(frozen=True)
class EncodedChoices(Encoded):
    """Questions: `rows` has the answers of each one after the other, `targets` the right ones."""

    choices: int = 2

    @cached_property
    def _each(self) -> Encoded:
        """Every answer as an example of its own."""
        targets = [0] * len(self.rows["input_ids"])
        return Encoded(self.rows, targets, self.tokenizer, limit=self.limit)

    @property
    def lengths(self) -> list[int]:
        """Of the longest answer of each question, to which the others are padded."""
        each, n = self._each.lengths, self.choices
        return [max(each[i : i + n]) for i in range(0, len(each), n)]

    def batch(
        self, chosen: Sequence[int], device: torch.device, *, multiple: int = 1
    ) -> tuple[dict[str, Tensor], Tensor]:
        """Inputs (questions, answers, tokens), and the places of the right answers."""
        n = self.choices
        rows = [i * n + k for i in chosen for k in range(n)]
        inputs, _ = self._each.batch(rows, device, multiple=multiple)
        targets = torch.tensor([self.targets[i] for i in chosen])
        shaped = {name: value.view(len(chosen), n, -1) for name, value in inputs.items()}
        return shaped, targets.to(device, non_blocking=True)

    def in_order_of_length(self, tokens_per_batch: int) -> Iterator[list[int]]:
        """Every question once, in batches that hold so many tokens with all their answers."""
        yield from by_length(self.lengths, max(1, tokens_per_batch // self.choices))


def answer_count(corpus: Corpus) -> int:
    """How many answers each question has, if all have as many."""
    corpus.require(Field.CANDIDATES)
    counts = {len(example.get("candidates")): example.id for example in corpus}
    if len(counts) > 1:
        some = " and ".join(f"{n} ({counts[n]!r})" for n in sorted(counts)[:2])
        raise DataError(
            f"Questions of {corpus.name!r} have different numbers of answers: {some}.",
            hint="Give all as many, or learn those with one number of answers by themselves.",
        )
    (count,) = counts
    if count < 2:
        raise DataError(f"Questions of {corpus.name!r} have one answer; two or more are needed.")
    return count


def encode_choices(
    corpus: Corpus, targets: Targets, tokenizer: Tokenizer, max_length: int | None
) -> EncodedChoices:
    """Tokenize questions with all their answers; rows longer than `max_length` are cut."""
    count = answer_count(corpus)
    for example, target in zip(corpus, targets, strict=True):
        if target >= count:
            raise DataError(f"Example {example.id!r}: answer {target} is right, but of {count}.")
    rows = [row for example in corpus for row in rows_of(example)]
    found = tokenize(tokenizer, list(rows), limit=max_length, too_long="truncate", name=corpus.name)
    cut = len({i // count for i in found.cut})
    return EncodedChoices(found.rows, targets, tokenizer, cut, max_length, choices=count)


def rows_of(example: Example) -> list[tuple[str, str]]:
    """What is read for each answer: the text, and the question with the answer."""
    asked = f"{example.text_b} " if example.text_b else ""
    return [(example.text, f"{asked}{answer}") for answer in example.get("candidates")]
