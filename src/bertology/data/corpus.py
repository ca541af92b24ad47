"""A corpus: examples that declare which annotations they carry."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from hashlib import sha256
from typing import Any, overload

from bertology.errors import CapabilityError, DataError, ParameterError, UnknownNameError


class Field(StrEnum):
    """What an example may carry. Positions are indices of words, from 0."""

    TEXT = "text"
    TEXT_B = "text_b"  # the second sentence of a pair
    LABEL = "label"  # int (class), float (regression)
    WORDS = "words"
    LEMMAS = "lemmas"
    POS = "pos"  # universal part-of-speech tags
    HEADS = "heads"  # index of each word's syntactic head; -1 for the root
    RELATIONS = "relations"  # dependency label of each word to its head
    CONSTITUENTS = "constituents"  # phrases: [first word, last + 1] or [first, last + 1, label]
    CHUNKS = "chunks"  # phrases without phrases inside: [first word, last + 1, label]
    ENTITIES = "entities"  # what is named or mentioned: [first word, last + 1, type]
    ARGUMENTS = "arguments"  # of predicates: [predicate, its end, argument, its end, role]
    PROTO_ROLES = "proto_roles"  # the same with {property: true or false} in place of the role
    ENTITY_RELATIONS = "entity_relations"  # [one, its end, other, its end, relation]
    SENSES = "senses"  # of words: [first word, last + 1, lemma, sense]; the lemma as in "bank.n"
    TARGETS = "targets"  # the words asked about: [first, last + 1] in each text, counted in it
    RATIONALES = "rationales"  # what people gave as the label's reason: [first word, last + 1]
    SUBJECT = "subject"  # position of the main subject's head word, or None
    OBJECT = "object"
    VERB = "verb"
    ROLES = "roles"  # {role: (first word, last word + 1)}
    FRAME = "frame"
    PREDICATE = "predicate"  # positions of the words that evoke the frame
    COREFERENCE = "coreference"  # clusters of mentions (first, last + 1); one may be alone in its
    SENTENCES = "sentences"  # the first word of each sentence, where a text has several
    LINKS = "links"  # your own pairs of words: [source, target] or [source, target, name]
    NEGATION = "negation"  # positions of negation words
    TENSE = "tense"
    NUMBER = "number"  # of the main subject: "singular" or "plural"
    SENTENCE_LABELS = "sentence_labels"  # of the whole text: {task: label}
    CONTRAST = "contrast"  # the unacceptable member of a minimal pair (TEXT is the good one)
    CANDIDATES = "candidates"  # the answers to choose from, the right ones among them
    TAGS = "tags"  # one label per word
    OFFSETS = "offsets"  # characters of each word in TEXT: (first, last + 1)
    GROUP = "group"  # the phenomenon, heuristic, relation … that the example stands for
    SUBCASE = "subcase"  # which kind of example within its group
    ANSWER = "answer"  # the accepted answers: what fills [MASK], or answers a question
    ENTITY = "entity"  # the name that a fact is about
    WORDINGS = "wordings"  # templates of a fact: [X] is its entity, [Y] its answer
    ITEM = "item"  # examples with the same value are versions of one item
    CONDITION = "condition"  # which version of its item the example is
    STEPS = "steps"  # how many inferences lead to the label or the answer
    PARAPHRASE = "paraphrase"  # TEXT in other words
    LANGUAGE = "language"  # the language of the text, by its code: de, fr
    LANGUAGE_B = "language_b"  # of the second text of a pair
    ALIGNMENT = "alignment"  # of a pair's words: [word, word of the other, "sure" or "possible"]


@dataclass(frozen=True, slots=True)
class Example:
    """One item. Everything beyond text and label lives in `annotations`, keyed by Field value."""

    id: str
    text: str
    text_b: str | None = None
    label: int | float | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict)

    @property
    def texts(self) -> tuple[str, ...]:
        """The one text, or both of a pair."""
        return (self.text,) if self.text_b is None else (self.text, self.text_b)

    @property
    def given(self) -> str | tuple[str, str]:
        """What the tokenizer is given: a text, or a pair of texts."""
        return self.text if self.text_b is None else (self.text, self.text_b)

    def get(self, name: str) -> Any:
        """The value of a field; a DataError names the example when it is not there."""
        if name in ("text", "text_b", "label", "id"):
            value = getattr(self, name)
        else:
            value = self.annotations.get(name)
            if name in self.annotations:
                return value
        if value is None:
            raise DataError(f"Example {self.id!r} has no field {name!r}.")
        return value


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be predicted: the labels' meaning and how a prediction is scored."""

    name: str
    kind: str  # "classification" | "regression" | "tagging" | "multiple-choice"
    labels: tuple[str, ...] = ()  # class names in the order of their ids; empty for regression
    metrics: tuple[str, ...] = ("accuracy",)  # names from bertology.metrics, the main one first
    pair: bool = False
    # Whether the labels' order has a meaning; false where it is only that of the alphabet. Not a
    # part of a corpus's fingerprint: it changes no number.
    ordered: bool = field(default=True, repr=False, compare=False)

    def renamed(self, names: Mapping[str, str]) -> Task:
        """The same task with other names for some of its labels."""
        for label in names:
            if label not in self.labels:
                raise UnknownNameError(f"label of {self.name}", label, self.labels)
        labels = tuple(names.get(label, label) for label in self.labels)
        if len(set(labels)) < len(labels):
            raise ParameterError("labels", self.name, "give each label another name", dict(names))
        return replace(self, labels=labels)


