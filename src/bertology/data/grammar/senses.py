"""Sentences with a noun of two senses, whose context says which of them is meant, and pairs.

Sentences of both senses are built alike, so only the words of the context tell the sense. The table
is our own: a small check that works everywhere, no measure of English.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import partial

from bertology.data.grammar.lexicon import read_table
from bertology.data.grammar.rows import Row, Stream
from bertology.data.words.alignment import Span
from bertology.data.words.targets import targeted_pair
from bertology.data.words.treebank_words import treebank_text

_OPENINGS = (
    "", "yesterday", "later", "at last", "once", "in the end", "that day", "last week",
    "on Monday", "this time",
)  # fmt: skip
_BETWEEN = ("and", "but", "while")


@dataclass(frozen=True)
class Sense:
    """One sense of a noun; each part of its context to learn from, and held out."""

    noun: str
    name: str
    who: tuple[tuple[str, ...], tuple[str, ...]]
    did: tuple[tuple[str, ...], tuple[str, ...]]
    clauses: tuple[tuple[str, ...], tuple[str, ...]]

    def sentence(self, rng: random.Random, *, held_out: bool) -> tuple[list[str], int]:
        """A sentence as its words, and where in it the noun is."""
        who, did, clause = (
            rng.choice(part[held_out]) for part in (self.who, self.did, self.clauses)
        )
        opening, between = rng.choice(_OPENINGS).split(), rng.choice(_BETWEEN)
        frame = rng.choice(("active", "passive", "last"))
        if frame == "active":
            told = [*opening, "the", who, did, "the", self.noun]
        elif frame == "passive":
            told = [*opening, "the", self.noun, "was", did, "by", "the", who]
        else:
            told = ["the", who, did, "the", self.noun]
        halves = [clause.split(), told] if frame == "last" else [told, clause.split()]
        words = [*halves[0], ",", between, *halves[1], "."]
        words[0] = words[0][0].upper() + words[0][1:]
        return words, words.index(self.noun)


def _halves(told: str, separator: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    learnt, held_out = (tuple(half.split(separator)) for half in told.split(" // "))
    return learnt, held_out


SENSES = tuple(
    Sense(
        noun, name, _halves(told["who"], " "), _halves(told["did"], " "), _halves(told["and"], "; ")
    )
    for noun, senses in read_table("senses").items()
    for name, told in senses.items()
)
"""Both senses of each noun, one after the other."""


def _made(sense: Sense, rng: random.Random, *, held_out: bool) -> tuple[str, list[Span], int]:
    words, place = sense.sentence(rng, held_out=held_out)
    text, spans = treebank_text(words)
    return text, spans, place


def sense_rows(seed: int, *, held_out: bool) -> Stream:
    """Sentences of every sense of every noun."""
    rng = random.Random(seed)

    def make(sense: Sense) -> Row:
        text, spans, place = _made(sense, rng, held_out=held_out)
        about: dict[str, object] = {
            "words": [text[a:b] for a, b in spans],
            "offsets": spans,
            "senses": [[place, place + 1, f"{sense.noun}.n", sense.name]],
            "group": sense.noun,
        }
        return text, None, None, about

    while True:
        yield [partial(make, sense) for sense in SENSES]


def sense_pair_rows(seed: int, *, held_out: bool) -> Stream:
    """Pairs of sentences with each noun, in the same sense (label 1) or not (label 0)."""
    rng = random.Random(seed)
    nouns = list(zip(SENSES[::2], SENSES[1::2], strict=True))

    def make(both: tuple[Sense, Sense], label: int) -> Row:
        one = rng.choice(both)
        other = one if label else both[one is both[0]]
        made = [_made(sense, rng, held_out=held_out) for sense in (one, other)]
        pair = targeted_pair(
            "",
            (made[0][0], made[1][0]),
            [spans for _, spans, _ in made],
            [(place, place + 1) for *_, place in made],
            more={"group": one.noun},
        )
        return pair.text, pair.text_b, label, dict(pair.annotations)

    while True:
        yield [partial(make, both, label) for both in nouns for label in (0, 1)]
