"""Rows of tokens, before any of them is masked.

A `RowPlan` says for a whole pass over a shard which stretches of text make up each row; `fill`
turns some of its rows into tensors, on the device where the tokens are. `pairings` makes plans.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.arrays import Ints
from bertology.train.pretrain.shards import Shard, Shards


@dataclass(frozen=True)
class RowPlan:
    """Where the text of every row comes from; all arrays have one entry per row.

    A row is `[CLS] first [SEP]`, or `[CLS] first [SEP] second [SEP]` where `second_length` is not
    0. Whatever is left of the row's length is padding.
    """

    first: Ints  # where it begins in the shard's tokens
    first_length: Ints
    second: Ints
    second_length: Ints
    relation: Ints | None = None  # how second relates to first, as a class
    label: Ints | None = None  # of the document, for conditional MLM
    restart: bool = False  # whether positions begin anew in the second part

    def __len__(self) -> int:
        return len(self.first)

    def take(self, chosen: NDArray[np.int64] | NDArray[np.bool_]) -> RowPlan:
        """Some of the rows."""
        arrays = {
            f.name: getattr(self, f.name)[chosen]
            for f in fields(self)
            if isinstance(getattr(self, f.name), np.ndarray)
        }
        return replace(self, **arrays)


@dataclass(frozen=True)
class ShardText:
    """A shard on a device, with what is needed to make rows of it."""

    tokens: Tensor  # (N,) int32
    starts_word: Tensor  # (V,) bool: pieces that begin a word
    special: dict[str, int]
    entities: Tensor | None = None  # (N,) uint8

    @classmethod
    def of(cls, shard: Shard, shards: Shards, device: torch.device | str) -> ShardText:
        """Read the shard's tokens onto the device."""
        starts = torch.ones(shards.vocab_size, dtype=torch.bool)
        starts[list(shards.continues)] = False
        tokens = torch.from_numpy(shard.tokens.astype(np.int32)).to(device)
        marks = None
        if shard.entities is not None:
            marks = torch.from_numpy(np.array(shard.entities)).to(device)
        return cls(tokens, starts.to(device), shards.special, marks)


@dataclass(frozen=True)
class Rows:
    """A batch of text; tensors are (B, T) where nothing else is said."""

    ids: Tensor  # int64
    segments: Tensor  # int64
    fixed: Tensor  # bool: [CLS], [SEP] and padding, which are never hidden
    starts: Tensor  # bool: where a word, or what a cut left of it, begins; and all that is fixed
    index: Tensor  # (B,) int64: which row of the pass this is, wherever it stands in a batch
    real: Tensor | None = None  # bool: what is not padding; None when nothing is padded
    positions: Tensor | None = None  # int64; None for 0, 1, 2 …
    relation: Tensor | None = None  # (B,) int64
    entities: Tensor | None = None  # uint8: 0 outside, 1 first piece, 2 further pieces

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def at(self) -> tuple[Tensor, Tensor]:
        """Row numbers (B, 1) and positions (1, T): where a random number is used."""
        columns = torch.arange(self.ids.shape[1], device=self.ids.device)
        return self.index[:, None], columns[None, :]


def fill(text: ShardText, plan: RowPlan, index: Ints, length: int) -> Rows:
    """The rows of `plan` (already chosen), `length` long; `index` is their number in the pass."""
    device = text.tokens.device

    def column(values: Ints) -> Tensor:
        # Without waiting: a GPU is busy with the batch before.
        given = torch.from_numpy(np.ascontiguousarray(values))
        return given.to(device, non_blocking=True)[:, None]  # (B, 1)

    first, a = column(plan.first), column(plan.first_length)
    second, b = column(plan.second), column(plan.second_length)
    j = torch.arange(length, device=device)[None, :]  # (1, T)
    in_first = (j >= 1) & (j <= a)
    in_second = (j >= a + 2) & (j < a + 2 + b)
    end = torch.where(b > 0, a + b + 2, a + 1)  # the last [SEP]
    where = torch.where(in_first, first + j - 1, second + j - a - 2)
    inside = in_first | in_second
    where = torch.where(inside, where, 0)
    ids = text.tokens[where].long()  # (B, T)
    mark = torch.where((j == a + 1) | (j == end), text.special["sep"], text.special["pad"])
    mark = torch.where(j == 0, text.special["cls"], mark)
    ids = torch.where(inside, ids, mark)
    fixed = ~inside | (ids == text.special["sep"])  # documents end with [SEP] inside a part
    segments = ((j > a + 1) & (j <= end)).long()
    if plan.label is not None:
        segments = column(plan.label).expand(-1, length) * (j <= end)
    used = plan.first_length + plan.second_length + 2 + (plan.second_length > 0)
    starts = text.starts_word[ids] | fixed
    starts[:, 1:] |= fixed[:, :-1]
    marks = None
    if text.entities is not None:
        marks = torch.where(fixed, 0, text.entities[where])
    return Rows(
        ids=ids,
        segments=segments,
        fixed=fixed,
        starts=starts,
        index=column(index)[:, 0],
        real=j <= end if used.min() < length else None,
        positions=_restarted(j, a) if plan.restart else None,
        relation=None if plan.relation is None else column(plan.relation)[:, 0],
        entities=marks,
    )


def _restarted(j: Tensor, a: Tensor) -> Tensor:
    """Positions that begin anew after the first part and its [SEP]."""
    return torch.where(j <= a + 1, j.expand(len(a), -1), j - a - 2)
