"""What a rule of linear order and one of structure say of a sentence, and questions to probes.

Two questions have both kinds of rule: which word is the auxiliary of the main clause (or the first
auxiliary), which noun is its subject (or the first noun). Each sentence is asked of two words: the
right one, and another. Where both rules name the same word, the other is drawn from the rest; where
they do not, it is the one that the linear rule names. Probes are trained on sentences of the first
kind and scored on those of the second, so a probe that learnt the linear rule is always wrong. A
third question is a word's place in the sentence.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from bertology.annotated.probe_questions import UNASKED, UNSEEN, Question, states_before
from bertology.annotated.states import States
from bertology.arrays import Ints
from bertology.data.corpus import Corpus, Example
from bertology.errors import DataError

PLACE, MAIN_AUXILIARY, SUBJECT = "place", "main-auxiliary", "subject"
TITLES = {
    PLACE: "place in the sentence",
    MAIN_AUXILIARY: "auxiliary of the main clause",
    SUBJECT: "subject of the main clause",
}
"""All tasks, in the order in which they are told."""
PLACES = range(1, 9)
"""Words whose place is asked: the second to the ninth, as Lin et al. have them."""
FEWEST = 10
"""Sentences in which the rules do not agree, for a task to be asked."""
_NOUNS = frozenset({"NOUN", "PROPN"})
_JOINED = frozenset({"conj", "parataxis"})  # as much of the main clause as what it is joined to
_PARTS = frozenset({"flat", "fixed", "goeswith"})  # of one name or word

_SPLIT = (0, 0, 2, 0, 0, 1, 0, 2, 0, 0)  # of ten texts; 0 trains, 1 is held out, 2 is scored
_SCORED = 2


@dataclass(frozen=True)
class Asked:
    """What one sentence is asked: words, their right answers, and whether the rules agree."""

    words: Sequence[int]
    labels: Sequence[str]
    agree: bool


def _plain(example: Example) -> list[str]:
    return [str(relation).partition(":")[0] for relation in example.get("relations")]


def _auxiliaries(example: Example) -> tuple[int | None, list[int]]:
    """The first auxiliary of the main clause, and the first ones of other clauses."""
    heads, relations, pos = example.get("heads"), _plain(example), example.get("pos")
    first: dict[int, int] = {}
    for word, head in enumerate(heads):
        if pos[word] == "AUX" and relations[word] in ("aux", "cop") and head >= 0:
            first.setdefault(head, word)
    root = next((word for word, head in enumerate(heads) if head < 0), -1)
    others = [
        word for head, word in first.items() if head != root and relations[head] not in _JOINED
    ]
    return first.get(root), sorted(others)


def _nouns(example: Example) -> tuple[int | None, list[int]]:
    """The subject of the main clause, if it is a noun, and the other nouns."""
    heads, relations, pos = example.get("heads"), _plain(example), example.get("pos")
    root = next((word for word, head in enumerate(heads) if head < 0), -1)
    subjects = [w for w, head in enumerate(heads) if head == root and relations[w] == "nsubj"]
    if len(subjects) != 1 or pos[subjects[0]] not in _NOUNS:
        return None, []
    (subject,) = subjects
    return subject, [
        word
        for word in range(len(heads))
        if pos[word] in _NOUNS
        and word not in (subject, root)
        and relations[word] not in _PARTS
        and not (heads[word] == subject and relations[word] in _JOINED)
    ]


_CANDIDATES: Mapping[str, Callable[[Example], tuple[int | None, list[int]]]] = {
    MAIN_AUXILIARY: _auxiliaries,
    SUBJECT: _nouns,
}


def asked_of(example: Example, seed: int) -> dict[str, Asked]:
    """All questions of one sentence by task; those that it has no two candidates for are left out.

    The place of words is asked of every sentence; there the rules agree if they do wherever they
    can be told apart.
    """
    rng = random.Random(crc32(f"{seed}/{example.id}/{example.text}".encode()))
    found: dict[str, Asked] = {}
    for task, candidates in _CANDIDATES.items():
        right, others = candidates(example)
        if right is None or not others:
            continue
        agree = right < others[0]
        other = rng.choice(others) if agree else others[0]
        found[task] = Asked((right, other), ("main", "other"), agree)
    places = [word for word in PLACES if word < len(example.get("words"))]
    agree = all(asked.agree for asked in found.values())
    return {PLACE: Asked(places, [f"{word:02d}" for word in places], agree), **found}


@dataclass(frozen=True)
class OrderQuestions:
    """R rows of words: their states, texts and parts, and what each task asks of them.

    A word that two tasks ask about has two rows, since it may train one and be scored in the other.
    """

    units: Ints  # (R, 1, 2): the number of the state, and the next one
    examples: Ints  # (R,)
    split: Ints  # (R,)
    questions: Sequence[Question]
    counts: NDArray[np.uint16]  # (texts, tasks): questions that are scored
    frequent: NDArray[np.uint16]  # (texts, tasks): right by the word's most frequent answer
    linear: NDArray[np.uint16]  # (texts, tasks): right by the linear rule
    agree: NDArray[np.bool_]  # (texts, tasks)
    trained: Ints  # (tasks,): texts that train


def order_questions(corpus: Corpus, states: States, *, seed: int) -> OrderQuestions:
    """The questions of all sentences. Where rules agree seven texts of ten train, one is held out.

    The other two, and all texts where they do not agree, are scored. A task without FEWEST texts of
    the latter, or without texts to train with, is left out.
    """
    before = states_before(corpus, states)
    tasks = list(TITLES)
    rows: list[_Row] = []
    agree = np.zeros((len(corpus), len(tasks)), bool)
    # Drawn, since constructions may take turns in a corpus.
    parts = np.array(_SPLIT)[np.random.default_rng(seed).permutation(len(corpus)) % len(_SPLIT)]
    for at, example in enumerate(corpus):
        for task, asked in asked_of(example, seed).items():
            which = tasks.index(task)
            spans = [(int(before[at][word]), int(before[at][word + 1])) for word in asked.words]
            if not spans or any(first == end for first, end in spans):
                continue  # a word without a state: the whole question is left out
            part = int(parts[at]) if asked.agree else _SCORED
            agree[at, which] = asked.agree
            for word, span, label in zip(asked.words, spans, asked.labels, strict=True):
                kind = str(example.get("words")[word]).lower()
                rows.append(_Row(span, at, which, part, label, kind, asked.agree))
    kept = [
        which for which in range(len(tasks))
        if {0, 1} <= {row.part for row in rows if row.task == which}
        and len({row.example for row in rows if row.task == which and not row.agree}) >= FEWEST
    ]  # fmt: skip
    if not kept:
        raise DataError(
            f"In {corpus.name!r} fewer than {FEWEST} sentences have another auxiliary or noun "
            "before that of the main clause, or too few have none to train with.",
            hint="Give more text with --limit, or the corpus grammar-order.",
        )
    rows = [row for row in rows if row.task in kept]
    split = np.array([row.part for row in rows])
    of_row = np.array([row.example for row in rows])
    questions, by_text = [], []
    for which in kept:
        labels, guess, classes = _answers(rows, which)
        scored = (labels != UNASKED) & (split == _SCORED)
        agreeing = np.array([row.agree for row in rows]) & (which > 0)
        questions.append(Question(tasks[which], labels, labels, classes))
        by_text.append([
            np.bincount(of_row[some], minlength=len(corpus))
            for some in (scored, scored & (guess == labels), scored & agreeing)
        ])  # fmt: skip
    counts, frequent, linear = (
        np.stack(of, axis=1).astype(np.uint16) for of in zip(*by_text, strict=True)
    )
    return OrderQuestions(
        units=np.array([[row.span] for row in rows]),
        examples=of_row,
        split=split,
        questions=questions,
        counts=counts,
        frequent=frequent,
        linear=linear,
        agree=agree[:, kept],
        trained=np.array([
            len({row.example for row in rows if row.task == which and row.part == 0})
            for which in kept
        ]),
    )  # fmt: skip


class _Row(NamedTuple):
    span: tuple[int, int]
    example: int
    task: int
    part: int  # 0 trains, 1 is held out, 2 is scored
    label: str
    kind: str  # the word
    agree: bool


def _answers(rows: Sequence[_Row], task: int) -> tuple[Ints, Ints, int]:
    """Labels (R,), the most frequent answer for each word (R,), and how many classes there are."""
    classes = sorted({row.label for row in rows if row.task == task and row.part == 0})
    index = {label: i for i, label in enumerate(classes)}
    labels, guess = (np.full(len(rows), UNASKED) for _ in "ab")
    usual: Counter[str] = Counter()
    by_kind: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        if row.task == task and row.part == 0:
            by_kind[row.kind][row.label] += 1
            usual[row.label] += 1
    for at, row in enumerate(rows):
        if row.task == task:
            known = by_kind.get(row.kind) or usual
            _, _, best = max((n, usual[label], label) for label, n in known.items())
            labels[at], guess[at] = index.get(row.label, UNSEEN), index[best]
    return labels, guess, len(classes)
