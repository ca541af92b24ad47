"""Which tokens are hidden from the model, and what replaces them.

Tokens are hidden in units. The ways of masking differ only in how a row is cut into units, which
`_units` does:

    tokens     every token is a unit                                      (BERT)
    words      all pieces of a word                                       (whole-word masking)
    ngrams     stretches of one to three words                            (phrase masking)
    spans      stretches of words whose length is geometric               (SpanBERT)
    entities   the entities that were given, then words                   (ERNIE)

Everything is done for the whole batch at once, on the device. Shapes do not depend on the random
draw: a row has room for `ceil(share × length)` predictions, and unused ones have weight 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor

from bertology.errors import DataError
from bertology.train.pretrain.chance import Chance
from bertology.train.pretrain.config import Masking
from bertology.train.pretrain.rows import Rows
from bertology.train.pretrain.shards import Shards

_NGRAM = 3
_ROUNDING = 1e-4  # 0.15 × 100 is a little above 15 in float32, and would be 16 tokens


@dataclass(frozen=True)
class MaskableVocabulary:
    """What masking must know of the vocabulary, on the device."""

    ordinary: Tensor  # (V',) ids that may replace another: all but special ones
    mask: int
    unk: int
    frequency: Tensor  # (V,) float32: share of the training tokens

    @classmethod
    def of(cls, shards: Shards, device: torch.device | str) -> MaskableVocabulary:
        """From the shards' vocabulary and token counts."""
        special = set(shards.special.values())
        ordinary = [i for i in range(shards.vocab_size) if i not in special]
        counts = torch.from_numpy(shards.counts).double()
        share = (counts / counts.sum().clamp(min=1)).float()
        mask, unk = shards.special["mask"], shards.special["unk"]
        return cls(torch.tensor(ordinary, device=device), mask, unk, share.to(device))


@dataclass(frozen=True)
class Hidden:
    """Rows with tokens hidden; (B, T) where nothing else is said."""

    ids: Tensor  # what the model sees
    chosen: Tensor  # bool: what it must predict
    unit: Tensor  # int64: which unit of its row a token is in; 0 to T - 1
    positions: Tensor  # (B, K) int64: of what it must predict, in order
    targets: Tensor  # (B, K) int64: the tokens that were there
    weights: Tensor  # (B, K) float32: 1, or 0 for room that is not used


def hide(rows: Rows, masking: Masking, pieces: MaskableVocabulary, chance: Chance) -> Hidden:
    """Choose units up to the share of tokens that may be hidden, and replace them."""
    unit = _units(rows, masking, chance("units"))
    room = math.ceil(masking.share * rows.ids.shape[1] - _ROUNDING)
    chosen = _chosen(rows, unit, masking, pieces, chance("choose"), room)
    positions, weights = gathered(chosen, room)
    return Hidden(
        ids=_replaced(rows, chosen, unit, masking, pieces, chance("replace")),
        chosen=chosen,
        unit=unit,
        positions=positions,
        targets=rows.ids.gather(1, positions),
        weights=weights,
    )


def gathered(chosen: Tensor, room: int) -> tuple[Tensor, Tensor]:
    """The positions of what is chosen, in order, (B, room); and 1 where there is one, else 0."""
    # Chosen positions first, each group in its own order: a stable sort of "not chosen".
    order = torch.sort((~chosen).to(torch.uint8), dim=1, stable=True).indices[:, :room]
    weights = chosen.gather(1, order)
    return order * weights, weights.float()


def _units(rows: Rows, masking: Masking, chance: Chance) -> Tensor:
    """(B, T): the position at which the unit of each token begins."""
    row, column = rows.at
    if masking.units == "tokens":
        return column.expand_as(rows.ids)
    if masking.units == "entities":
        return _entity_units(rows)
    if masking.units == "words":
        return _beginnings(rows.starts)
    # Stretches of words: the row is cut into pieces of random length, one after the other.
    u = chance.uniform(row, column)
    lengths = (u * _NGRAM).long() + 1 if masking.units == "ngrams" else _geometric(u, masking)
    ends = lengths.cumsum(1)  # (B, T): in words
    word = rows.starts.long().cumsum(1) - 1  # the number of each token's word
    stretch = torch.searchsorted(ends, word, right=True)
    first = torch.ones_like(rows.fixed)
    first[:, 1:] = stretch[:, 1:] != stretch[:, :-1]
    # [CLS] and [SEP] belong to no stretch, and none reaches across them.
    return _beginnings(first | _bounds(rows))


