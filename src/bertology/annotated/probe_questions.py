"""Questions to probes: rows of spans or pairs that have states, their labels, and who trains.

Of every ten texts seven train, one is held out, and two are scored; the same text twice is in one
part. Classes are those of the texts that train; a label that none of them has can only be answered
wrongly. What cannot be asked is left out, and counted (`COUNTED`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from bertology.annotated.states import States
from bertology.annotated.word_labels import COUNTED, ProbedTask, Unit
from bertology.arrays import Ints
from bertology.data.corpus import Corpus, Example
from bertology.errors import DataError

UNASKED, UNSEEN = -1, -2  # of labels: no question; a class that no training example has
_SPLIT = (0, 0, 2, 0, 0, 1, 0, 2, 0, 0)  # of ten texts; 0 trains, 1 is held out, 2 is scored


class NoQuestionsError(DataError):
    """There is nothing to ask; a study may have other questions."""


@dataclass(frozen=True)
class Question:
    """One question: the label of each row (R,), and those of its control tasks (seeds, R).

    Labels are numbers of classes; or, as floats with NaN for none, numbers that are to be told.
    """

    name: str
    labels: NDArray[Any]
    control: NDArray[Any]
    classes: int


@dataclass(frozen=True)
class ProbeQuestions:
    """R rows: their states, texts and parts; and what each task asks of them.

    A task has one question, or several (one for each property), whose right answers are added up.
    """

    units: Ints  # (R, 1, 2) or (R, 2, 2): of each span the first state and the one after the last
    examples: Ints  # (R,)
    split: Ints  # (R,)
    questions: Sequence[Question]
    tasks: Sequence[str]
    task_of: Ints  # (questions,): the number of its task
    frequent: NDArray[np.uint16]  # (tested texts, tasks): right by the words' most frequent label
    counts: NDArray[np.uint16]  # (tested texts, tasks)
    about: Ints  # (tasks, COUNTED)
    tested: Ints  # the texts that are scored

    @property
    def one_word(self) -> list[str]:
        """Tasks whose spans that train have one word each."""
        longer = ((self.units[..., 1] - self.units[..., 0]) > 1).any(axis=1) & (self.split == 0)
        some = {
            int(task)
            for question, task in zip(self.questions, self.task_of, strict=True)
            if (longer & (question.labels != UNASKED)).any()
        }
        return [name for number, name in enumerate(self.tasks) if number not in some]

    def of_examples(self, hits: NDArray[Any]) -> NDArray[Any]:
        """Hits (texts, questions, …) as those of the texts that are scored and of tasks."""
        texts = max(len(hits), int(self.tested.max()) + 1)
        wide = np.zeros((texts, *hits.shape[1:]), hits.dtype)
        wide[: len(hits)] = hits
        return np.moveaxis(self.of_tasks(np.moveaxis(wide[self.tested], 1, 0)), 0, 1)

    def of_tasks(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sums (tasks, …) of what questions have (questions, …)."""
        found = np.zeros((len(self.tasks), *values.shape[1:]), values.dtype)
        np.add.at(found, self.task_of, values)
        return found


@dataclass
class _Rows:
    """The spans that are asked about, each once, with its text and its words."""

    number: dict[Unit, int] = field(default_factory=dict)
    examples: list[int] = field(default_factory=list)
    types: list[Sequence[str]] = field(default_factory=list)

    def add(self, unit: Unit, text: int, types: Sequence[str]) -> int:
        if unit not in self.number:
            self.number[unit] = len(self.number)
            self.examples.append(text)
            self.types.append(types)
        return self.number[unit]


@dataclass
class _Answers:
    """What one task asks: by question the answer of each row; and what was left out."""

    of: dict[str, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))
    counts: Counter[str] = field(default_factory=Counter)


def questions_of(
    corpus: Corpus,
    states: States,
    tasks: Sequence[ProbedTask],
    *,
    seed: int,
    seeds: int = 1,
    every: bool = True,
) -> ProbeQuestions:
    """The questions of all tasks, which are all about single spans or all about pairs.

    A task needs two answers or more in the texts that train; without `every`, others are left out.
    There are control tasks of as many `seeds`, from `seed` on.
    """
    rows, starts = _Rows(), states_before(corpus, states)
    answers = [_asked(corpus, starts, task, rows, seed) for task in tasks]
    if not rows.number:
        left = sum((one.counts for one in answers), Counter[str]())
        raise NoQuestionsError(
            f"{corpus.name!r} has nothing to ask about in its words"
            + (f": {left.total()} spans have words without a state." if left.total() else "."),
            hint="Give longer texts, or more.",
        )
    of_row, of_text = np.array(rows.examples), parts_of_texts(corpus)
    split = of_text[of_row]
    tested = np.flatnonzero(of_text == 2)
    place = np.full(len(corpus), -1)
    place[tested] = np.arange(len(tested))
    kept: list[str] = []
    questions: list[Question] = []
    task_of, frequent, counts, about = list[int](), list[Ints](), list[Ints](), list[list[int]]()
    for task, found in zip(tasks, answers, strict=True):
        made = [
            _question(name, of, split, rows.types, range(seed, seed + seeds), found.counts)
            for name, of in sorted(found.of.items())
        ]
        usable = [one for one in made if one is not None]
        if not usable and every:
            raise DataError(
                f"The task {task.name!r} has {_fewer(found, split)} in the texts that train; a "
                "probe needs two or more.",
                hint="Give more text with --limit, or leave the task out.",
            )
        if not usable:
            continue
        asked = [(one.labels != UNASKED) & (split == 2) for one, _ in usable]
        right = [
            where & (guess == one.labels) for (one, guess), where in zip(usable, asked, strict=True)
        ]
        for sums, some in ((counts, asked), (frequent, right)):
            by_text = [np.bincount(place[of_row[one]], minlength=len(tested)) for one in some]
            sums.append(np.sum(by_text, axis=0))
        task_of += [len(kept)] * len(usable)
        questions += [one for one, _ in usable]
        kept.append(task.name)
        found.counts["classes"] = max(one.classes for one, _ in usable)
        about.append([found.counts[name] for name in COUNTED])
    if not questions:
        raise NoQuestionsError(
            f"No task has two answers or more in the texts of {corpus.name!r} that train.",
            hint="Give more text with --limit.",
        )
    return ProbeQuestions(
        units=np.array(list(rows.number)),
        examples=of_row,
        split=split,
        questions=questions,
        tasks=kept,
        task_of=np.array(task_of),
        frequent=np.stack(frequent, axis=1).astype(np.uint16),
        counts=np.stack(counts, axis=1).astype(np.uint16),
        about=np.array(about),
        tested=tested,
    )