@dataclass(frozen=True)
class Corpus(Sequence[Example]):
    """Examples, the fields that all of them have, and the task, if there is one."""

    name: str
    examples: Sequence[Example]
    fields: frozenset[Field]
    task: Task | None = None
    split: str | None = None
    origin: Mapping[str, Any] = field(default_factory=dict)
    """How to load this corpus again in another process: the keyword arguments of `load_corpus`.

    Without a `name_or_path` it cannot be loaded again; a `root` alone says where such data lie.
    """
    drawn_from: int | None = None
    """How many examples there were, where these were drawn from them at random; else None."""

    def __post_init__(self) -> None:
        if not self.examples:
            raise DataError(f"Corpus {self.name!r} has no examples.")

    @classmethod
    def of_texts(cls, texts: Iterable[str | tuple[str, str]], *, name: str = "texts") -> Corpus:
        """A corpus of your own texts, or pairs of texts, without labels."""
        examples = []
        for i, given in enumerate([texts] if isinstance(texts, str) else texts):
            pair = isinstance(given, tuple | list) and len(given) == 2
            parts = tuple(given) if pair else (given,)
            if not all(isinstance(part, str) and part.strip() for part in parts):
                must = "hold texts, or pairs of texts, that are not empty"
                raise ParameterError("texts", "Corpus.of_texts", must, given)
            examples.append(Example(str(i), *parts))
        pairs = {e.text_b is not None for e in examples}
        if len(pairs) > 1:
            raise DataError("Single texts and pairs of texts cannot share a corpus.")
        fields = {Field.TEXT, Field.TEXT_B} if True in pairs else {Field.TEXT}
        return cls(name, examples, frozenset(fields))

    def __len__(self) -> int:
        return len(self.examples)

    def __repr__(self) -> str:
        return f"Corpus({self.name!r}, {len(self)} examples with {', '.join(sorted(self.fields))})"

    @overload
    def __getitem__(self, index: int) -> Example: ...
    @overload
    def __getitem__(self, index: slice) -> Corpus: ...
    def __getitem__(self, index: int | slice) -> Example | Corpus:
        if isinstance(index, slice):
            return replace(self, examples=self.examples[index], origin={}, drawn_from=None)
        return self.examples[index]

    def __iter__(self) -> Iterator[Example]:
        return iter(self.examples)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the contents of the corpus, independent of its path."""
        digest = sha256(f"{self.name}\n{sorted(self.fields)}\n{self.task}\n".encode())
        for e in self.examples:
            row = [e.id, e.text, e.text_b, e.label, dict(e.annotations)]
            digest.update(json.dumps(row, sort_keys=True, default=str).encode())
        return digest.hexdigest()[:16]

    @property
    def texts(self) -> list[str | tuple[str, str]]:
        """What the tokenizer is given: a text, or a pair of texts, per example."""
        return [e.given for e in self.examples]

    @property
    def labels(self) -> list[int | float]:
        self.require(Field.LABEL)
        return [e.get("label") for e in self.examples]

    def require(self, *fields: Field) -> None:
        """Raise an error, before any work, if a field is missing."""
        missing = [f for f in fields if f not in self.fields]
        if missing:
            have = ", ".join(sorted(self.fields)) or "none"
            raise CapabilityError(
                f"Corpus {self.name!r} lacks {', '.join(missing)}.", hint=f"It has: {have}."
            )

    def relabelled(self, names: Mapping[str, str]) -> Corpus:
        """The same examples with other names for the labels, such as those a model has."""
        if self.task is None or not self.task.labels:
            raise CapabilityError(f"Corpus {self.name!r} has no classes to give other names to.")
        origin = {**self.origin, "labels": dict(names)} if self.origin else {}
        return replace(self, task=self.task.renamed(names), origin=origin)

    def take(self, n: int | None, *, seed: int = 0) -> Corpus:
        """`n` examples drawn at random without replacement, in their original order.

        The same `seed` draws the same examples. All of them if there are no more than `n`. Of a
        corpus in several languages `n` of each are drawn: the same items, where they have some.
        """
        if n is None or n >= len(self):
            return self
        if n < 1:
            raise DataError(f"Cannot take {n} examples; ask for at least 1.")
        chosen = sorted(self._drawn(n, random.Random(seed)))
        if len(chosen) == len(self):
            return self
        # A limit already in the origin means another draw (or, for the grammar, another corpus).
        whole = bool(self.origin) and self.origin.get("limit") is None
        origin = {**self.origin, "limit": n, "seed": seed} if whole else {}
        return replace(
            self,
            examples=[self.examples[i] for i in chosen],
            origin=origin,
            drawn_from=self.drawn_from or len(self),
        )

    def _drawn(self, n: int, source: random.Random) -> list[int]:
        if Field.LANGUAGE not in self.fields:
            return source.sample(range(len(self)), n)
        if Field.ITEM in self.fields:
            spoken: dict[str, list[str]] = {}
            for e in self:
                spoken.setdefault(e.get(Field.ITEM), []).append(e.get(Field.LANGUAGE))
            items = list(spoken)
            order = source.sample(items, min(n, len(items)))
            rest = [item for item in items if item not in set(order)]
            # Where items are not in all languages, more are drawn until each language has enough.
            counts, kept = Counter[str](), set[str]()
            for item in [*order, *source.sample(rest, len(rest))]:
                if any(counts[code] < n for code in spoken[item]):
                    kept.add(item)
                    counts.update(spoken[item])
            return [i for i, e in enumerate(self) if e.get(Field.ITEM) in kept]
        of: dict[str, list[int]] = {}
        for i, e in enumerate(self):
            of.setdefault(e.get(Field.LANGUAGE), []).append(i)
        return [i for places in of.values() for i in source.sample(places, min(n, len(places)))]


# When two texts read the same: whatever their case, spaces and punctuation.

_WORD = re.compile(r"\w+")


def text_key(text: str) -> str:
    """The words in lower case; the text itself where it has none."""
    return " ".join(_WORD.findall(text.casefold())) or text


def example_key(example: Example) -> str:
    """Of the text, or of both texts."""
    return "\n".join(text_key(text) for text in example.texts)