def _geometric(u: Tensor, masking: Masking) -> Tensor:
    """Lengths from 1 to the longest, each `1 - ends` times as likely as the one before."""
    sums = list(accumulate((1 - masking.ends) ** k for k in range(masking.longest)))
    # Read from a table: a logarithm would differ slightly between devices.
    table = torch.tensor([s / sums[-1] for s in sums[:-1]], dtype=u.dtype)
    table = table.to(u.device, non_blocking=True)
    return torch.bucketize(u, table, right=True) + 1


def _bounds(rows: Rows) -> Tensor:
    """Fixed tokens and the tokens right after them: a unit always begins there."""
    bounds = rows.fixed.clone()
    bounds[:, 1:] |= rows.fixed[:, :-1]
    return bounds


def _entity_units(rows: Rows) -> Tensor:
    if rows.entities is None:
        raise DataError(
            "Entity masking needs text with entities.",
            hint='Give JSON lines: {"text": "Ann saw Bo.", "entities": [[0, 3], [8, 10]]}.',
        )
    before = torch.zeros_like(rows.entities)
    before[:, 1:] = rows.entities[:, :-1]
    inside = rows.entities == 2
    starts = (rows.entities == 1) | (rows.starts & ~inside) | ((before > 0) & (rows.entities == 0))
    return _beginnings(starts | _bounds(rows))


def _beginnings(starts: Tensor) -> Tensor:
    """For every token the last position at or before it that is a start."""
    column = torch.arange(starts.shape[1], device=starts.device)
    return torch.where(starts, column, 0).cummax(1).values


def _chosen(
    rows: Rows,
    unit: Tensor,
    masking: Masking,
    pieces: MaskableVocabulary,
    chance: Chance,
    room: int,
) -> Tensor:
    """Units in random order, as many as there is room for.

    Words and entities are hidden whole or not at all. The last stretch of words is cut to fit;
    otherwise long stretches would leave much of the room unused.
    """
    row, _ = rows.at
    score = -torch.log1p(-chance.uniform(row, unit))  # (B, T): the same for all of a unit
    if masking.subsample:
        # Exponential variables over weights: the chance to be first is proportional to the weight.
        first = rows.ids.gather(1, unit)
        frequency = pieces.frequency[first].clamp(min=1e-12)
        score = score / (masking.subsample / frequency).sqrt().clamp(max=1.0)
    if masking.units == "entities" and rows.entities is not None:
        score = score / (1 + score)  # below 1: entities go before words, which get 1 to 2
        score = torch.where(rows.entities > 0, score, score + 1)
    score = torch.where(rows.fixed, torch.inf, score)
    order = torch.sort(score, dim=1, stable=True).indices
    rank = torch.empty_like(order)
    rank.scatter_(1, order, torch.arange(order.shape[1], device=order.device).expand_as(order))
    if masking.units not in ("spans", "ngrams"):
        last = torch.zeros_like(rank).scatter_reduce(1, unit, rank, "amax")  # of each unit
        rank = last.gather(1, unit)
    count = (~rows.fixed).sum(1, keepdim=True).float()
    budget = torch.ceil(masking.share * count - _ROUNDING).clamp(max=room)
    return (rank < budget) & ~rows.fixed


def _replaced(
    rows: Rows,
    chosen: Tensor,
    unit: Tensor,
    masking: Masking,
    pieces: MaskableVocabulary,
    chance: Chance,
) -> Tensor:
    row, column = rows.at
    # All of a span is replaced in the same way; the tokens of a word independently, as in BERT.
    u = chance("kind").uniform(row, unit if masking.units == "spans" else column)
    drawn = pieces.ordinary[chance("token").below(len(pieces.ordinary), row, column)]
    mark = pieces.mask if masking.token == "mask" else pieces.unk
    other = torch.where(u < masking.masked, mark, rows.ids)
    swapped = (u >= masking.masked) & (u < masking.masked + masking.random)
    return torch.where(chosen, torch.where(swapped, drawn, other), rows.ids)
