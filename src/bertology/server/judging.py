"""Gold labels beside what a classifier answers, and which examples it answers rightly."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from bertology.data.corpus import Field
from bertology.errors import BertologyError
from bertology.server.reading import ModelReader
from bertology.server.task_examples import TaskExamples, label_name

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder

_AT_ONCE = 16  # examples; other questions are answered in between


def classes_of(encoder: Encoder, corpus: Corpus) -> Mapping[str, str]:
    """What the model calls each label of a corpus; none where it answers another question.

    Raises an error where the labels may be matched in several ways.
    """
    task = corpus.task
    if encoder.head != "classification" or Field.LABEL not in corpus.fields:
        return {}
    if task is None or task.kind != "classification":
        return {}
    if len(task.labels) != encoder.config.num_labels:
        return {}
    return dict(encoder.match_labels(task.labels, ordered=task.ordered).pairs)


class Judging:
    """Compares the answers of one model with the labels of the corpora that are loaded."""

    def __init__(self, reader: ModelReader, examples: TaskExamples) -> None:
        self._reader, self._examples = reader, examples
        self._answers: dict[str, dict[str, object]] = {}

    def gold(self, text: str, pair: str | None) -> dict[str, str | None] | None:
        """The label of the example with this text, and what the model calls it."""
        found = self._examples.find(text, pair)
        if found is None or self._reader.encoder.head != "classification":
            return None
        corpus, example = found
        label = label_name(corpus, example)
        return (
            None if label is None else {"label": label, "class": self._classes(corpus).get(label)}
        )

    async def of(self, task: str) -> dict[str, object]:
        """The numbers of the examples with right and with wrong answers.

        `matched` is false where the labels of the task are not those of the model.
        """
        if task not in self._answers:
            corpus = await asyncio.to_thread(self._examples.corpus, task)
            self._answers[task] = await self._judge(corpus)
        return self._answers[task]

    def _classes(self, corpus: Corpus) -> Mapping[str, str]:
        try:
            return classes_of(self._reader.encoder, corpus)
        except BertologyError:
            return {}  # a corpus of the catalogue may be about something else

    async def _judge(self, corpus: Corpus) -> dict[str, object]:
        found: dict[str, list[int]] = {"right": [], "wrong": []}
        matched = bool(self._classes(corpus))
        for start in range(0, len(corpus), _AT_ONCE) if matched else ():
            part = corpus[start : start + _AT_ONCE]
            begun = self._reader.worker.begin(partial(self._are_right, part))
            answered = await asyncio.wrap_future(begun)
            for number, right in enumerate(answered, start):
                found["right" if right else "wrong"].append(number)
        return {**found, "matched": matched}

    def _are_right(self, corpus: Corpus) -> list[bool]:
        from bertology.train.answers import answer, encode_for
        from bertology.train.encoded import task_of

        encoder = self._reader.encoder
        answers = answer(encoder, encode_for(encoder, corpus), task_of(corpus))
        return [bool(right) for right in answers.predictions == answers.labels]
