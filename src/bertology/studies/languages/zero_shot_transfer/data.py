"""What is learnt from and scored, by language; baselines, and what two languages share."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bertology.arrays import Bools, Floats, Ints
from bertology.data.corpus import Corpus, Example, Field
from bertology.data.languages import Language, languages, order_distance

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder

TRAIN, DEV, TEST = range(3)
LABEL, TAGS, ARCS = "label", "tags", "arcs"
TASKS: Mapping[str, tuple[str, frozenset[str], str]] = {
    LABEL: ("labels of texts", frozenset({"label"}), "texts"),
    TAGS: ("parts of speech", frozenset({"words", "pos"}), "words"),
    ARCS: ("heads of words", frozenset({"words", "heads"}), "words"),
}
"""Of each task what is told, the fields it needs, and what is counted."""
_PARTS = 10  # of ten items two are scored, and one decides about probes
_SCORED, _DECIDES = (2, 7), 4
_DECIDING = 8  # of data that only teach, one in so many


@dataclass(frozen=True)
class Taught:
    """All texts, each with its language (a place in `codes`) and its role."""

    corpus: Corpus
    codes: tuple[str, ...]
    language: Ints
    role: Ints

    def of(self, code: int, *roles: int) -> Bools:
        """The texts of a language in these roles."""
        found: Bools = (self.language == code) & np.isin(self.role, roles)
        return found

    @property
    def taught(self) -> list[int]:
        """The languages that have texts to learn from."""
        return [code for code in range(len(self.codes)) if self.of(code, TRAIN).any()]


def codes_of(corpus: Corpus) -> tuple[str, ...]:
    """The languages of a corpus, in their alphabetical order."""
    return tuple(sorted({str(one.get(Field.LANGUAGE)) for one in corpus}))


def split(corpus: Corpus, train: Corpus | None, source: str, seed: int) -> Taught:
    """Other data teach, and all of the corpus is scored; or items are dealt to the three roles.

    Versions of one item in all languages have one role: what is scored in a language is no
    translation of what taught.
    """
    codes, rng = codes_of(corpus), np.random.default_rng(seed)
    examples = list(corpus)
    spoken = [str(one.get(Field.LANGUAGE)) for one in examples]
    if train is None:
        items = _items(corpus)
        dealt = dict(zip(dict.fromkeys(items), rng.permutation(len(set(items))), strict=True))
        part = np.array([int(dealt[item]) % _PARTS for item in items])
        role = np.where(np.isin(part, _SCORED), TEST, np.where(part == _DECIDES, DEV, TRAIN))
    else:
        known = Field.LANGUAGE in train.fields
        more = [e for e in train if not known or str(e.get(Field.LANGUAGE)) in codes]
        place = rng.permutation(len(more)) % _DECIDING
        role = np.concatenate([np.full(len(examples), TEST), np.where(place == 0, DEV, TRAIN)])
        spoken += [str(e.get(Field.LANGUAGE)) if known else source for e in more]
        examples += [replace(e, id=f"train/{e.id}") for e in more]
    fields = corpus.fields if train is None else corpus.fields & (train.fields | {Field.LANGUAGE})
    language = np.array([codes.index(code) for code in spoken])
    return Taught(Corpus(corpus.name, examples, fields, corpus.task), codes, language, role)


def _items(corpus: Corpus) -> list[str]:
    """The item of each text; texts that are no versions of others are numbered by language."""
    if Field.ITEM in corpus.fields:
        return [str(one.get(Field.ITEM)) for one in corpus]
    count = Counter[str]()
    found = []
    for one in corpus:
        code = str(one.get(Field.LANGUAGE))
        found.append(str(count[code]))
        count[code] += 1
    return found


def word_answers(example: Example, task: str) -> list[str]:
    """What is to be told of each word: its part of speech, or how far on its head stands."""
    if task == TAGS:
        return [str(tag) for tag in example.get(Field.POS)]
    heads = example.get(Field.HEADS)
    return [str(0 if head < 0 else head - at) for at, head in enumerate(heads)]


@dataclass(frozen=True)
class Pieces:
    """The pieces of each word of each text; none for words that were cut off."""

    words: Sequence[Sequence[tuple[int, ...]]]

    @classmethod
    def of(cls, encoder: Encoder, corpus: Corpus) -> Pieces:
        """As the model reads the texts."""
        from bertology.annotated.words import words_of

        found = []
        for one in words_of(encoder, list(corpus)):
            pieces = (one.alignment.pieces_of(word) for word in range(len(one.alignment)))
            found.append([tuple(one.encoding.ids[at] for at in own) for own in pieces])
        return cls(found)

    def shared(self, taught: Taught) -> Floats:
        """(languages, languages): of all pieces of two languages' texts, the share of both."""
        own = [
            {piece for text in np.flatnonzero(taught.language == code).tolist()
             for word in self.words[text] for piece in word}
            for code in range(len(taught.codes))
        ]  # fmt: skip
        return np.array([[len(a & b) / max(len(a | b), 1) for b in own] for a in own])


class Frequent:
    """The most frequent answer for a word's pieces, else for its first piece, else of all."""

    def __init__(self, words: Sequence[tuple[int, ...]], answers: Sequence[str]) -> None:
        by_word, by_first = dict[tuple[int, ...], Counter[str]](), dict[int, Counter[str]]()
        for word, answer in zip(words, answers, strict=True):
            by_word.setdefault(word, Counter())[answer] += 1
            by_first.setdefault(word[0], Counter())[answer] += 1
        self._words = {word: _first(of) for word, of in by_word.items()}
        self._firsts = {piece: _first(of) for piece, of in by_first.items()}
        self.constant = _first(Counter(answers))

    def __call__(self, word: tuple[int, ...]) -> str:
        return self._words.get(word) or self._firsts.get(word[0], self.constant)


def _first(counts: Counter[str]) -> str:
    return min(counts, key=lambda answer: (-counts[answer], answer))


def distances(codes: Sequence[str]) -> dict[str, Floats]:
    """What is known of each pair (languages, languages): NaN where a language is not known."""
    known = [languages().get(code) for code in codes]

    def of(measure: Callable[[Language, Language], float]) -> Floats:
        return np.array([[measure(a, b) if a and b else np.nan for b in known] for a in known])

    return {
        "order": 1 - of(order_distance),
        "genus": of(lambda a, b: float(a.genus == b.genus)),
        "family": of(lambda a, b: float(a.family == b.family)),
        "script": of(lambda a, b: float(a.script == b.script)),
    }


def pretraining_sizes(encoder: Encoder, codes: Sequence[str]) -> Floats:
    """Sentences of each language in pre-training, as the model's own record names its files.

    NaN where this is not known; sentences, since not all languages write spaces between words.
    """
    folder = Path(str((encoder.spec or {}).get("name", "")))
    sizes = Counter[str]()
    try:
        record = json.loads((folder / "bertology.json").read_text(encoding="utf-8"))
        for source in record["text"]["sources"]:
            if code := re.match(r"([a-z]{2})[-_.]", str(source["name"])):
                sizes[code[1]] += int(source["sentences"])
    except (OSError, ValueError, KeyError, TypeError):
        return np.full(len(codes), np.nan)
    return np.array([sizes.get(code, np.nan) for code in codes], np.float64)
