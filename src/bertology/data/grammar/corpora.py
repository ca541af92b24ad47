"""The grammar as corpora: annotated sentences, tasks with gold labels, minimal pairs, lists."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path

from bertology.data.corpus import Corpus, Example, Field, Task
from bertology.data.grammar import rows as made
from bertology.data.grammar.chains import chain_rows
from bertology.data.grammar.entailment import HEURISTICS
from bertology.data.grammar.facts import SPLIT as LISTED
from bertology.data.grammar.facts import analogy_rows, fact_rows
from bertology.data.grammar.licensing import licensing_rows
from bertology.data.grammar.numbers import EXTRAPOLATION
from bertology.data.grammar.objects import OBJECT_SENTENCES, WORD_PAIRS, object_rows, word_pair_rows
from bertology.data.grammar.reading import reading_rows
from bertology.data.grammar.rows import Row, Stream, distinct, split_of
from bertology.data.grammar.senses import sense_pair_rows, sense_rows
from bertology.data.readers import Request
from bertology.data.words.targets import TARGETED
from bertology.errors import ParameterError, UnknownNameError

# The tasks of those corpora of the grammar that have one.

TASKS = {
    "grammar-paraphrase": Task(
        "grammar-paraphrase",
        "classification",
        ("not-paraphrase", "paraphrase"),
        ("accuracy", "f1"),
        pair=True,
    ),
    "grammar-entailment": Task(
        "grammar-entailment",
        "classification",
        ("entailment", "non-entailment"),
        ("accuracy",),
        pair=True,
    ),
    "grammar-heuristics": Task(
        "grammar-heuristics",
        "classification",
        ("entailment", "non-entailment"),
        ("accuracy",),
        pair=True,
    ),
    "grammar-acceptability": Task(
        "grammar-acceptability",
        "classification",
        ("unacceptable", "acceptable"),
        ("accuracy", "matthews"),
    ),
    "grammar-licensing": Task(
        "grammar-licensing",
        "classification",
        ("unacceptable", "acceptable"),
        ("matthews", "accuracy"),
    ),
    "grammar-objects": Task("grammar-objects", "classification", ("no", "yes"), ("f1", "accuracy")),
    "grammar-fragments": Task(
        "grammar-fragments",
        "classification",
        ("entailment", "neutral", "contradiction"),
        ("accuracy",),
        pair=True,
    ),
    "grammar-sense-pairs": Task(
        "grammar-sense-pairs", "classification", ("false", "true"), ("accuracy",), pair=True
    ),
    "grammar-word-pairs": Task(
        "grammar-word-pairs", "regression", (), ("spearman", "pearson"), pair=True
    ),
    "grammar-reading": Task(
        "grammar-reading", "multiple-choice", ("A", "B", "C"), ("accuracy",), pair=True
    ),
    "grammar-number-values": Task(
        "grammar-number-values", "regression", (), ("pearson", "spearman")
    ),
    "grammar-number-lists": Task(
        "grammar-number-lists", "classification", ("first", "second", "third", "fourth", "fifth")
    ),
    "grammar-number-sums": Task("grammar-number-sums", "regression", (), ("pearson", "spearman")),
}


SIZES = {"train": 4000, "validation": 1000, "test": 1000}

_ANNOTATED = frozenset(
    {
        Field.TEXT, Field.WORDS, Field.LEMMAS, Field.POS, Field.HEADS, Field.RELATIONS,
        Field.CHUNKS, Field.SUBJECT, Field.OBJECT, Field.VERB, Field.ROLES, Field.FRAME,
        Field.COREFERENCE, Field.NEGATION, Field.TENSE, Field.NUMBER,
    }
)  # fmt: skip
_CONTRASTED = _ANNOTATED | {Field.CONTRAST}
_JUDGED = frozenset({Field.TEXT, Field.LABEL})
_PAIRED = _JUDGED | {Field.TEXT_B}
_NUMBERS = _JUDGED | {Field.WORDS, Field.OFFSETS, Field.GROUP}


@dataclass(frozen=True)
class _Asked:
    """What is wanted of a corpus."""

    split: str
    size: int
    seed: int
    stream_seed: int  # another one for each split
    switches: Mapping[str, bool]

    def has(self, text: str) -> bool:
        """Whether a text is of the split that is asked for."""
        return split_of(text) == self.split


@dataclass(frozen=True)
class _Recipe:
    """How a corpus is made, and what its examples have."""

    rows: Callable[[_Asked], Iterable[Row]]
    fields: frozenset[Field]
    splits: tuple[str, ...] = tuple(SIZES)
    switches: Mapping[str, bool] = field(default_factory=dict)
    usual: int | None = None  # how many, where that is not SIZES


def _streamed(stream: Callable[..., Stream]) -> Callable[[_Asked], Iterable[Row]]:
    """New rows of an endless stream, those of the split that is asked for."""
    return lambda a: distinct(stream(a.stream_seed, **a.switches), a.size, a.split)


def _held_out(stream: Callable[..., Stream]) -> Callable[[_Asked], Iterable[Row]]:
    """The same of a stream that has other words for what is not learnt from."""
    return lambda a: distinct(stream(a.stream_seed, held_out=a.split != "train"), a.size, a.split)


def _numbers(kind: str) -> _Recipe:
    def rows(a: _Asked) -> Iterable[Row]:
        return islice(made.number_rows(kind, a.split, a.stream_seed), a.size)

    return _Recipe(rows, _NUMBERS, (*SIZES, EXTRAPOLATION))


def _licensing(a: _Asked) -> Iterable[Row]:
    paradigms = licensing_rows(a.stream_seed, a.has)
    return ((text, None, label, about) for text, label, about in islice(paradigms, a.size))


def _chains(a: _Asked) -> Iterable[Row]:
    chains = islice(chain_rows(a.stream_seed, a.has), a.size)
    return ((text, None, None, about) for text, about in chains)


def _facts(a: _Asked) -> Iterable[Row]:
    return ((text, None, None, about) for text, about in fact_rows(a.seed, a.size))


def _objects(a: _Asked) -> Iterable[Row]:
    return ((text, None, label, about) for text, label, about in object_rows(a.seed, a.size))


_RECIPES: dict[str, _Recipe] = {
    "grammar": _Recipe(_streamed(made.sentence_rows), _ANNOTATED),
    "grammar-paraphrase": _Recipe(
        _streamed(made.paraphrase_rows), _PAIRED, switches={"hard": True}
    ),
    "grammar-entailment": _Recipe(
        _streamed(made.entailment_rows), _PAIRED, switches=dict.fromkeys(HEURISTICS, True)
    ),
    "grammar-heuristics": _Recipe(
        _streamed(made.heuristic_rows), _PAIRED | {Field.GROUP, Field.SUBCASE}
    ),
    "grammar-acceptability": _Recipe(_streamed(made.acceptability_rows), _JUDGED),
    "grammar-agreement": _Recipe(_streamed(made.agreement_rows), _CONTRASTED),
    "grammar-reflexives": _Recipe(_streamed(made.reflexive_rows), _CONTRASTED),
    "grammar-npi": _Recipe(_streamed(made.npi_rows), _CONTRASTED),
    "grammar-licensing": _Recipe(
        _licensing, _JUDGED | {Field.GROUP, Field.ITEM, Field.SENTENCE_LABELS}
    ),
    "grammar-order": _Recipe(_streamed(made.order_rows), _ANNOTATED | {Field.GROUP}),
    "grammar-sentences": _Recipe(
        _streamed(made.sentence_task_rows),
        frozenset({Field.TEXT, Field.WORDS, Field.SENTENCE_LABELS}),
    ),
    "grammar-fragments": _Recipe(
        _streamed(made.fragment_rows), _PAIRED | {Field.GROUP, Field.STEPS}
    ),
    "grammar-chains": _Recipe(
        _chains,
        frozenset(
            {Field.TEXT, Field.ANSWER, Field.CANDIDATES, Field.GROUP, Field.ITEM, Field.STEPS}
        ),
    ),
    "grammar-facts": _Recipe(
        _facts,
        frozenset({Field.TEXT, Field.ANSWER, Field.GROUP, Field.ENTITY, Field.WORDINGS}),
        (LISTED,),
    ),
    "grammar-objects": _Recipe(
        _objects, _JUDGED | {Field.ENTITY, Field.GROUP}, (LISTED,), usual=OBJECT_SENTENCES
    ),
    "grammar-senses": _Recipe(
        _held_out(sense_rows),
        frozenset({Field.TEXT, Field.WORDS, Field.OFFSETS, Field.SENSES, Field.GROUP}),
    ),
    "grammar-sense-pairs": _Recipe(
        _held_out(sense_pair_rows), TARGETED | {Field.LABEL, Field.GROUP}
    ),
    "grammar-word-pairs": _Recipe(
        lambda a: word_pair_rows(a.seed, a.size), _PAIRED, (LISTED,), usual=WORD_PAIRS
    ),
    "grammar-analogies": _Recipe(
        lambda a: analogy_rows(a.seed, a.size),
        frozenset({Field.TEXT, Field.WORDS, Field.GROUP}),
        (LISTED,),
    ),
    "grammar-reading": _Recipe(
        lambda a: islice(reading_rows(a.stream_seed, a.has), a.size),
        _PAIRED | {Field.CANDIDATES, Field.GROUP, Field.ITEM, Field.PARAPHRASE},
    ),
    "grammar-number-values": _numbers("values"),
    "grammar-number-lists": _numbers("lists"),
    "grammar-number-sums": _numbers("sums"),
}
CORPUS_NAMES = tuple(_RECIPES)
SWITCHES = {name: dict(recipe.switches) for name, recipe in _RECIPES.items()}
"""The corpora by name, and the switches each one has with their defaults."""


def sentences(n: int, seed: int = 0) -> list[Example]:
    """`n` distinct annotated sentences, from all splits; the same for the same seed."""
    return _examples("grammar", distinct(made.sentence_rows(seed), n, None))


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
        "grammar-heuristics", "grammar-acceptability", "grammar-agreement", "grammar-reflexives",
        "grammar-npi", "grammar-licensing", "grammar-order", "grammar-sentences",
        "grammar-fragments", "grammar-chains", "grammar-facts", "grammar-objects", "grammar-senses",
        "grammar-sense-pairs", "grammar-word-pairs", "grammar-analogies", "grammar-reading",
        "grammar-number-values", "grammar-number-lists" or "grammar-number-sums".
    split
        "train", "validation" or "test". No sentence is in two splits, whatever corpus or seed.
        Of the numbers, no number is; they also have "extrapolation", with larger ones. Of
        "grammar-licensing", no paradigm of eight sentences is. Of senses, the contexts of "train"
        share no word with the others. Facts, objects, pairs of words and analogies are lists,
        all of them "test".
    size
        How many examples; by default 4,000 to train and 1,000 each to validate and test, and all
        facts, objects and pairs of words.
    switches
        Of "grammar-paraphrase": `hard` (non-paraphrases mostly share all their words). Of
        "grammar-entailment": `lexical_overlap`, `subsequence`, `constituent` (whether there are
        non-entailments which that heuristic gets wrong). All are on by default.
    """
    if name not in _RECIPES:
        raise UnknownNameError("grammar corpus", name, CORPUS_NAMES)
    recipe = _RECIPES[name]
    if split not in recipe.splits:
        raise UnknownNameError("split", split, recipe.splits)
    usual = recipe.usual or SIZES.get(split, SIZES["test"])
    wanted = usual if size is None else size
    if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 1:
        raise ParameterError("size", name, "be a whole number from 1", wanted)
    chosen = _switches(name, switches)
    # Another seed per split keeps the splits from being filtered copies of one stream.
    stream_seed = seed * 3 + recipe.splits.index(split)
    rows = recipe.rows(_Asked(split, wanted, seed, stream_seed, chosen))
    return Corpus(
        name,
        _examples(f"{name}-{split}", rows),
        recipe.fields,
        TASKS.get(name),
        split,
        {"name_or_path": name, "split": split, "limit": wanted, "seed": seed, **chosen},
    )


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


def _examples(prefix: str, rows: Iterable[Row]) -> list[Example]:
    return [
        Example(f"{prefix}-{i}", text, text_b, label, annotations)
        for i, (text, text_b, label, annotations) in enumerate(rows)
    ]


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """As a reader: nothing is read, the corpus of that name is made on the spot.

    `size`, `seed` and the grammar's switches are its options.
    """
    request = Request.of(source, request)
    options = dict(request.options)
    options |= {"size": options.get("size"), "seed": options.get("seed", 0)}
    options["split"] = request.split or "validation"
    return _made(request.name, json.dumps(options, sort_keys=True, default=repr))


@lru_cache(maxsize=32)
def _made(name: str, options: str) -> Corpus:
    """A study that trains asks for the same corpus with each of its parts, a page with each study.

    All corpora of the grammar together take some 150 MB; making one takes a second.
    """
    return corpus(name, **json.loads(options))
