"""How far the attention maps of two models of the same shape differ, head by head."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from bertology.model.batch import Text
from bertology.model.reducers.held_maps import held_together
from bertology.model.site_context import SiteContext

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder

_SITES = "layer.*.head.*.pattern"


@dataclass
class MapChanges:
    """How far the maps differ; each is (examples, layers, heads)."""

    cosine_distance: Tensor
    """1 - cosine of the flattened maps of the two models."""
    divergence: Tensor
    """Jensen-Shannon divergence in nats, the mean over queries."""
    distance_to_neighbour: Tensor
    """The cosine distance to another head of the other model: the next one of the layer (after
    the last comes the first). In unrelated models it is as large as `cosine_distance`."""


def compare_maps(
    encoder: Encoder,
    other: Encoder,
    texts: Sequence[Text],
    *,
    tokens_per_batch: int = 4096,
    done: Callable[[int], None] = lambda examples: None,
) -> MapChanges:
    """Run both models batch by batch; only three numbers per head are kept, not the maps."""
    shape = encoder.shape
    found = torch.zeros(3, len(texts), shape.layers, shape.heads)
    for whole in encoder.batches(texts, tokens_per_batch=tokens_per_batch):
        for batch in held_together(whole, shape):
            kept = _Kept()
            other.run(batch, reduce={_SITES: kept})
            compared = _Compared(kept.layers)
            encoder.run(batch, reduce={_SITES: compared})
            rows = [compared.layers[layer] for layer in range(shape.layers)]
            found[:, list(batch.indices)] = torch.stack(rows, dim=2).cpu()  # (3, B, layers, H)
        done(len(whole))
    return MapChanges(*found)


class _Kept:
    """One model's maps of one batch, by layer."""

    def __init__(self) -> None:
        self.layers: dict[int, Tensor] = {}

    def update(self, value: Tensor, at: SiteContext) -> None:
        self.layers[at.layer] = value


class _Compared:
    """The other model's maps compared with those: (3, B, H) numbers by layer."""

    def __init__(self, before: dict[int, Tensor]) -> None:
        self._before = before
        self.layers: dict[int, Tensor] = {}

    def update(self, value: Tensor, at: SiteContext) -> None:
        real = at.real
        both = (real[:, :, None] & real[:, None, :])[:, None]  # (B, 1, T, T)
        before = self._before.pop(at.layer).to(value.device)  # the other model may lie elsewhere
        one, two = (m.float().masked_fill(~both, 0.0) for m in (value, before))
        share = real / real.sum(-1, keepdim=True)  # (B, T)
        divergence = torch.einsum("bht,bt->bh", _divergences(one, two), share)
        one, two = (m / m.flatten(2).norm(dim=-1)[..., None, None] for m in (one, two))
        distances = [_half_square(one, t) for t in (two, two.roll(-1, dims=1))]
        self.layers[at.layer] = torch.stack([distances[0], divergence, distances[1]])


def _half_square(one: Tensor, two: Tensor) -> Tensor:
    """1 - cosine of maps of length 1: (B, H). Exactly 0 for equal maps, and small ones keep
    their digits, which 1 - the product would lose."""
    return (one - two).square().flatten(2).sum(-1) / 2


def _divergences(one: Tensor, two: Tensor) -> Tensor:
    """Jensen-Shannon divergence of each query's two distributions: (B, H, T), in [0, ln 2].

    Exactly 0 for equal ones. Of each weight there are two forms of the same term. Where the two
    sides are alike, the logarithms of the plain form would cancel; where one side has nearly
    all, the other form takes the logarithm of 0.
    """
    total = one + two
    safe = torch.where(total > 0, total, 1.0)
    lean = (one - two) / safe  # from -1 (all of it is two's) to 1 (all of it is one's)
    near = lean.abs() < 0.5
    small = torch.where(near, lean, 0.0)
    alike = total / 2 * (small * small.atanh() + (-small * small).log1p() / 2)
    least = torch.finfo(total.dtype).tiny
    sides = [torch.xlogy(side, (2 * side / safe).clamp_min(least)) for side in (one, two)]
    apart = (sides[0] + sides[1]) / 2
    return torch.where(near, alike, apart).sum(-1).clamp(0, math.log(2))