def _asked(
    corpus: Corpus, starts: Sequence[Ints], task: ProbedTask, rows: _Rows, seed: int
) -> _Answers:
    """The answers of one task in all texts; spans become numbers of states."""
    found = _Answers()
    for text, example in enumerate(corpus):
        asked = task.ask(example, seed)
        about = asked.about if asked.about is not None else [task.name] * len(asked.units)
        before = starts[text]  # (words + 1,)
        for words, label, name in zip(asked.units, asked.labels, about, strict=True):
            unit = tuple((int(before[first]), int(before[end])) for first, end in words)
            lost = [
                (end - first) - (b - a) for (first, end), (a, b) in zip(words, unit, strict=True)
            ]
            if any(a == b for a, b in unit):
                found.counts["cut"] += 1
            elif any(lost):
                found.counts["partly"] += 1
            else:
                row = rows.add(unit, text, _types(example, words))
                if found.of[name].setdefault(row, label) != label:
                    found.counts["doubled"] += 1
    return found


def _question(
    name: str,
    found: Mapping[int, str],
    split: Ints,
    types: Sequence[Sequence[str]],
    seeds: Sequence[int],
    counts: Counter[str],
) -> tuple[Question, Ints] | None:
    """One question with each row's most frequent label; None if all that train answer alike."""
    often = Counter(label for row, label in found.items() if split[row] == 0)
    if len(often) < 2:
        counts["constant"] += 1
        return None
    classes = sorted(often)
    labels, control, guess = _labels(found, classes, split, types, seeds)
    counts["labels"] += int(((labels >= 0) & (split == 0)).sum())
    counts["unseen"] += int(((labels == UNSEEN) & (split == 2)).sum())
    counts["once"] += sum(n == 1 for n in often.values())
    return Question(name, labels, control, len(classes)), guess


def _labels(
    found: Mapping[int, str],
    classes: Sequence[str],
    split: Ints,
    types: Sequence[Sequence[str]],
    seeds: Sequence[int],
) -> tuple[Ints, Ints, Ints]:
    """Labels of rows, those of control tasks, and the most frequent label of the row's words.

    Words that no training text has are answered as their last one is, or else as most are. The
    control task goes by the last word alone, which a probe could learn by heart.
    """
    index = {label: i for i, label in enumerate(classes)}
    labels, guess = (np.full(len(split), UNASKED) for _ in range(2))
    control = np.full((len(seeds), len(split)), UNASKED)
    by_type: dict[str, Counter[int]] = defaultdict(Counter)
    for row, label in found.items():
        labels[row] = index.get(label, UNSEEN)
        if split[row] == 0:
            for one in set(types[row]):
                by_type[one][labels[row]] += 1
    usual = Counter(int(x) for x in labels[(labels >= 0) & (split == 0)])
    drawn = np.repeat(list(usual), list(usual.values()))  # labels as often as they are
    for row in found:
        known = next((by_type[one] for one in types[row] if one in by_type), usual)
        guess[row] = min(known, key=lambda label: (-known[label], -usual[label], label))
        for number, seed in enumerate(seeds):
            at = crc32(f"{seed}/{types[row][-1]}".encode()) % len(drawn)
            control[number, row] = drawn[at]
    return labels, control, guess


def _types(example: Example, unit: Unit) -> Sequence[str]:
    """All words of the spans, and the last word of the first one."""
    words = example.get("words")
    whole = "\t".join(" ".join(words[first:end]) for first, end in unit)
    return whole.lower(), str(words[unit[0][1] - 1]).lower()


def _fewer(found: _Answers, split: Ints) -> str:
    """How many answers the one question of a task has; of several, how many have one answer."""
    if len(found.of) > 1:
        return f"{len(found.of)} properties, each with one answer"
    of = next(iter(found.of.values()), {})
    answers = {label for row, label in of.items() if split[row] == 0}
    return f"{len(answers)} answer{'' if len(answers) == 1 else 's'}"


def parts_of_texts(corpus: Corpus) -> Ints:
    """0 for texts that train, 1 for held-out ones, 2 for those that are scored: (texts,).

    The same text a second time goes where the first one went.
    """
    first: dict[tuple[str, ...], int] = {}
    numbers = [first.setdefault(example.texts, at) for at, example in enumerate(corpus)]
    found: Ints = np.array(_SPLIT)[np.array(numbers) % len(_SPLIT)]
    return found


def states_before(corpus: Corpus, states: States) -> list[Ints]:
    """By text, how many states stand before each word and after the last: (words + 1,)."""
    found: list[Ints] = []
    at = word = 0
    for example in corpus:
        n = len(example.get("words"))
        there = states.there[word : word + n]
        found.append(at + np.concatenate([[0], np.cumsum(there)]))
        at, word = at + int(there.sum()), word + n
    return found
