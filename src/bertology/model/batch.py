"""Texts as model inputs, with what is needed to name their tokens again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.errors import DataError, ModelError, ParameterError
from bertology.model.protocols import Tokenizer
from bertology.model.transfer import sent

if TYPE_CHECKING:
    from tokenizers import Encoding

Text = str | tuple[str, str]


class WithTexts(Protocol):
    """What holds texts, such as a corpus."""

    @property
    def texts(self) -> Sequence[Text]:
        """The texts, or pairs of texts."""
        ...


Texts = Text | Sequence[Text] | WithTexts


def texts_of(given: Texts) -> list[Text]:
    """One text, one pair, some of them or a corpus: as a list."""
    if isinstance(given, str | tuple):
        return [given]
    if hasattr(given, "given"):  # one example of a corpus
        return [given.given]
    corpus: Any = given
    many: Iterable[Any] = getattr(corpus, "texts", corpus)
    return [getattr(one, "given", one) for one in many]


_BEGINNING = 10_000  # characters; only of longer texts is the end left out
_MOST_CHARACTERS = 1_000_000  # of a text for a model without a limit
_COUNTED = 1024  # texts that are tokenized together when tokens are counted


@dataclass
class Batch:
    """Some examples, padded to the longest of them."""

    inputs: dict[str, Tensor]
    indices: Sequence[int]  # positions of these examples in what was given
    tokenizer: Tokenizer | None = None
    truncated: int = 0  # how many were cut to fit the model
    # The characters of each token, without padding; only fast tokenizers know them.
    encodings: Sequence[Encoding] | None = None

    @cached_property
    def real(self) -> Tensor:
        """(B, T) True where there is a token, False where there is padding."""
        mask = self.inputs.get("attention_mask")
        if mask is None:
            ids = self.inputs["input_ids"].flatten(0, -2)
            return torch.ones(ids.shape, dtype=torch.bool, device=ids.device)
        return mask.flatten(0, -2).bool() if mask.dim() > 2 else mask.bool()

    @property
    def lengths(self) -> Tensor:
        return self.real.sum(-1)

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def tokens(self) -> list[list[str]]:
        """Wordpieces of each example, without padding."""
        ids = self.inputs["input_ids"].cpu()
        ids = ids.flatten(0, -2)  # multiple choice has a row for each choice
        convert: Callable[[list[int]], Iterable[str]] = (
            self.tokenizer.convert_ids_to_tokens if self.tokenizer else lambda i: map(str, i)
        )
        return [list(convert(row[m].tolist())) for row, m in zip(ids, self.real.cpu(), strict=True)]

    def only(self, rows: Sequence[int]) -> Batch:
        """Some of the examples, padded as before."""
        inputs = {name: tensor[list(rows)] for name, tensor in self.inputs.items()}
        known = None if self.encodings is None else [self.encodings[row] for row in rows]
        indices = [self.indices[row] for row in rows]
        return Batch(inputs, indices, self.tokenizer, encodings=known)

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on another device."""
        moved = {k: v.to(device) for k, v in self.inputs.items()}
        return replace(self, inputs=moved)


