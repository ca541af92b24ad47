"""Questions to a masked language model, and the masked texts that they need.

A question is a text with a blank, written `{mask}`, `[MASK]` or as the tokenizer's own mask token.
Each way to score a candidate is a set of masked texts, each read at some masked places:

- `left-to-right`: as many masks as the candidate has pieces, filled from the left, each piece read
  where it and those after it are masked;
- `joint`: all of its pieces masked at once and read from this one text;
- `single`: the same, and candidates of several pieces are refused;
- `sentence`: every token of the whole sentence with the candidate in place, masked in turn with the
  later pieces of its word: its pseudo-log-likelihood.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from bertology.errors import DataError, ModelError
from bertology.model.encoder import Encoder
from bertology.model.masked_lm.masking import Sequences, tokenize, word_ends

BLANK = "{mask}"
METHODS = ("left-to-right", "joint", "single", "sentence")


@lru_cache
def _blanks(mask: str) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, dict.fromkeys((BLANK, "[MASK]", mask)))))


def blanks_in(text: str, mask: str) -> int:
    """How many blanks a text has."""
    return len(_blanks(mask).findall(text))


@dataclass(frozen=True)
class Question:
    """A text with a blank, and what is to be said of it.

    With `candidates` each of them is scored. Without any, the whole vocabulary is asked: the best
    words, and the ranks of `answers`, which are words of one piece or ids of pieces. `subject` is
    what a prior puts something else in place of. A text with several blanks must say which of
    them is asked, from 0; the others stay masked.
    """

    text: str
    candidates: tuple[str, ...] = ()
    answers: tuple[str | int, ...] = ()
    subject: str | None = None
    blank: int | None = None

    def parts(self, mask: str) -> tuple[str, str]:
        """What stands before the blank and after it; other blanks as the tokenizer's mask."""
        pieces = _blanks(mask).split(self.text)
        if len(pieces) == 1:
            raise DataError(
                f"There is no blank in {self.text!r}.", hint=f"Write {BLANK} or {mask} for it."
            )
        if self.blank is None and len(pieces) > 2:
            raise DataError(
                f"{self.text!r} has {len(pieces) - 1} blanks; candidates and answers are for one.",
                hint=f"Write {BLANK} once in a text.",
            )
        at = self.blank or 0
        if not 0 <= at < len(pieces) - 1:
            raise DataError(f"{self.text!r} has no blank {at}; blanks are counted from 0.")
        return mask.join(pieces[: at + 1]), mask.join(pieces[at + 1 :])

    def about(self, other: str, mask: str) -> Question:
        """The same question about something else: what the template alone makes likely."""
        if not self.subject:
            raise DataError(
                f"{self.text!r} has no subject, so there is no prior of its template.",
                hint="Say what the text is about (column 'subject' of a file of clozes).",
            )
        left, right = self.parts(mask)
        name = re.compile(rf"(?<!\w){re.escape(self.subject)}(?!\w)")
        if not name.search(left) and not name.search(right):
            raise DataError(
                f"The subject {self.subject!r} is not in {self.text!r}, so that nothing can stand "
                "in its place."
            )
        left, right = (name.sub(lambda _: other, side) for side in (left, right))
        text = f"{left}{BLANK}{right}"
        return replace(self, text=text, blank=blanks_in(left, mask), subject=None)


def check_blanks(questions: Sequence[Question], mask: str) -> None:
    """Refuse texts without a blank or with too many, and empty candidates."""
    for question in questions:
        question.parts(mask)
        if any(not word.strip() for word in question.candidates):
            raise DataError(f"A candidate for {question.text!r} is empty.")


@dataclass(frozen=True)
class Masked:
    """A text with its masks in place."""

    ids: tuple[int, ...]
    types: tuple[int, ...] | None = None  # segment ids, where the model takes them


@dataclass(frozen=True)
class Asked:
    """One candidate or one open blank: which pieces are read where, their sum being the score."""

    question: int
    reads: tuple[tuple[Masked, int, int], ...]  # masked text, place, piece; -1: the open blank
    pieces: tuple[int, ...] = ()  # of the candidate


