"""What a model answers to a text and to its broken forms, blanks and classes alike.

An `Item` is what has one right answer: a text with a blank (a cloze, or a minimal pair of which the
differing word is the blank), or a text with a label. Its `forms` are broken texts. An answer is a
distribution, over the vocabulary or over the classes; `compared` keeps a few numbers of each,
beside those of other texts of the corpus in the place of the own one.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.data.clozes import MASK
from bertology.data.corpus import Corpus, Example, Field
from bertology.data.words.classes import has_classes
from bertology.data.words.malformed import DRAWN, REMOVED, Sentence, broken, role_spans
from bertology.studies.cloze.shared.clozes import pair_blank, too_long

if TYPE_CHECKING:
    from bertology.data.words.alignment import Span
    from bertology.model.encoder import Encoder

INTACT, ANOTHER = "intact", "another text"
OTHERS = 5  # other texts that are put in the place of each
MEASURED = ("top", "right", "rank", "log_probability", "kl")

Floats = NDArray[np.float64]
Given = str | tuple[str, str]
Form = tuple[str, int]  # the kind and the number of the draw


@dataclass(frozen=True)
class Item:
    """A text whose right answer is known."""

    number: int  # of the example, among those that are looked at
    example: Example  # with its words, where they are annotated; the answer in its blank
    blank: Span | None
    answers: tuple[int, ...]  # pieces, or the class
    candidates: tuple[int, ...] | None = None
    """Pieces to choose from, the right ones among them; none where they are not single pieces."""
    forms: Mapping[Form, Given] = field(default_factory=dict)

    @property
    def intact(self) -> Given:
        """The text as it is, its blank masked."""
        text = self.example.text
        if self.blank is None:
            return self.example.given
        return f"{text[: self.blank[0]]}{MASK}{text[self.blank[1] :]}"


def items_of(encoder: Encoder, corpus: Corpus, *, first: int = 0) -> list[Item]:
    """The examples that can be asked; answers of several pieces, say, cannot."""
    from bertology.model.masked_lm.clozes import one_piece_words

    if encoder.head == "classification":
        return [Item(first + i, e, None, (int(e.label or 0),)) for i, e in enumerate(corpus)]
    filled = [_filled(e, annotated=has_classes(corpus.fields)) for e in corpus]
    words = {word for one in filled if one for side in one[2:] for word in side}
    pieces, found = one_piece_words(encoder, sorted(words)), []
    for number, one in enumerate(filled, first):
        if one is None:
            continue
        example, blank, answers, candidates = one
        right = tuple(dict.fromkeys(pieces[word] for word in answers if word in pieces))
        chosen = tuple(dict.fromkeys(pieces.get(word, -1) for word in candidates))
        if not right or (candidates and not set(right) & set(chosen)):
            continue
        # A choice between some of the candidates only would be another one.
        choice = None if not candidates else () if -1 in chosen else chosen
        found.append(Item(number, example, blank, right, choice))
    cut = too_long(encoder, [str(item.intact) for item in found])
    return [item for i, item in enumerate(found) if i not in cut]


def _filled(
    example: Example, *, annotated: bool
) -> tuple[Example, Span, tuple[str, ...], tuple[str, ...]] | None:
    """The text with its answer in place, where the blank is, answers and candidates."""
    about = example.annotations
    if about.get(Field.ANSWER) is None:
        found = pair_blank(example.text, str(about.get(Field.CONTRAST) or ""))
        if found is None:
            return None
        both = (found.good, found.bad)
        return example, (found.start, found.end), both[:1], both
    answers, choices = (_words(about.get(name)) for name in (Field.ANSWER, Field.CANDIDATES))
    at = example.text.find(MASK)
    if at < 0 or example.text.count(MASK) > 1 or not answers:
        return None
    if annotated:  # as its words are, those of a tagger would not fit
        return example, (at, at + len(MASK)), answers, choices
    text = f"{example.text[:at]}{answers[0]}{example.text[at + len(MASK) :]}"
    return Example(example.id, text), (at, at + len(answers[0])), answers, choices


def _words(given: object) -> tuple[str, ...]:
    words = (given,) if isinstance(given, str) else tuple(given or ())  # type: ignore[arg-type]
    return tuple(str(word).strip() for word in words)


@dataclass(frozen=True)
class Forms:
    """How items are broken."""

    kinds: Sequence[str]
    draws: int
    kept: int
    tagger: str
    seed: int

    def break_all(self, items: Sequence[Item], fields: frozenset[Field]) -> tuple[list[Item], str]:
        """The items with their forms, and who says what their subjects and objects are."""
        from bertology.annotated.tagged_batches import annotated

        if not items or not set(self.kinds) & set(REMOVED):
            return [replace(item, forms=self._forms(item)) for item in items], ""
        known = fields if has_classes(fields) else frozenset({Field.TEXT})
        corpus, who = annotated(Corpus("items", [i.example for i in items], known), self.tagger)
        with_words = (replace(i, example=e) for i, e in zip(items, corpus, strict=True))
        return [replace(i, forms=self._forms(i)) for i in with_words], who

    def _forms(self, item: Item) -> dict[Form, Given]:
        """Those that differ from the text; both texts of a pair are broken."""
        blanks = [item.blank, *(None for _ in item.example.texts[1:])]
        made = [
            Sentence.of(text, blank) for text, blank in zip(item.example.texts, blanks, strict=True)
        ]
        found: dict[Form, Given] = {}
        for kind in self.kinds:
            removed: list[list[Span]] = [[] for _ in made]
            if kind in REMOVED:
                removed = role_spans(item.example, REMOVED[kind], blanks)
            for draw in range(self.draws if kind in DRAWN else 1):
                rng = random.Random(f"{self.seed}-{item.number}-{kind}-{draw}")
                texts = [
                    broken(one, kind, rng, kept=self.kept, removed=gone)
                    for one, gone in zip(made, removed, strict=True)
                ]
                if any(text is not None for text in texts):
                    whole = [t or own for t, own in zip(texts, item.example.texts, strict=True)]
                    found[kind, draw] = (whole[0], whole[1]) if len(whole) > 1 else whole[0]
        return found


def compared(
    items: Sequence[Item],
    answers: Iterable[NDArray[np.float32]],
    kinds: Sequence[str],
    draws: int,
) -> dict[str, Floats]:
    """Of each item, kind (intact, broken, another text) and draw: what is said, how right it is.

    `answers` are log-probabilities of each item's intact text, then of its forms in their order.
    Arrays (N, K, D) of the likeliest answer, whether it is right, the rank of the right one and its
    log-probability, and the divergence from what is said of the intact text; NaN: no such form.
    """
    rows, said = [INTACT, *kinds, ANOTHER], iter(answers)
    found = {n: np.full((len(items), len(rows), max(draws, OTHERS)), np.nan) for n in MEASURED}
    before: deque[tuple[Floats, int]] = deque(maxlen=OTHERS)
    first: list[tuple[int, Floats]] = []  # those that have few others before them

    def keep(at: int, kind: str, draw: int, intact: Floats, other: Floats) -> None:
        for name, value in zip(MEASURED, _numbers(items[at], intact, other), strict=True):
            found[name][at, rows.index(kind), draw] = value

    for at, item in enumerate(items):
        intact = np.asarray(next(said), np.float64)
        keep(at, INTACT, 0, intact, intact)
        for kind, draw in item.forms:
            keep(at, kind, draw, intact, np.asarray(next(said), np.float64))
        for draw, (other, _) in enumerate(before):
            keep(at, ANOTHER, draw, intact, other)
        if len(before) < OTHERS:
            first.append((at, intact))
        before.append((intact, at))
    for at, intact in first:  # the last texts come before the first ones
        for draw, (other, number) in enumerate(before, at):
            if draw < OTHERS and number > at:
                keep(at, ANOTHER, draw, intact, other)
    return found


def _numbers(item: Item, intact: Floats, other: Floats) -> Iterator[float]:
    """The numbers of MEASURED, for what is said of another text than the intact one."""
    right, own = set(item.answers), other[list(item.answers)].max()
    yield int(other.argmax())
    if item.candidates == ():
        yield np.nan
    else:
        among = np.array(range(len(other)) if item.candidates is None else item.candidates)
        best = among[other[among] == other[among].max()]
        yield sum(int(one) in right for one in best) / len(best)
    yield float((other > own).sum() + ((other == own).sum() + 1) / 2)
    yield float(own)
    yield float((np.exp(intact) * (intact - other)).sum()) if other is not intact else 0.0
