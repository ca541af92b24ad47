"""The grammar as corpora: annotated sentences, tasks with gold labels, minimal pairs."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate, islice
from typing import TypeVar

from bertology.data.corpus import Corpus, Example, Field
from bertology.data.grammar.chains import chain_rows
from bertology.data.grammar.entailment import ENTAILED, HEURISTICS, EntailmentDraw
from bertology.data.grammar.facts import SPLIT as FACTS_SPLIT
from bertology.data.grammar.facts import fact_rows
from bertology.data.grammar.fragments import FRAGMENTS, FragmentDraw
from bertology.data.grammar.licensing import licensing_rows
from bertology.data.grammar.minimal_pairs import (
    MAX_ATTRACTORS,
    NPI_KINDS,
    REFLEXIVE_KINDS,
    MinimalPair,
    MinimalPairDraw,
)
from bertology.data.grammar.numbers import EXTRAPOLATION, NumberDraw
from bertology.data.grammar.objects import OBJECT_SENTENCES, object_rows
from bertology.data.grammar.paraphrase import ParaphraseDraw
from bertology.data.grammar.sentence_tasks import KINDS as TASK_KINDS
from bertology.data.grammar.sentence_tasks import TaskDraw
from bertology.data.grammar.sentences import draw_sentences
from bertology.data.grammar.tasks import TASKS
from bertology.data.grammar.tree import annotate
from bertology.data.grammar.word_order import ORDERS, OrderDraw
from bertology.errors import ParameterError, UnknownNameError

T = TypeVar("T")

__all__ = ["CORPUS_NAMES", "SIZES", "SWITCHES", "corpus", "sentences", "split_of"]

SIZES = {"train": 4000, "validation": 1000, "test": 1000}
SWITCHES: dict[str, dict[str, bool]] = {
    "grammar": {},
    "grammar-paraphrase": {"hard": True},
    "grammar-entailment": dict.fromkeys(HEURISTICS, True),
    "grammar-acceptability": {},
    "grammar-agreement": {},
    "grammar-reflexives": {},
    "grammar-npi": {},
    "grammar-licensing": {},
    "grammar-order": {},
    "grammar-sentences": {},
    "grammar-fragments": {},
    "grammar-chains": {},
    "grammar-facts": {},
    "grammar-objects": {},
    "grammar-number-values": {},
    "grammar-number-lists": {},
    "grammar-number-sums": {},
}
"""The corpora by name, and the switches each one has with their defaults."""

CORPUS_NAMES = tuple(SWITCHES)

_ANNOTATED = frozenset(
    {
        Field.TEXT,
        Field.WORDS,
        Field.LEMMAS,
        Field.POS,
        Field.HEADS,
        Field.RELATIONS,
        Field.CHUNKS,
        Field.SUBJECT,
        Field.OBJECT,
        Field.VERB,
        Field.ROLES,
        Field.FRAME,
        Field.COREFERENCE,
        Field.NEGATION,
        Field.TENSE,
        Field.NUMBER,
    }
)
_CONTRASTED = _ANNOTATED | {Field.CONTRAST}
_GROUPED = _ANNOTATED | {Field.GROUP}
_SENTENCES = frozenset({Field.TEXT, Field.WORDS, Field.SENTENCE_LABELS})
_JUDGED = frozenset({Field.TEXT, Field.LABEL})
_PAIRED = _JUDGED | {Field.TEXT_B}
_PARADIGMS = _JUDGED | {Field.GROUP, Field.ITEM, Field.SENTENCE_LABELS}
_NUMBERS = _JUDGED | {Field.WORDS, Field.OFFSETS, Field.GROUP}
_OBJECTS = "grammar-objects"
_FACTS = "grammar-facts"
_NUMBER_CORPORA = ("grammar-number-values", "grammar-number-lists", "grammar-number-sums")
# Text, second text (or None), label (or None), annotations.
_Row = tuple[str, str | None, int | float | None, dict[str, object]]
_FEW_ATTRACTORS = (0, 1, 2)
_STALE = 20_000  # draws without a new sentence after which a corpus is taken to be exhausted


def split_of(text: str) -> str:
    """The split a sentence belongs to, in every corpus, for every seed: by a hash of its text."""
    # Half to train: a pair must have both its sentences in one split, so a smaller share for
    # the others would make their pairs slow to find.
    return ("train", "train", "validation", "test")[zlib.crc32(text.encode()) % 4]


def sentences(n: int, seed: int = 0) -> list[Example]:
    """`n` distinct annotated sentences, from all splits; the same for the same seed."""
    rows = _distinct(_sentence_rows(seed), n, None)
    return _examples("grammar", rows)


def corpus(
    name: str,
    *,
    split: str = "validation",
    size: int | None = None,
    seed: int = 0,
    **switches: object,
) -> Corpus:
    """One of the corpora of the grammar.

    Parameters
    ----------
    name
        "grammar" (annotated sentences), "grammar-paraphrase", "grammar-entailment",
        "grammar-acceptability", "grammar-agreement", "grammar-reflexives", "grammar-npi",
        "grammar-licensing", "grammar-order", "grammar-sentences", "grammar-fragments",
        "grammar-chains", "grammar-facts", "grammar-objects", "grammar-number-values",
        "grammar-number-lists" or "grammar-number-sums".
    split
        "train", "validation" or "test". No sentence is in two splits, whatever corpus or seed.
        Of the numbers, no number is; they also have "extrapolation", with larger ones. Of
        "grammar-licensing", no paradigm of eight sentences is. Facts and objects are lists, all
        of them "test".
    size
        How many examples; by default 4,000 to train and 1,000 each to validate and test, and all
        facts and objects.
    switches
        Of "grammar-paraphrase": `hard` (non-paraphrases mostly share all their words). Of
        "grammar-entailment": `lexical_overlap`, `subsequence`, `constituent` (whether there are
        non-entailments which that heuristic gets wrong). All are on by default.
    """
    if name not in SWITCHES:
        raise UnknownNameError("grammar corpus", name, CORPUS_NAMES)
    known = _splits(name)
    if split not in known:
        raise UnknownNameError("split", split, known)
    usual = OBJECT_SENTENCES if name == _OBJECTS else SIZES.get(split, SIZES["test"])
    wanted = usual if size is None else size
    if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 1:
        raise ParameterError("size", name, "be a whole number from 1", wanted)
    chosen = _switches(name, switches)
    # Another seed per split keeps the splits from being filtered copies of one stream.
    stream_seed = seed * 3 + known.index(split)
    if name in _NUMBER_CORPORA:
        rows = list(islice(_number_rows(name, split, stream_seed), wanted))
    elif name == _FACTS:
        rows = [(text, None, None, about) for text, about in fact_rows(seed, wanted)]
    elif name == "grammar-licensing":
        paradigms = licensing_rows(stream_seed, lambda key: split_of(key) == split)
        rows = [(text, None, label, about) for text, label, about in islice(paradigms, wanted)]
    elif name == _OBJECTS:
        rows = [(text, None, label, about) for text, label, about in object_rows(seed, wanted)]
    elif name == "grammar-chains":
        chains = chain_rows(stream_seed, lambda text: split_of(text) == split)
        rows = [(text, None, None, about) for text, about in islice(chains, wanted)]
    else:
        rows = _distinct(_ROWS[name](stream_seed, **chosen), wanted, split)
    examples = _examples(f"{name}-{split}", rows)
    return Corpus(
        name,
        examples,
        _fields(name),
        TASKS.get(name),
        split,
        {"name_or_path": name, "split": split, "limit": wanted, "seed": seed, **chosen},
    )


def _splits(name: str) -> tuple[str, ...]:
    if name in (_FACTS, _OBJECTS):
        return (FACTS_SPLIT,)
    return (*SIZES, EXTRAPOLATION) if name in _NUMBER_CORPORA else tuple(SIZES)


def _fields(name: str) -> frozenset[Field]:
    if name in _NUMBER_CORPORA:
        return _NUMBERS
    if name == _FACTS:
        return frozenset({Field.TEXT, Field.ANSWER, Field.GROUP, Field.ENTITY, Field.WORDINGS})
    if name == "grammar-licensing":
        return _PARADIGMS
    if name == "grammar-fragments":
        return _PAIRED | {Field.GROUP, Field.STEPS}
    if name == _OBJECTS:
        return _JUDGED | {Field.ENTITY, Field.GROUP}
    if name == "grammar-chains":
        about = {Field.ANSWER, Field.CANDIDATES, Field.GROUP, Field.ITEM, Field.STEPS}
        return frozenset({Field.TEXT, *about})
    if (task := TASKS.get(name)) is not None:
        return _PAIRED if task.pair else _JUDGED
    others = {
        "grammar": _ANNOTATED,
        "grammar-order": _GROUPED,
        "grammar-sentences": _SENTENCES,
    }
    return others.get(name, _CONTRASTED)


def _switches(name: str, given: dict[str, object]) -> dict[str, bool]:
    known = SWITCHES[name]
    chosen = dict(known)
    for switch, value in given.items():
        if switch not in known:
            raise UnknownNameError(f"switch of {name}", switch, known)
        if not isinstance(value, bool):
            raise ParameterError(switch, name, "be true or false", value)
        chosen[switch] = value
    return chosen


def _examples(prefix: str, rows: list[_Row]) -> list[Example]:
    return [
        Example(f"{prefix}-{i}", text, text_b, label, annotations)
        for i, (text, text_b, label, annotations) in enumerate(rows)
    ]


def _distinct(stream: Iterator[list[Callable[[], _Row]]], n: int, split: str | None) -> list[_Row]:
    """The first `n` new rows of the split; each turn of the stream gives one row of every kind."""
    rows: list[_Row] = []
    seen: set[tuple[str, str | None]] = set()
    for makers in stream:
        for make in makers:
            if len(rows) == n:
                return rows
            rows.append(_new(make, seen, split))
    return rows


def _new(make: Callable[[], _Row], seen: set[tuple[str, str | None]], split: str | None) -> _Row:
    for _ in range(_STALE):
        row = make()
        key = row[:2]
        if key in seen or row[0] == row[1]:
            continue
        if split is None or all(split_of(text) == split for text in key if text is not None):
            seen.add(key)
            return row
    raise ParameterError("size", "the grammar", "be within what it can say", len(seen) + 1)


def _sentence_rows(seed: int) -> Iterator[list[Callable[[], _Row]]]:
    drawn = draw_sentences(seed)

    def make() -> _Row:
        text, annotations = annotate(next(drawn))
        return text, None, None, annotations

    while True:
        yield [make]


def _paraphrase_rows(seed: int, *, hard: bool) -> Iterator[list[Callable[[], _Row]]]:
    draw = ParaphraseDraw(random.Random(seed))
    draw.hard = hard

    def make(label: int) -> _Row:
        pair = draw.pair(label)
        return pair.first, pair.second, pair.label, {"kind": pair.kind}

    while True:
        yield [lambda: make(0), lambda: make(1)]


def _entailment_rows(seed: int, **heuristics: bool) -> Iterator[list[Callable[[], _Row]]]:
    draw = EntailmentDraw(random.Random(seed))

    def maker(heuristic: str, label: int) -> Callable[[], _Row]:
        def make() -> _Row:
            drawn = draw.inference(heuristic, label, misled=heuristics[heuristic])
            about: dict[str, object] = {"heuristic": heuristic, "case": drawn.case}
            return drawn.premise, drawn.hypothesis, drawn.label, about

        return make

    makers = [maker(h, label) for h in HEURISTICS for label in (ENTAILED, 1 - ENTAILED)]
    while True:
        yield makers


def _contrast_maker(draw: Callable[[T], MinimalPair], kind: T) -> Callable[[], _Row]:
    def make() -> _Row:
        good, annotations = draw(kind).annotated()
        return good, None, None, annotations

    return make


def _agreement_rows(seed: int) -> Iterator[list[Callable[[], _Row]]]:
    draw = MinimalPairDraw(random.Random(seed))
    counts = range(MAX_ATTRACTORS + 1)
    while True:
        yield [_contrast_maker(draw.agreement, count) for count in counts]


def _reflexive_rows(seed: int) -> Iterator[list[Callable[[], _Row]]]:
    draw = MinimalPairDraw(random.Random(seed))
    while True:
        yield [_contrast_maker(draw.reflexives, kind) for kind in REFLEXIVE_KINDS]


def _npi_rows(seed: int) -> Iterator[list[Callable[[], _Row]]]:
    draw = MinimalPairDraw(random.Random(seed))
    while True:
        yield [_contrast_maker(draw.npi, kind) for kind in NPI_KINDS]


def _order_rows(seed: int) -> Iterator[list[Callable[[], _Row]]]:
    draw = OrderDraw(random.Random(seed))

    def make(construction: str) -> _Row:
        text, annotations = annotate(draw.ordered(construction))
        return text, None, None, annotations | {"group": construction}

    while True:
        yield [partial(make, construction) for construction in ORDERS]


def _sentence_task_rows(seed: int) -> Iterator[list[Callable[[], _Row]]]:
    draw = TaskDraw(random.Random(seed))

    def make(kind: str) -> _Row:
        text, annotations = draw.labelled(kind)
        return text, None, None, annotations

    while True:
        yield [partial(make, kind) for kind in TASK_KINDS]


def _fragment_rows(seed: int) -> Iterator[list[Callable[[], _Row]]]:
    draw = FragmentDraw(random.Random(seed))

    def make(fragment: str, label: int) -> _Row:
        drawn = draw.pair(fragment, label)
        about: dict[str, object] = {"group": fragment, "steps": drawn.steps}
        return drawn.premise, drawn.hypothesis, drawn.label, about

    while True:
        yield [partial(make, fragment, label) for fragment in FRAGMENTS for label in range(3)]


def _number_rows(name: str, split: str, seed: int) -> Iterator[_Row]:
    draw = NumberDraw(random.Random(seed), split, split_of)
    kind = name.rpartition("-")[2]
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


def _acceptability_rows(seed: int) -> Iterator[list[Callable[[], _Row]]]:
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

    def make(kind: str, pair: Callable[[], MinimalPair], label: int) -> _Row:
        while True:
            good, bad = pair().texts()
            # Both in one split, so that no other corpus of minimal pairs shows the bad one before.
            if split_of(good) == split_of(bad):
                return good if label else bad, None, label, {"kind": kind}

    while True:
        yield [partial(make, *one, label) for one in kinds for label in (0, 1)]


_ROWS: dict[str, Callable[..., Iterator[list[Callable[[], _Row]]]]] = {
    "grammar": _sentence_rows,
    "grammar-paraphrase": _paraphrase_rows,
    "grammar-entailment": _entailment_rows,
    "grammar-acceptability": _acceptability_rows,
    "grammar-agreement": _agreement_rows,
    "grammar-reflexives": _reflexive_rows,
    "grammar-npi": _npi_rows,
    "grammar-order": _order_rows,
    "grammar-sentences": _sentence_task_rows,
    "grammar-fragments": _fragment_rows,
}
