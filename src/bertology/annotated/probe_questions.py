"""Questions to probes: rows of words or pairs that have states, their labels, and who trains.

Of every ten texts seven train, one is held out, and two are scored. Classes are those of the texts
that train; a label that none of them has can only be answered wrongly, and is counted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from bertology.annotated.states import States
from bertology.annotated.word_labels import ProbedTask
from bertology.data.corpus import Corpus
from bertology.errors import DataError

__all__ = ["UNASKED", "UNSEEN", "ProbeQuestions", "Question", "questions_of"]

Ints = NDArray[np.int64]
UNASKED, UNSEEN = -1, -2  # of labels: no question; a class that no training example has
_SPLIT = (0, 0, 2, 0, 0, 1, 0, 2, 0, 0)  # of ten texts; 0 trains, 1 is held out, 2 is scored


@dataclass(frozen=True)
class Question:
    """One task: the label of each row (R,), and that of its control task."""

    name: str
    labels: Ints
    control: Ints
    classes: int


@dataclass(frozen=True)
class ProbeQuestions:
    """R rows: their states, texts and parts; and what each task asks of them."""

    units: Ints  # (R, 1) or (R, 2): numbers of states
    examples: Ints  # (R,)
    split: Ints  # (R,)
    questions: Sequence[Question]
    frequent: NDArray[np.uint16]  # (tested texts, tasks): right by the word's most frequent label
    counts: NDArray[np.uint16]  # (tested texts, tasks)
    trained: Ints  # (tasks, 3): labels that train, classes, labels of tested texts never seen
    tested: Ints  # the texts that are scored

    def of_examples(self, hits: NDArray[np.uint16]) -> NDArray[np.uint16]:
        """Of hits by text (texts, …) those of the texts that are scored."""
        texts = max(len(hits), int(self.tested.max()) + 1)
        wide = np.zeros((texts, *hits.shape[1:]), hits.dtype)
        wide[: len(hits)] = hits
        return wide[self.tested]


def questions_of(
    corpus: Corpus, states: States, tasks: Sequence[ProbedTask], *, seed: int, every: bool = True
) -> ProbeQuestions:
    """The questions of all tasks, which are all about words or all about pairs.

    A task needs two classes or more in the texts that train; without `every`, others are left out.
    """
    number = _numbers(corpus, states)
    rows: dict[tuple[int, ...], int] = {}
    examples: list[int] = []
    answers: list[dict[int, str]] = []
    types: list[str] = []
    for task in tasks:
        found: dict[int, str] = {}
        for at, example in enumerate(corpus):
            asked = task.ask(example, seed)
            for words, label in zip(asked.units, asked.labels, strict=True):
                units = tuple(int(number[at][word]) for word in words)
                if min(units) < 0:
                    continue  # a word without a state
                if units not in rows:
                    rows[units] = len(rows)
                    examples.append(at)
                    types.append(str(example.get("words")[words[0]]).lower())
                found[rows[units]] = label
        answers.append(found)
    if not rows:
        raise DataError(
            f"{corpus.name!r} has no word to ask about.", hint="Give longer texts, or more."
        )
    of_row = np.array(examples)
    split = np.array(_SPLIT)[of_row % len(_SPLIT)]
    numbers = np.arange(len(corpus))
    tested = numbers[np.array(_SPLIT)[numbers % len(_SPLIT)] == 2]
    place = np.full(len(corpus), -1)
    place[tested] = np.arange(len(tested))
    questions, trained = [], []
    frequent: list[Ints] = []
    counts: list[Ints] = []
    for task, found in zip(tasks, answers, strict=True):
        classes = sorted({label for row, label in found.items() if split[row] == 0})
        if len(classes) < 2 and not every:
            continue
        if len(classes) < 2:
            raise DataError(
                f"The task {task.name!r} has {len(classes)} answer in the texts that train; a "
                "probe needs two or more.",
                hint="Give more text with --limit, or leave the task out.",
            )
        labels, control, guess = _labels(found, classes, split, types, len(rows), seed)
        questions.append(Question(task.name, labels, control, len(classes)))
        asked = (labels != UNASKED) & (split == 2)
        for kept, some in ((counts, asked), (frequent, asked & (guess == labels))):
            kept.append(np.bincount(place[of_row[some]], minlength=len(tested)))
        trained.append([
            int(((labels >= 0) & (split == 0)).sum()), len(classes),
            int(((labels == UNSEEN) & (split == 2)).sum()),
        ])  # fmt: skip
    if not questions:
        raise DataError(
            f"No task has two answers or more in the texts of {corpus.name!r} that train.",
            hint="Give more text with --limit.",
        )
    return ProbeQuestions(
        units=np.array(list(rows)),
        examples=of_row,
        split=split,
        questions=questions,
        frequent=np.stack(frequent, axis=1).astype(np.uint16),
        counts=np.stack(counts, axis=1).astype(np.uint16),
        trained=np.array(trained),
        tested=tested,
    )


def _labels(
    found: dict[int, str],
    classes: Sequence[str],
    split: Ints,
    types: Sequence[str],
    rows: int,
    seed: int,
) -> tuple[Ints, Ints, Ints]:
    """Labels of rows, those of the control task, and each word type's most frequent label."""
    index = {label: i for i, label in enumerate(classes)}
    labels, control, guess = (np.full(rows, UNASKED) for _ in range(3))
    by_type: dict[str, Counter[int]] = defaultdict(Counter)
    for row, label in found.items():
        labels[row] = index.get(label, UNSEEN)
        if split[row] == 0:
            by_type[types[row]][labels[row]] += 1
    usual = Counter(int(x) for x in labels[(labels >= 0) & (split == 0)])
    drawn = np.repeat(list(usual), list(usual.values()))  # labels as often as they are
    for row in found:
        known = by_type.get(types[row]) or usual
        guess[row] = min(known, key=lambda label: (-known[label], -usual[label], label))
        control[row] = drawn[crc32(f"{seed}/{types[row]}".encode()) % len(drawn)]
    return labels, control, guess


def _numbers(corpus: Corpus, states: States) -> list[Ints]:
    """The number of each word's state, by text; -1 for words without one."""
    found: list[Ints] = []
    at = word = 0
    for example in corpus:
        n = len(example.get("words"))
        there = states.there[word : word + n]
        found.append(np.where(there, at + np.cumsum(there) - 1, -1))
        at, word = at + int(there.sum()), word + n
    return found
