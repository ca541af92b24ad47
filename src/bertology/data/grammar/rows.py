"""Rows of the grammar's corpora: endless streams, and what is new of them in one split."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate
from typing import TypeVar

from bertology.data.grammar.entailment import ENTAILED, HEURISTICS, EntailmentDraw
from bertology.data.grammar.fragments import FRAGMENTS, FragmentDraw
from bertology.data.grammar.minimal_pairs import (
    MAX_ATTRACTORS,
    NPI_KINDS,
    REFLEXIVE_KINDS,
    MinimalPair,
    MinimalPairDraw,
)
from bertology.data.grammar.numbers import NumberDraw
from bertology.data.grammar.paraphrase import ParaphraseDraw
from bertology.data.grammar.sentence_tasks import KINDS as TASK_KINDS
from bertology.data.grammar.sentence_tasks import ORDERS, OrderDraw, TaskDraw
from bertology.data.grammar.sentences import draw_sentences
from bertology.data.grammar.tree import annotate
from bertology.errors import ParameterError

T = TypeVar("T")

Row = tuple[str, str | None, int | float | None, dict[str, object]]
"""Text, second text (or None), label (or None), annotations."""
Stream = Iterator[list[Callable[[], Row]]]
"""Turn by turn, what makes one row of every kind."""
_FEW_ATTRACTORS = (0, 1, 2)
_STALE = 20_000  # draws without a new sentence after which a corpus is taken to be exhausted


def split_of(text: str) -> str:
    """The split a sentence belongs to, in every corpus, for every seed: by a hash of its text."""
    # Half to train: a pair must have both its sentences in one split, so a smaller share for
    # the others would make their pairs slow to find.
    return ("train", "train", "validation", "test")[zlib.crc32(text.encode()) % 4]


def distinct(stream: Stream, n: int, split: str | None) -> list[Row]:
    """The first `n` new rows of the split; each turn of the stream gives one row of every kind."""
    rows: list[Row] = []
    seen: set[tuple[str, str | None]] = set()
    for makers in stream:
        for make in makers:
            if len(rows) == n:
                return rows
            rows.append(_new(make, seen, split))
    return rows


def _new(make: Callable[[], Row], seen: set[tuple[str, str | None]], split: str | None) -> Row:
    for _ in range(_STALE):
        row = make()
        key = row[:2]
        if key in seen or row[0] == row[1]:
            continue
        if split is None or all(split_of(text) == split for text in key if text is not None):
            seen.add(key)
            return row
    raise ParameterError("size", "the grammar", "be within what it can say", len(seen) + 1)


def sentence_rows(seed: int) -> Stream:
    """Annotated sentences of all kinds."""
    drawn = draw_sentences(seed)

    def make() -> Row:
        text, annotations = annotate(next(drawn))
        return text, None, None, annotations

    while True:
        yield [make]


def paraphrase_rows(seed: int, *, hard: bool) -> Stream:
    """Pairs that mean the same, and pairs that do not."""
    draw = ParaphraseDraw(random.Random(seed))
    draw.hard = hard

    def make(label: int) -> Row:
        pair = draw.pair(label)
        return pair.first, pair.second, pair.label, {"kind": pair.kind}

    while True:
        yield [lambda: make(0), lambda: make(1)]


def entailment_rows(seed: int, **heuristics: bool) -> Stream:
    """Pairs of each heuristic and label; of a heuristic that is off, none misleads."""
    draw = EntailmentDraw(random.Random(seed))

    def maker(heuristic: str, label: int) -> Callable[[], Row]:
        def make() -> Row:
            drawn = draw.inference(heuristic, label, misled=heuristics[heuristic])
            about: dict[str, object] = {"heuristic": heuristic, "case": drawn.case}
            return drawn.premise, drawn.hypothesis, drawn.label, about

        return make

    makers = [maker(h, label) for h in HEURISTICS for label in (ENTAILED, 1 - ENTAILED)]
    while True:
        yield makers


def heuristic_rows(seed: int) -> Stream:
    """The same with counterexamples to all heuristics; each row says its heuristic and its case."""
    for makers in entailment_rows(seed, **dict.fromkeys(HEURISTICS, True)):
        yield [_named_case(make) for make in makers]


def _named_case(make: Callable[[], Row]) -> Callable[[], Row]:
    def named() -> Row:
        premise, hypothesis, label, about = make()
        return premise, hypothesis, label, {"group": about["heuristic"], "subcase": about["case"]}

    return named


def _contrast_maker(draw: Callable[[T], MinimalPair], kind: T) -> Callable[[], Row]:
    def make() -> Row:
        good, annotations = draw(kind).annotated()
        return good, None, None, annotations

    return make


def agreement_rows(seed: int) -> Stream:
    """Minimal pairs with as many attractors as there may be."""
    draw = MinimalPairDraw(random.Random(seed))
    counts = range(MAX_ATTRACTORS + 1)
    while True:
        yield [_contrast_maker(draw.agreement, count) for count in counts]


def reflexive_rows(seed: int) -> Stream:
    """Minimal pairs of each kind of reflexives."""
    draw = MinimalPairDraw(random.Random(seed))
    while True:
        yield [_contrast_maker(draw.reflexives, kind) for kind in REFLEXIVE_KINDS]


def npi_rows(seed: int) -> Stream:
    """Minimal pairs of each kind of negative polarity items."""
    draw = MinimalPairDraw(random.Random(seed))
    while True:
        yield [_contrast_maker(draw.npi, kind) for kind in NPI_KINDS]


def order_rows(seed: int) -> Stream:
    """Sentences of each order of words."""
    draw = OrderDraw(random.Random(seed))

    def make(construction: str) -> Row:
        text, annotations = annotate(draw.ordered(construction))
        return text, None, None, annotations | {"group": construction}

    while True:
        yield [partial(make, construction) for construction in ORDERS]


def sentence_task_rows(seed: int) -> Stream:
    """Sentences for each of the tasks about whole sentences."""
    draw = TaskDraw(random.Random(seed))

    def make(kind: str) -> Row:
        text, annotations = draw.labelled(kind)
        return text, None, None, annotations

    while True:
        yield [partial(make, kind) for kind in TASK_KINDS]


def fragment_rows(seed: int) -> Stream:
    """Pairs of each fragment and label."""
    draw = FragmentDraw(random.Random(seed))

    def make(fragment: str, label: int) -> Row:
        drawn = draw.pair(fragment, label)
        about: dict[str, object] = {"group": fragment, "steps": drawn.steps}
        return drawn.premise, drawn.hypothesis, drawn.label, about

    while True:
        yield [partial(make, fragment, label) for fragment in FRAGMENTS for label in range(3)]


def number_rows(kind: str, split: str, seed: int) -> Iterator[Row]:
    """Numbers with their values, lists with the place of the largest, or sums; without an end."""
    draw = NumberDraw(random.Random(seed), split, split_of)
    rows = {"values": draw.values, "lists": draw.lists, "sums": draw.sums}[kind]()
    between = " + " if kind == "sums" else ", "
    for group, words, label in rows:
        ends = list(accumulate(len(word) + len(between) for word in words))
        offsets = [
            (end - len(between) - len(w), end - len(between))
            for w, end in zip(words, ends, strict=True)
        ]
        about: dict[str, object] = {"words": words, "offsets": offsets, "group": group}
        yield between.join(words), None, int(label) if kind == "lists" else float(label), about


def acceptability_rows(seed: int) -> Stream:
    """Good and bad sentences of all kinds of minimal pairs, each of a pair of its own.

    Words give some away: "any" and "ever" need a licensor, so neighbouring words tell good from
    bad for NPIs. Agreement and reflexives ask for the structure.
    """
    draw = MinimalPairDraw(random.Random(seed))
    kinds: list[tuple[str, Callable[[], MinimalPair]]] = [
        *(("agreement", partial(draw.agreement, n)) for n in _FEW_ATTRACTORS),
        *(("reflexives", partial(draw.reflexives, kind)) for kind in REFLEXIVE_KINDS),
        *(("npi", partial(draw.npi, kind)) for kind in NPI_KINDS),
    ]

    def make(kind: str, pair: Callable[[], MinimalPair], label: int) -> Row:
        while True:
            good, bad = pair().texts()
            # Both in one split, so that no other corpus of minimal pairs shows the bad one before.
            if split_of(good) == split_of(bad):
                return good if label else bad, None, label, {"kind": kind}

    while True:
        yield [partial(make, *one, label) for one in kinds for label in (0, 1)]
