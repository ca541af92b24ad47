"""Token classes: which pieces of an example are nouns, subjects, negations, [SEP] and so on.

Linguistic classes come from the words' annotation (gold, or a tagger's). Negation is the paper's
list of 17 words, found in the text itself, so that it does not depend on who split the words.
Classes overlap where language does (a subject may be a noun); [CLS], [SEP], punctuation and words
do not.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bertology.data.corpus import Example, Field
from bertology.data.words.alignment import Encoding
from bertology.data.words.piece_words import PieceWords
from bertology.errors import DataError

BY_CORPUS = "the corpus"  # who annotated, where it was no tagger
Mask = NDArray[np.bool_]


class TokenClass(StrEnum):
    """What a token may be. OTHER is what is in none of the others."""

    NOUN = "noun"
    VERB = "verb"
    PRONOUN = "pronoun"
    SUBJECT = "subject"
    OBJECT = "object"
    NEGATION = "negation"
    CLS = "cls"
    SEP = "sep"
    PUNCTUATION = "punctuation"
    OTHER = "other"

    @property
    def plural(self) -> str:
        """As in a sentence: `nouns`, `[SEP]`, `other tokens`."""
        if self in (TokenClass.CLS, TokenClass.SEP):
            return f"[{self.upper()}]"
        if self is TokenClass.OTHER:
            return "other tokens"
        return str(self) if self is TokenClass.PUNCTUATION else f"{self}s"


LINGUISTIC = tuple(TokenClass)[:6]
SPECIAL = (TokenClass.CLS, TokenClass.SEP)

SUBJECT, OBJECT = "subject", "object"
"""The labels that taggers put into TAGS, where there is no tree with RELATIONS."""

NEGATIONS = (
    "neither", "nor", "not", "never", "none", "don't", "won't", "didn't", "hadn't", "haven't",
    "can't", "isn't", "wasn't", "shouldn't", "couldn't", "nothing", "nowhere",
)  # fmt: skip
"""Kovaleva et al. (2019), footnote 6."""

_BY_POS = {
    TokenClass.NOUN: frozenset({"NOUN", "PROPN"}),
    # A copula is a verb to everybody but the universal tag set.
    TokenClass.VERB: frozenset({"VERB", "AUX"}),
    TokenClass.PRONOUN: frozenset({"PRON"}),
    TokenClass.PUNCTUATION: frozenset({"PUNCT"}),
}


def _pattern(word: str) -> str:
    """The word with either apostrophe, also as treebanks and GLUE split it: do n't, don 't."""
    if not word.endswith("n't"):
        return word
    return rf"{word[:-3]}\s?n\s?['’]\s?t"


_NEGATED = re.compile(rf"(?<!\w)(?:{'|'.join(map(_pattern, NEGATIONS))})(?!\w)", re.IGNORECASE)


class SpecialTokens(Protocol):
    """What is used of a tokenizer; None where it has no such token."""

    @property
    def cls_token_id(self) -> int | None: ...
    @property
    def bos_token_id(self) -> int | None: ...
    @property
    def sep_token_id(self) -> int | None: ...
    @property
    def eos_token_id(self) -> int | None: ...


@dataclass(frozen=True)
class Specials:
    """The ids of the tokens that open a text and that end it: [CLS] and [SEP] in BERT."""

    first: frozenset[int]
    separators: frozenset[int]

    @classmethod
    def of(cls, tokenizer: SpecialTokens) -> Specials:
        """Whatever the family calls them: <s> and </s> in RoBERTa, only </s> in T5."""
        last = (tokenizer.sep_token_id, tokenizer.eos_token_id)
        first = (tokenizer.cls_token_id, tokenizer.bos_token_id)
        ends = frozenset(token for token in last if token is not None)
        return cls(frozenset(token for token in first if token is not None) - ends, ends)


def has_classes(fields: Iterable[Field]) -> bool:
    """Whether a corpus with these fields can be classified as it is, without a tagger."""
    have = set(fields)
    roles = {Field.RELATIONS, Field.TAGS, Field.SUBJECT} & have
    return Field.POS in have and bool(roles) and bool({Field.OFFSETS, Field.WORDS} & have)


def classify(example: Example) -> Mapping[TokenClass, frozenset[int]]:
    """The words of each class that the annotation decides; words of a pair are numbered through."""
    tags = example.annotations.get(Field.POS)
    if tags is None:
        raise DataError(
            f"Example {example.id!r} has no part-of-speech tags.",
            hint="Annotate its corpus with bertology.annotated.tagger.annotate.",
        )
    found = {
        kind: frozenset(i for i, tag in enumerate(tags) if tag in wanted)
        for kind, wanted in _BY_POS.items()
    }
    return found | {
        TokenClass.SUBJECT: _roles(example, Field.SUBJECT, "nsubj"),
        TokenClass.OBJECT: _roles(example, Field.OBJECT, "obj"),
    }


def _roles(example: Example, role: Field, relation: str) -> frozenset[int]:
    """All subjects or objects, by the tree; by a tagger's labels; or only the main clause's."""
    about = example.annotations
    if about.get(Field.RELATIONS) is not None:
        names = [str(r).partition(":")[0] for r in about[Field.RELATIONS]]
        return frozenset(i for i, name in enumerate(names) if name == relation)
    if about.get(Field.TAGS) is not None:
        return frozenset(i for i, tag in enumerate(about[Field.TAGS]) if tag == role.value)
    main = about.get(role)
    return frozenset() if main is None else frozenset({int(main)})


def class_masks(read: PieceWords, specials: Specials) -> Mask:
    """(classes, pieces) in the order of TokenClass, over an encoding without padding.

    A word's class is that of all its pieces; a word that shares its only piece with another
    (`cannot` for `can` + `not`) lends its class to that piece. Words that truncation cut off
    have no piece.
    """
    order = {kind: i for i, kind in enumerate(TokenClass)}
    ids = np.asarray(read.encoding.ids)
    masks = np.zeros((len(order), len(ids)), dtype=bool)
    for kind, words in classify(read.example).items():
        for word in words:
            masks[order[kind], list(read.alignment.spelling(word))] = True
    masks[order[TokenClass.NEGATION]] = _negated(read)
    masks[order[TokenClass.CLS]] = read.special & np.isin(ids, sorted(specials.first))
    masks[order[TokenClass.SEP]] = read.special & np.isin(ids, sorted(specials.separators))
    _settle_punctuation(masks, order, read)
    masks[order[TokenClass.OTHER]] = ~read.special & ~masks.any(axis=0)
    return masks


def position_groups(encoding: Encoding, bins: int) -> NDArray[np.int64]:
    """A number for each piece that those in the same part of the same text share; -1 for special.

    Each text is cut into `bins` stretches of as many pieces.
    """
    sequence = np.array([-1 if s is None else s for s in encoding.sequence_ids])
    groups = np.full(sequence.size, -1, dtype=np.int64)
    for text in np.unique(sequence[sequence >= 0]):
        at = np.flatnonzero(sequence == text)
        groups[at] = text * bins + np.arange(at.size) * bins // at.size
    return groups


def _negated(read: PieceWords) -> Mask:
    spans = [[m.span() for m in _NEGATED.finditer(text)] for text in read.example.texts]
    return np.array(
        [
            span is not None
            and sequence is not None
            and any(max(a, span[0]) < min(b, span[1]) for a, b in spans[sequence])
            for span, sequence in read.places
        ],
        dtype=bool,
    )


def _settle_punctuation(masks: Mask, order: Mapping[TokenClass, int], read: PieceWords) -> None:
    """A tagger may call a sign a noun, or a word a sign; what is written decides between them."""
    signs, words = order[TokenClass.PUNCTUATION], [order[kind] for kind in LINGUISTIC]
    for piece, (span, at) in enumerate(read.places):
        if span is None or at is None:
            continue
        said = masks[signs, piece] or read.alignment.word_of(piece) is None
        # The apostrophe of don't is part of a word.
        negated = masks[order[TokenClass.NEGATION], piece]
        sign = said and not negated and is_punctuation(read.example.texts[at][slice(*span)])
        masks[signs, piece] = sign
        if sign:
            masks[words, piece] = False


def is_punctuation(text: str) -> bool:
    """Whether a text has characters, and all of them are punctuation."""
    return bool(text) and all(unicodedata.category(c)[0] == "P" for c in text)
