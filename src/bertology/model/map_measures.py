"""What can be said of an attention map in plain numbers: how spread, diagonal, striped, blocky.

All functions take maps as (B, H, T, T), rows attending to columns, and the real tokens as (B, T);
padding may lie on either side and changes no number. Every measure is a mean over real queries.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["MEASURES", "REACH", "map_measures", "offset_masses", "own_segment"]

MEASURES = (
    "entropy",  # of a query's attention, 1 when it is even over all tokens, 0 when on one
    "near",  # attention to the token itself and its two neighbours
    "offset",  # attention to the one relative position that takes most, -REACH … REACH
    "stripes",  # attention to the two tokens that take most
    "evenness",  # how evenly tokens draw their attention from all queries, 1 for full stripes
    "blockness",  # attention within the own sentence of a pair, above what even attention gives
    "distance",  # mean distance in tokens
)
REACH = 3  # tokens: the farthest relative position that is tried
_STRIPES = 2  # a map of stripes has mostly one or two: [CLS], a [SEP] or a full stop


def map_measures(maps: Tensor, real: Tensor, same: Tensor | None = None) -> Tensor:
    """All measures of every map: (len(MEASURES), B, H).

    Args:
        maps: Attention (B, H, T, T).
        real: (B, T), true for tokens that are not padding.
        same: (B, T, T) from `own_segment`; None for single sentences, whose blockness is 0.
    """
    real = real.to(maps.device)
    pairs = real[:, :, None] & real[:, None, :]
    maps = maps.float() * pairs[:, None]
    share = real.float() / real.sum(-1, keepdim=True).clamp_min(1)  # each query's weight
    received = torch.einsum("bhts,bt->bhs", maps, share)
    diagonals = offset_masses(maps, share)  # (2 · REACH + 1, B, H)
    block = torch.zeros_like(diagonals[0])
    if same is not None:
        inside = torch.einsum("bhts,bts->bht", maps, same.float())
        by_chance = same.float().sum(-1) / real.sum(-1, keepdim=True)
        paired = (same.any(-1) & real).any(-1)  # (B,)
        block = torch.einsum("bht,bt->bh", inside - by_chance[:, None], share) * paired[:, None]
    where = torch.arange(maps.shape[-1], device=maps.device)
    distances = (where[:, None] - where).abs().float()
    return torch.stack(
        [
            _entropy(maps, real, share),
            diagonals[REACH - 1 : REACH + 2].sum(0),
            diagonals.amax(0),
            received.topk(min(_STRIPES, maps.shape[-1]), -1).values.sum(-1),
            _evenness(maps, share),
            block,
            torch.einsum("bhts,ts,bt->bh", maps, distances, share),
        ]
    )


def own_segment(segments: Tensor) -> Tensor:
    """(B, T, T): whether two tokens lie in the same sentence of a pair.

    `segments` is (B, T): 0 and 1 in the sentences of a pair, -1 for padding. Single sentences
    (all 0) have no own segment as opposed to another: all false.
    """
    paired = (segments == 1).any(-1)
    same = segments[:, :, None] == segments[:, None, :]
    return same & (segments >= 0)[:, :, None] & paired[:, None, None]


def offset_masses(maps: Tensor, share: Tensor) -> Tensor:
    """Attention to each relative position -REACH … REACH: (2 · REACH + 1, B, H).

    `share` is (B, T), what each query counts: 1 / L for real ones, 0 for padding.
    """
    size = maps.shape[-1]
    found = []
    for k in range(-REACH, REACH + 1):
        if abs(k) >= size:
            found.append(torch.zeros_like(maps[..., 0, 0]))
            continue
        queries = share[:, -k:] if k < 0 else share[:, : size - k]
        found.append((maps.diagonal(k, -2, -1) * queries[:, None]).sum(-1))
    return torch.stack(found)


def _entropy(maps: Tensor, real: Tensor, share: Tensor) -> Tensor:
    most = real.sum(-1).clamp_min(2).float().log()[:, None]
    return torch.einsum("bht,bt->bh", torch.special.entr(maps).sum(-1), share) / most


def _evenness(maps: Tensor, share: Tensor) -> Tensor:
    """The effective share of queries that a column draws from, mean over the attention given."""
    weighted = maps * share[:, None, :, None]  # (B, H, T, S); sums to 1 in each map
    received = weighted.sum(-2)
    sources = weighted / received.clamp_min(1e-12)[..., None, :]
    effective = torch.special.entr(sources).sum(-2).exp() * share.amax(-1)[:, None, None]
    found: Tensor = (received * effective).sum(-1)
    return found