@dataclass(frozen=True)
class Tokenized:
    """Texts as token ids, cut to what the model takes, without padding."""

    rows: dict[str, list[list[int]]]  # input_ids, attention_mask, …: a list for each text
    cut: frozenset[int]  # texts that were too long
    encodings: list[Encoding] | None  # as in Batch
    tokenizer: Tokenizer

    def with_segments(self, known: int | None) -> Tokenized:
        """For a model that knows so many segments: one that knows a single one reads all in it.

        Some tokenizers number segments for models that were trained without them.
        """
        types = self.rows.get("token_type_ids")
        if known != 1 or types is None:
            return self
        return replace(self, rows={**self.rows, "token_type_ids": [[0] * len(t) for t in types]})

    @property
    def lengths(self) -> list[int]:
        return [len(ids) for ids in self.rows["input_ids"]]

    @property
    def largest(self) -> int:
        """The largest number of a piece."""
        return max((max(ids) for ids in self.rows["input_ids"] if ids), default=0)

    def batch(self, chosen: Sequence[int], device: torch.device | str) -> Batch:
        """Some of the texts, padded to the longest of them."""
        rows = {name: [values[i] for i in chosen] for name, values in self.rows.items()}
        if self.tokenizer.pad_token_id is None and len({len(ids) for ids in rows["input_ids"]}) > 1:
            raise ModelError(
                "The tokenizer has no token to pad texts of different lengths with.",
                hint="Give it one, tokenizer.pad_token = …, and save it beside the model.",
            )
        padded = self.tokenizer.pad(rows, return_tensors="pt")
        inputs = {name: sent(value, device) for name, value in padded.items()}
        known = None if self.encodings is None else [self.encodings[i] for i in chosen]
        return Batch(inputs, chosen, self.tokenizer, len(self.cut.intersection(chosen)), known)


