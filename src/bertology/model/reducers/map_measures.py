"""Numbers that describe an attention map: how spread, diagonal, striped or blocky it is.

Maps are (B, H, T, T), rows attending to columns. Padding may lie on either side; nothing attends
to it, and its own rows change no number. Every measure is a mean over real queries.
"""

from __future__ import annotations

import torch
from torch import Tensor

MAP_MEASURES = (
    "entropy",  # of a query's attention, 1 when it is even over all tokens, 0 when on one
    "near",  # attention to the token itself and its two neighbours
    "offset",  # attention to the one relative position that takes most, -REACH … REACH
    "stripes",  # attention to the two tokens that take most
    "evenness",  # how evenly a token's attention comes from all queries, 1 for full stripes
    "blockness",  # attention within the own sentence of a pair, above what even attention gives
    "distance",  # mean distance in tokens
)
REACH = 3  # tokens: the farthest relative position that is tried
_STRIPES = 2  # a map of stripes has mostly one or two: [CLS], a [SEP] or a full stop
_TINY = 1e-12
_LEAST = 1e-30  # so that 0 · log 0 is 0


def map_measures(maps: Tensor, segments: Tensor) -> Tensor:
    """All measures of every map: (len(MAP_MEASURES), B, H).

    Args:
        maps: Attention (B, H, T, T).
        segments: (B, T), 0 and 1 in the sentences of a pair, all 0 for one, whose blockness is 0;
            -1 for padding.
    """
    maps, inside = maps.float(), in_sentences(segments)
    count = inside.sum((1, 2)).clamp_min(1)[:, None]  # (B, 1)
    parts = inside / count[..., None]  # what each query counts, by sentence
    share = parts.sum(1)
    by_part = parts[:, None] @ maps  # (B, H, 2, T)
    received = by_part.sum(-2)
    # What each column adds to the mean entropy of the rows; it also tells how even the column is.
    surprise = maps.clamp_min(_LEAST).log_().mul_(maps)  # twice as quick as torch.special.entr
    spread = -(share[:, None, None] @ surprise)[..., 0, :]
    diagonals = offset_masses(maps, share)  # (2 · REACH + 1, B, H)
    sizes = parts.sum(-1)  # (B, 2), sum to 1
    within = (by_part * inside[:, None]).sum((-2, -1)) - sizes.square().sum(-1)[:, None]
    where = torch.arange(maps.shape[-1], device=maps.device)
    distances = (where[:, None] - where).abs() * share[..., None]  # (B, T, T)
    return torch.stack(
        [
            spread.sum(-1) / count.clamp_min(2).log(),
            diagonals[REACH - 1 : REACH + 2].sum(0),
            diagonals.amax(0),
            received.topk(min(_STRIPES, maps.shape[-1]), -1).values.sum(-1),
            _evenness(received, spread),
            within * (sizes[:, 1:] > 0),
            (maps.flatten(2) @ distances.flatten(1)[..., None])[..., 0],
        ]
    )


def in_sentences(segments: Tensor) -> Tensor:
    """(B, 2, T): 1 where a token lies in the first or in the second sentence, else 0."""
    sentence = torch.arange(2, device=segments.device)[:, None]
    return (segments[:, None] == sentence).float()


def own_segment(segments: Tensor) -> Tensor:
    """(B, T, T): whether two tokens lie in the same sentence of a pair.

    `segments` is (B, T): 0 and 1 in the sentences of a pair, -1 for padding. Single sentences
    (all 0) have no second segment to compare with: all false.
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


def _evenness(received: Tensor, spread: Tensor) -> Tensor:
    """The effective share of queries that attend to a column, mean weighted by its attention.

    The effective number of queries of a column that receives r is exp(entropy over queries). With
    L equal queries that entropy is log L + log r + spread / r, so no second logarithm of the map
    is needed.
    """
    some = received.clamp_min(_TINY)
    effective = (some.log() + spread / some).clamp_max(0).exp()
    found: Tensor = (received * effective).sum(-1)
    return found
