"""Texts that are broken on purpose: shuffled, reversed, cut short, without subject or object.

Words are what white space separates, so that a comma goes with its word; punctuation at the very
end stays there. A blank never moves: words are shuffled around it, and it is always kept. Kinds:

    shuffled      all words in a random order
    bigrams       pairs of neighbours stay together, in a random order
    trigrams      the same with three words
    nearby        words shuffled within windows of three, so that none moves far
    reversed      the last word first
    first-half    the first half of the words only
    few-words     only the words next to the blank; without a blank the last ones
    no-subject    without the phrases of subjects
    no-object     without the phrases of direct objects

A phrase is all that hangs on its word where the tree is known; where only a tagger says which word
it is, that word with the determiners, adjectives and nouns right before it.
"""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from bertology.data.clozes import MASK
from bertology.data.corpus import Example, Field
from bertology.data.words.alignment import Span, split_words
from bertology.data.words.classes import TokenClass, classify
from bertology.data.words.piece_words import word_spans

_BLOCKS = {"shuffled": 1, "bigrams": 2, "trigrams": 3}
_WINDOW = 3
DRAWN = (*_BLOCKS, "nearby")
"""Kinds in which something is drawn, so that there may be several of a text."""
REMOVED = {"no-subject": TokenClass.SUBJECT, "no-object": TokenClass.OBJECT}
KINDS = (*DRAWN, "reversed", "first-half", "few-words", *REMOVED)

_BEFORE = {"DET", "ADJ", "NUM", "NOUN", "PROPN", "PRON", "PART"}  # the word of a phrase


@dataclass(frozen=True)
class Sentence:
    """The words of a text, one of which may have the blank, and the punctuation at its end."""

    words: tuple[str, ...]
    spans: tuple[Span, ...]  # of each word in the text
    blank: int | None
    end: str

    @classmethod
    def of(cls, text: str, blank: Span | None = None) -> Sentence:
        """`blank` are the characters for which it stands."""
        spans, at = split_words(text), None
        if blank is not None:
            inside = [i for i, (a, b) in enumerate(spans) if a < blank[1] and b > blank[0]]
            at = inside[0]
            whole = (spans[at][0], spans[inside[-1]][1])
            spans[at : inside[-1] + 1] = [whole]
        end, spaced = "", False
        if spans:
            start, stop = spans[-1]
            least = blank[1] if blank is not None and at == len(spans) - 1 else start
            cut = stop
            while cut > least and unicodedata.category(text[cut - 1])[0] == "P":
                cut -= 1
            end, spaced = text[cut:stop], cut == start
            spans[-1:] = [] if spaced else [(start, cut)]
        words = [text[a:b] for a, b in spans]
        if blank is not None and at is not None:
            words[at] = f"{text[spans[at][0] : blank[0]]}{MASK}{text[blank[1] : spans[at][1]]}"
        return cls(tuple(words), tuple(spans), at, f" {end}" if spaced else end)

    @property
    def free(self) -> list[int]:
        """The words that may move or go: all but the one with the blank."""
        return [i for i in range(len(self.words)) if i != self.blank]

    def with_words(self, words: Sequence[str]) -> str:
        """Other words in the place of its own."""
        return f"{' '.join(words)}{self.end}".strip()


def broken(
    sentence: Sentence,
    kind: str,
    rng: random.Random,
    *,
    kept: int = 3,
    removed: Collection[Span] = (),
) -> str | None:
    """The text broken in one way; None where that changes nothing or leaves nothing.

    `kept` is how many words `few-words` leaves; `removed` the characters of what `no-subject` and
    `no-object` take away.
    """
    words, free = list(sentence.words), sentence.free
    if kind in REMOVED:
        found = [_without(sentence, i, removed) for i in range(len(words))]
        left = [word for word in found if word]
    elif kind in ("first-half", "few-words"):
        wanted = {*_kept(sentence, kind, kept), sentence.blank}
        left = [word for i, word in enumerate(words) if i in wanted]
    else:
        for place, i in zip(free, _order(free, kind, rng), strict=True):
            words[place] = sentence.words[i]
        left = words
    return sentence.with_words(left) if left and tuple(left) != sentence.words else None


def _kept(sentence: Sentence, kind: str, kept: int) -> list[int]:
    free, blank = sentence.free, sentence.blank
    if kind == "first-half":
        return free[: (len(free) + 1) // 2]
    near = free[::-1] if blank is None else sorted(free, key=lambda i: (abs(i - blank), i))
    return near[:kept]


def _order(free: list[int], kind: str, rng: random.Random) -> list[int]:
    if kind == "reversed":
        return free[::-1]
    size = _BLOCKS.get(kind, _WINDOW)
    blocks = [free[at : at + size] for at in range(0, len(free), size)]
    if kind in _BLOCKS:
        rng.shuffle(blocks)
    else:
        for block in blocks:
            rng.shuffle(block)
    return [i for block in blocks for i in block]


def _without(sentence: Sentence, word: int, removed: Collection[Span]) -> str:
    """What is left of a word; nothing where only signs would be."""
    if word == sentence.blank:
        return sentence.words[word]
    start, _ = sentence.spans[word]
    left = "".join(
        character
        for at, character in enumerate(sentence.words[word], start)
        if not any(a <= at < b for a, b in removed)
    )
    touched = left != sentence.words[word]
    return "" if touched and not any(c.isalnum() for c in left) else left


def role_spans(
    example: Example, role: TokenClass, blanks: Sequence[Span | None]
) -> list[list[Span]]:
    """The characters of the words in all phrases of a role, text by text.

    Phrases that have the blank of their text stay.
    """
    spans = word_spans(example)
    places = [(text, span) for text, of_text in enumerate(spans) for span in of_text]
    found: list[list[Span]] = [[] for _ in spans]
    roles = classify(example)
    others = roles[TokenClass.SUBJECT] | roles[TokenClass.OBJECT]
    for word in sorted(roles[role]):
        phrase = [places[i] for i in _phrase(example, word, others)]
        if not any(_meets(span, blanks[text]) for text, span in phrase):
            for text, span in phrase:
                found[text].append(span)
    return found


def _meets(span: Span, blank: Span | None) -> bool:
    return blank is not None and span[0] < blank[1] and span[1] > blank[0]


def _phrase(example: Example, word: int, others: Collection[int]) -> list[int]:
    """The word with all that hangs on it, or with what seems to belong to it."""
    heads = example.annotations.get(Field.HEADS)
    if heads is not None:
        below, grown = {word}, True
        while grown:
            more = {i for i, head in enumerate(heads) if head in below} - below
            below, grown = below | more, bool(more)
        return sorted(below)
    tags, first = example.get(Field.POS), word
    while first > 0 and tags[first - 1] in _BEFORE and first - 1 not in others:
        first -= 1
    return list(range(first, word + 1))