def asked_of(encoder: Encoder, questions: Sequence[Question], method: str) -> Iterator[Asked]:
    """What the questions need, in their order and that of their candidates."""
    mask = encoder.tokenizer.mask_token
    texts, spans = [], []
    for question in questions:
        left, right = question.parts(mask)
        for word in question.candidates or (mask,):
            text = left + word.strip() + right
            texts.append(text)
            spans.append((len(left), len(left) + len(word.strip())))
    rows = tokenize(encoder, texts)
    ends = _ends(encoder, rows) if method == "sentence" else None
    at = 0
    for number, question in enumerate(questions):
        if not question.candidates:
            yield Asked(number, (_open(encoder, rows, at, question),))
            at += 1
            continue
        for _ in question.candidates:
            places = _pieces(encoder, rows, at, spans[at], texts[at])
            if method == "single" and len(places) > 1:
                start, end = spans[at]
                raise DataError(
                    f"The candidate {texts[at][start:end]!r} has {len(places)} pieces in the "
                    f"vocabulary of {encoder.name!r}.",
                    hint="Use another method than 'single', or leave it out.",
                )
            pieces = tuple(rows.ids[at][p] for p in places)
            found = _reads(encoder, rows, at, places, method, None if ends is None else ends[at])
            yield Asked(number, found, pieces)
            at += 1


def _open(
    encoder: Encoder, rows: Sequences, at: int, question: Question
) -> tuple[Masked, int, int]:
    mask = encoder.tokenizer.mask_token_id
    masks = [p for p, token in enumerate(rows.ids[at]) if token == mask]
    return _masked(rows, at, (), mask), masks[question.blank or 0], -1


def _masked(rows: Sequences, at: int, places: Sequence[int], mask: int) -> Masked:
    ids = list(rows.ids[at])
    for place in places:
        ids[place] = mask
    return Masked(tuple(ids), None if rows.types is None else tuple(rows.types[at]))


def _reads(
    encoder: Encoder,
    rows: Sequences,
    at: int,
    places: list[int],
    method: str,
    ends: list[int] | None,
) -> tuple[tuple[Masked, int, int], ...]:
    mask, ids = encoder.tokenizer.mask_token_id, rows.ids[at]
    if method == "left-to-right":
        return tuple((_masked(rows, at, places[n:], mask), p, ids[p]) for n, p in enumerate(places))
    if ends is not None:
        whole = [p for p in range(len(ids)) if not rows.special[at][p] and ids[p] != mask]
        return tuple((_masked(rows, at, range(p, ends[p] + 1), mask), p, ids[p]) for p in whole)
    one = _masked(rows, at, places, mask)
    return tuple((one, p, ids[p]) for p in places)


def _ends(encoder: Encoder, rows: Sequences) -> list[list[int]]:
    """For each token the last piece of its word, counted in its own text."""
    flat, found, start = word_ends(encoder, rows), [], 0
    for ids in rows.ids:
        found.append((flat[start : start + len(ids)] - start).tolist())
        start += len(ids)
    return found


def _pieces(
    encoder: Encoder, rows: Sequences, text: int, span: tuple[int, int], filled: str
) -> list[int]:
    """Where the pieces of a candidate lie in the text that has it in place."""
    if rows.encodings is None:
        raise ModelError(
            f"The tokenizer of {encoder.name!r} does not say where its pieces come from.",
            hint="Candidates need a fast tokenizer (tokenizer.json).",
        )
    start, end = span
    found = [
        p
        for p, (first, last) in enumerate(rows.encodings[text].offsets)
        if not rows.special[text][p] and max(first, start) < min(last, end)
    ]
    unknown = encoder.tokenizer.unk_token_id
    if not found or any(rows.ids[text][p] == unknown for p in found):
        raise DataError(
            f"The candidate {filled[start:end]!r} is not in the vocabulary of {encoder.name!r}.",
            hint="Leave it out: its log-probability would be that of any unknown word.",
        )
    return found
