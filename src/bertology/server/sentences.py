"""A text as the model gets it: its pieces, its words, and which are hidden; with all checks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from bertology.data.words.alignment import Alignment, Encoding, align, units
from bertology.data.words.treebank_words import treebank_words
from bertology.errors import BertologyError, CapabilityError, DataError

if TYPE_CHECKING:
    from bertology.model.batch import Batch
    from bertology.model.encoder import Encoder
    from bertology.server.shown import Shown

CHARACTERS = 4000  # both texts together
TOKENS = 256  # the maps of longer texts would be many megabytes, and too small to see


@dataclass(frozen=True)
class Sentence:
    """One text or pair. Positions count pieces, special tokens included."""

    texts: tuple[str, ...]
    originals: tuple[str, ...]
    pieces: tuple[str, ...]  # what the model saw: hidden ones are the mask
    sides: tuple[int | None, ...]  # 0 or 1: of which text; None for special tokens
    masked: tuple[int, ...]  # hidden by the user, or written as the mask token
    encoding: Encoding | None  # None where the tokenizer does not say what its pieces spell
    alignment: Alignment | None  # with the words of treebanks

    def __len__(self) -> int:
        return len(self.pieces)

    @property
    def special(self) -> tuple[bool, ...]:
        """Which pieces the tokenizer added."""
        return tuple(side is None for side in self.sides)

    @property
    def boundary(self) -> int | None:
        """The first piece of the second text."""
        return self.sides.index(1) if 1 in self.sides else None

    @cached_property
    def units(self) -> list[tuple[int, ...]]:
        """The pieces of each word; special tokens stand by themselves."""
        if self.alignment is None:
            raise CapabilityError(
                "The tokenizer of this model does not say which characters its pieces spell.",
                hint="Look at pieces instead of words.",
            )
        return units(self.alignment)

    def word_at(self, unit: tuple[int, ...]) -> str:
        """What a word is called: as it was written, or the mask where all of it is hidden."""
        return self.pieces[unit[0]] if set(unit) <= set(self.masked) else self.original_at(unit)

    def original_at(self, unit: tuple[int, ...]) -> str:
        """What a word is called whatever is hidden: as it was written."""
        first = unit[0]
        word = None if self.alignment is None else self.alignment.word_of(first)
        # Treebanks cut [MASK] at its brackets, so the word would be called MASK.
        is_written_mask = first in self.masked and self.originals[first] == self.pieces[first]
        if self.alignment is None or word is None or is_written_mask:
            return self.originals[first]
        text = self.texts[self.alignment.sequence_of(word)]
        return text[slice(*self.alignment.word_spans[word])]


def most_tokens(encoder: Encoder) -> int:
    """How long a text may be, special tokens counted."""
    return min(encoder.max_length or TOKENS, TOKENS)


def encode(encoder: Encoder, shown: Shown) -> tuple[Sentence, Batch]:
    """The text in pieces, and what to run the model on."""
    texts = (shown.text,) if shown.pair is None else (shown.text, shown.pair)
    _check_texts(texts)
    text = shown.text if shown.pair is None else (shown.text, shown.pair)
    batch = encoder.encode(text, too_long="truncate")
    size = batch.inputs["input_ids"].shape[-1]
    if batch.truncated:
        size = len(encoder.tokenizer(*texts, truncation=False, verbose=False)["input_ids"])
    limit = most_tokens(encoder)
    if size > limit:
        whose = "the explorer" if limit == TOKENS else encoder.name
        raise DataError(f"The text has {size:,} tokens; {whose} takes {limit}.", hint="Shorten it.")
    encoding = None if batch.encodings is None else batch.encodings[0]
    originals = tuple(batch.tokens[0])
    sides = _sides(encoder, batch, encoding)
    if all(side is None for side in sides):
        raise DataError("The model sees no token in this text.", hint="Write some words.")
    ids = batch.inputs["input_ids"]
    masked = shown.masked
    if masked:
        _check_masked(encoder, masked, sides)
        ids = ids.clone()
        ids[0, list(masked)] = encoder.tokenizer.mask_token_id
        batch.inputs["input_ids"] = ids
    mask = encoder.tokenizer.mask_token_id
    row: list[int] = ids[0].tolist()
    hidden = tuple(i for i, token in enumerate(row) if token == mask)
    words = [treebank_words(one) for one in texts]
    alignment = None if encoding is None else align(encoding, *texts, words=words)
    seen = tuple(batch.tokens[0])
    return Sentence(texts, originals, seen, sides, hidden, encoding, alignment), batch


def _check_texts(texts: tuple[str, ...]) -> None:
    for text, name in zip(texts, ("text", "second text"), strict=False):
        if not text.strip():
            raise DataError(f"The {name} is empty.", hint="Write some words, or leave it out.")
        # JSON may contain half of a surrogate pair, which is no character.
        if any("\ud800" <= c <= "\udfff" for c in text):
            raise DataError(f"The {name} contains half of a surrogate pair: no character.")
    long = sum(map(len, texts))
    if long > CHARACTERS:
        raise DataError(
            f"The text has {long:,} characters; at most {CHARACTERS:,} are taken.",
            hint="Shorten it.",
        )


def _sides(encoder: Encoder, batch: Batch, encoding: Encoding | None) -> tuple[int | None, ...]:
    if encoding is not None:
        return tuple(encoding.sequence_ids)
    row = batch.inputs["input_ids"][0].tolist()
    added = encoder.tokenizer.get_special_tokens_mask(row, already_has_special_tokens=True)
    return tuple(None if special else 0 for special in added)


def _check_masked(encoder: Encoder, masked: tuple[int, ...], sides: tuple[int | None, ...]) -> None:
    if encoder.tokenizer.mask_token_id is None:
        raise CapabilityError(f"{encoder.name!r} has no mask token, so no word can be hidden.")
    for position in masked:
        if position >= len(sides):
            raise BertologyError(
                f"There is no token {position}: the text has {len(sides)}, 0 to {len(sides) - 1}."
            )
        if sides[position] is None:
            raise BertologyError(f"Token {position} is a special one, which cannot be hidden.")