def by_length(
    lengths: Sequence[int] | NDArray[np.int64], tokens_per_batch: int, *, equal: bool = False
) -> Iterator[list[int]]:
    """Indices in batches of similar length, each at most `tokens_per_batch` with its padding.

    With `equal`, all of a batch have one length and nothing is padded.

    Longest first: if there is too little memory, it fails at once and not at the end.
    """
    if tokens_per_batch < 1:
        raise DataError(f"A batch must hold at least one token, not {tokens_per_batch}.")
    sizes = np.asarray(lengths, np.int64)
    order = np.argsort(-sizes, kind="stable")
    ends = np.flatnonzero(np.diff(sizes[order])) + 1  # where another length begins
    start = 0
    while start < len(order):
        stop = start + max(1, tokens_per_batch // max(1, int(sizes[order[start]])))
        if equal:
            following = np.searchsorted(ends, start, side="right")
            stop = min(stop, int(ends[following])) if following < len(ends) else stop
        yield order[start:stop].tolist()
        start = stop


def tokenize(
    tokenizer: Tokenizer, texts: list[Text], *, limit: int | None, too_long: str, name: str
) -> Tokenized:
    """Cut texts into tokens; texts of more than `limit` tokens are an error or are truncated."""
    if not texts:
        raise DataError("There is no text to encode.")
    if too_long not in ("error", "truncate"):
        raise ParameterError("too_long", "encode", "be 'error' or 'truncate'", too_long)
    firsts = [t if isinstance(t, str) else t[0] for t in texts]
    seconds = [None if isinstance(t, str) else t[1] for t in texts]
    pair = seconds[0] is not None
    if any((s is not None) != pair for s in seconds):
        raise DataError("Single texts and pairs of texts cannot share a batch.")
    given = [firsts, [s for s in seconds if s is not None]] if pair else [firsts]
    whole, given = given, [shortened(tokenizer, column, limit) for column in given]
    left_out = set[int]().union(*map(_changed, whole, given))
    rows = tokenizer(*given, padding=False, truncation=False, verbose=False)
    lengths = [len(ids) for ids in rows["input_ids"]]
    long = [i for i, n in enumerate(lengths) if i in left_out or (limit and n > limit)]
    if long and too_long == "error":
        longest = max(lengths[i] for i in long)
        more = " or more" if long[0] in left_out else ""
        raise DataError(
            f"Text {long[0]} is too long: {longest} tokens{more}, and {name!r} takes {limit}.",
            hint="Shorten it, or pass too_long='truncate'.",
        )
    if long:
        rows = tokenizer(*given, padding=False, truncation="longest_first", max_length=limit)
    return Tokenized(dict(rows), frozenset(long), getattr(rows, "encodings", None), tokenizer)


def shortened(tokenizer: Tokenizer, texts: list[str], limit: int | None) -> list[str]:
    """Texts without an end that the model never sees, so that nobody waits for 10 MB of it.

    A beginning is enough if it has twice as many tokens as are read: cutting a word in two changes
    the pieces at the end only. After a million characters it is enough in any case: what spells
    fewer tokens than that is no text. Where both texts of a pair are that long, the odd token may
    go to the other one. Without a limit nothing can be left out.
    """
    if limit is None or tokenizer.truncation_side != "right":
        huge = next((text for text in texts if len(text) > _MOST_CHARACTERS), None)
        if huge is not None:
            raise DataError(
                f"A text has {len(huge):,} characters, and the model has no limit to cut it at.",
                hint=f"Divide it: at most {_MOST_CHARACTERS:,} characters.",
            )
        return texts
    kept, enough = list(texts), max(_BEGINNING, 16 * limit)
    most = max(_MOST_CHARACTERS, enough)
    long = [i for i, text in enumerate(texts) if len(text) > enough]
    while long and enough < most:
        starts = [texts[i][:enough] for i in long]
        rows = tokenizer(starts, padding=False, truncation=False, verbose=False)["input_ids"]
        done = {i: s for i, s, ids in zip(long, starts, rows, strict=True) if len(ids) > 2 * limit}
        for i, start in done.items():
            kept[i] = start
        enough = min(4 * enough, most)
        long = [i for i in long if i not in done and len(texts[i]) > enough]
    for i in long:
        kept[i] = texts[i][:most]
    return kept


def _changed(before: Sequence[str], after: Sequence[str]) -> set[int]:
    return {i for i, (a, b) in enumerate(zip(before, after, strict=True)) if len(a) != len(b)}


@dataclass
class PieceCounts:
    """What a tokenizer makes of some texts."""

    longer: int = 0  # texts, or pairs, with more tokens than the limit
    pieces: int = 0  # special tokens not counted
    unknown: int = 0  # pieces that are the unknown token
    unknown_token: str = ""  # such as [UNK]; empty where the tokenizer has none


def count_pieces(tokenizer: Tokenizer, texts: Sequence[Text], limit: int | None) -> PieceCounts:
    """Count the pieces of texts or pairs of texts, and those of more than `limit` tokens.

    Of texts that are far longer than the limit, only the beginning is counted (`shortened`).
    """
    special = set(tokenizer.all_special_ids)
    unknown = unknown_id(tokenizer)
    found = PieceCounts()
    if unknown is not None:
        found.unknown_token = tokenizer.convert_ids_to_tokens([unknown])[0]
    single = [(text,) for text in texts if isinstance(text, str)]
    pairs = [text for text in texts if not isinstance(text, str)]
    for rows in (single, pairs):
        for start in range(0, len(rows), _COUNTED):
            whole = [list(c) for c in zip(*rows[start : start + _COUNTED], strict=True)]
            columns = [shortened(tokenizer, column, limit) for column in whole]
            left_out = set[int]().union(*map(_changed, whole, columns))
            tokens = tokenizer(*columns, padding=False, truncation=False, verbose=False)
            for i, ids in enumerate(tokens["input_ids"]):
                unknowns = 0 if unknown is None else ids.count(unknown)
                found.longer += i in left_out or (limit is not None and len(ids) > limit)
                found.unknown += unknowns
                found.pieces += unknowns + sum(i not in special for i in ids)
    return found


def unknown_id(tokenizer: Tokenizer) -> int | None:
    """The token of what a tokenizer cannot spell; None where it has none of its own."""
    unknown: int | None = tokenizer.unk_token_id
    # GPT-2 has one token for the end of a text and for what is unknown.
    return None if unknown in _ends(tokenizer) else unknown


def _ends(tokenizer: Tokenizer) -> set[int | None]:
    """The special tokens that begin, separate or end texts, and padding."""
    names = ("cls", "sep", "bos", "eos", "pad")
    return {getattr(tokenizer, f"{name}_token_id", None) for name in names}
