"""Log-probabilities at masked positions of many sequences, without computing more than is read.

Sequences are batched by length, and the projection to the vocabulary, the widest product of a
small model, is computed at the masked position only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, TypedDict

import numpy as np
import torch
from torch import Tensor

from bertology.arrays import Ints
from bertology.errors import DataError, ModelError
from bertology.model.batch import Batch, Text, by_length
from bertology.model.encoder import Encoder
from bertology.model.families import Capability
from bertology.model.masked_lm.narrow_head import run_predicting

if TYPE_CHECKING:
    from tokenizers import Encoding


OnScored = Callable[[int, int], None]  # masked sequences done, and in all


class Batching(TypedDict):
    """The options of `log_probabilities`."""

    tokens_per_batch: int
    progress: OnScored | None


@dataclass
class Sequences:
    """Tokenized texts."""

    ids: list[list[int]]
    types: list[list[int]] | None
    special: list[list[bool]]  # True for tokens that the tokenizer added
    encodings: Sequence[Encoding] | None  # of the fast tokenizer; None for a slow one


@dataclass(frozen=True)
class Copies:
    """Masked copies of texts, as arrays: a benchmark has a million of them.

    Copy c is text `text[c]` with masks from `position[c]`, where it is to be predicted, up to
    `last[c]`.
    """

    ids: Ints  # the tokens of all texts, one after the other
    types: Ints | None
    starts: Ints  # where each text begins; and the end of the last one
    text: Ints
    position: Ints
    last: Ints

    def __len__(self) -> int:
        return len(self.text)

    @property
    def lengths(self) -> Ints:
        """Of each copy, in tokens."""
        lengths: Ints = np.diff(self.starts)[self.text]
        return lengths


def flat(rows: Iterable[Iterable[int]]) -> Ints:
    """Rows of numbers, one after the other."""
    return np.fromiter(chain.from_iterable(rows), np.int64)


def beginnings(rows: Iterable[Sized]) -> Ints:
    """Where each row begins among all, and where the last one ends."""
    return np.cumsum([0, *(len(row) for row in rows)], dtype=np.int64)


def tokenize(encoder: Encoder, texts: Sequence[Text]) -> Sequences:
    """Token ids of texts, or pairs of texts; refuses what a masked language model cannot score."""
    encoder.require(Capability.MASKED_LM)
    tokenizer = encoder.tokenizer
    if tokenizer is None or tokenizer.mask_token_id is None:
        raise ModelError(
            f"{encoder.name!r} came without a {'tokenizer' if tokenizer is None else 'mask token'}"
            ", so nothing can be masked.",
            hint="Save its tokenizer beside it with tokenizer.save_pretrained(folder).",
        )
    if not texts:
        raise DataError("There is no text to score.")
    pairs = [not isinstance(t, str) for t in texts]
    if any(pairs) and not all(pairs):
        raise DataError("Single texts and pairs of texts cannot be scored together.")
    given = [list(part) for part in zip(*texts, strict=True)] if all(pairs) else [list(texts)]
    rows = tokenizer(*given, padding=False, return_special_tokens_mask=True, verbose=False)
    _check_lengths(encoder, rows["input_ids"], texts)
    return Sequences(
        rows["input_ids"],
        rows.get("token_type_ids"),
        [[bool(s) for s in row] for row in rows["special_tokens_mask"]],
        getattr(rows, "encodings", None),
    )


def _check_lengths(encoder: Encoder, rows: list[list[int]], texts: Sequence[Text]) -> None:
    limit = encoder.max_length
    for i, ids in enumerate(rows):
        if limit and len(ids) > limit:
            raise DataError(
                f"Text {i} is too long: {len(ids)} tokens, and {encoder.name!r} takes {limit}. It "
                f"begins: {texts[i]!r:.60}",
                hint="Shorten it: a sentence cannot be scored in part.",
            )


def word_ends(encoder: Encoder, rows: Sequences) -> Ints:
    """For each token, counted through all texts, the last piece of its word."""
    if rows.encodings is None:
        raise ModelError(
            f"The tokenizer of {encoder.name!r} does not say which pieces make a word.",
            hint="Use method='original', or a fast tokenizer (tokenizer.json).",
        )
    parts, words = (
        flat([-1 if n is None else n for n in getattr(e, name)] for e in rows.encodings)
        for name in ("sequence_ids", "word_ids")
    )
    begins = (parts < 0) | (words < 0)  # special tokens are words of their own
    begins[1:] |= begins[:-1] | (parts[1:] != parts[:-1]) | (words[1:] != words[:-1])
    begins[beginnings(rows.ids)[:-1]] = True
    first = np.flatnonzero(begins)
    ends: Ints = np.append(first[1:], len(begins))[np.cumsum(begins) - 1] - 1
    return ends


def log_probabilities(
    encoder: Encoder,
    copies: Copies,
    *,
    tokens_per_batch: int = 4096,
    progress: OnScored | None = None,
) -> Iterator[tuple[list[int], Tensor]]:
    """For each batch: which copies are in it, and (B, V) log-probabilities at their masks."""
    done = 0
    texts = [None if a is None else _moved(a, encoder) for a in (copies.ids, copies.types)]
    for chosen in by_length(copies.lengths, tokens_per_batch):
        inputs, positions = _padded(encoder, copies, texts, np.asarray(chosen))
        batch = Batch(inputs, chosen, encoder.tokenizer)
        _, logits = run_predicting(encoder, batch, positions[:, None])
        yield chosen, torch.log_softmax(logits[:, 0].float(), dim=-1)
        done += len(chosen)
        if progress is not None:
            progress(done, len(copies))


def _moved(array: Ints, encoder: Encoder) -> Tensor:
    return torch.from_numpy(array).to(encoder.device)


def _padded(
    encoder: Encoder, copies: Copies, texts: list[Tensor | None], chosen: Ints
) -> tuple[dict[str, Tensor], Tensor]:
    """Model inputs (B, T) and positions (B,), put together on the encoder's device."""
    text = copies.text[chosen]
    columns = np.stack(
        [copies.starts[text], copies.starts[text + 1], copies.position[chosen], copies.last[chosen]]
    )
    longest = int((columns[1] - columns[0]).max())
    begin, end, position, last = _moved(columns, encoder)[:, :, None]  # each (B, 1)
    j = torch.arange(longest, device=encoder.device)  # (T,)
    inside = begin + j < end
    where = torch.where(inside, begin + j, 0)
    ids, types = texts
    assert ids is not None
    filled = torch.where(inside, ids[where], encoder.tokenizer.pad_token_id or 0)
    hidden = (j >= position) & (j <= last)
    inputs = {
        "input_ids": torch.where(hidden, encoder.tokenizer.mask_token_id, filled),
        "attention_mask": inside.long(),
    }
    if types is not None:
        inputs["token_type_ids"] = torch.where(inside, types[where], 0)
    return inputs, position[:, 0]
