"""Streaming reducers: what is kept of values that pass, so that memory does not grow."""

from __future__ import annotations

import torch
from torch import Tensor

from bertology.model.place import Place
from bertology.model.shape import Shape

__all__ = ["AttentionStatistics", "MeanOutput"]


class MeanOutput:
    """Mean head output over real tokens."""

    def __init__(self, shape: Shape) -> None:
        self._sum = torch.zeros(shape.layers, shape.heads, shape.head_size, dtype=torch.float64)
        self._count = torch.zeros(shape.layers, dtype=torch.float64)

    def update(self, value: Tensor, place: Place) -> None:
        """Add one layer of one batch: (B, H, T, D)."""
        real = place.real.to(value.dtype)  # (B, T)
        self._sum[place.layer] += torch.einsum("bhtd,bt->hd", value, real).double().cpu()
        self._count[place.layer] += float(real.sum())

    @property
    def value(self) -> Tensor:
        """(layers, heads, D)"""
        return (self._sum / self._count[:, None, None]).float()


class AttentionStatistics:
    """Where each head looks, averaged over queries and examples, in one pass.

    Per head: attention to the previous, same and next token, to the first and last token
    ([CLS] and the final [SEP] in BERT), the entropy of its distributions (nats) and its mean
    distance (tokens). Every example weighs the same, whatever its length.
    """

    NAMES = ("previous", "self", "next", "first", "last", "entropy", "distance")

    def __init__(self, shape: Shape) -> None:
        self._sum = torch.zeros(len(self.NAMES), shape.layers, shape.heads, dtype=torch.float64)
        self._squares = torch.zeros_like(self._sum)
        self._examples = 0

    def update(self, value: Tensor, place: Place) -> None:
        """Add one layer of one batch: (B, H, T, S)."""
        real = place.real.to(value.dtype)  # (B, T)
        lengths = real.sum(-1)  # (B,)
        share = real / lengths[:, None]  # each real query's weight in its example
        size = value.shape[-1]
        offsets = [
            (value.diagonal(k, -2, -1) * _cut(share, k)[:, None]).sum(-1) for k in (-1, 0, 1)
        ]  # 3 × (B, H)
        # One product gives both the weight on each key and the attended positions.
        received = torch.einsum("bhts,bt->bhs", value, share)  # (B, H, S)
        last = (lengths.long() - 1)[:, None, None].expand(-1, value.shape[1], 1)
        entropy = torch.einsum("bht,bt->bh", torch.special.entr(value).sum(-1), share)
        distance = torch.einsum("bhts,bts->bh", value, self._distances(size, value, share))
        found = torch.stack(
            [*offsets, received[..., 0], received.gather(-1, last)[..., 0], entropy, distance]
        )  # (statistics, B, H)
        self._sum[:, place.layer] += found.sum(1).double().cpu()
        self._squares[:, place.layer] += found.square().sum(1).double().cpu()
        if place.layer == 0:
            self._examples += value.shape[0]

    def _distances(self, size: int, like: Tensor, share: Tensor) -> Tensor:
        where = torch.arange(size, device=like.device, dtype=like.dtype)
        return (where[:, None] - where).abs() * share[:, :, None]  # (B, T, S)

    def sums(self) -> tuple[Tensor, Tensor, int]:
        """Sums and sums of squares (statistics, layers, heads) over examples, and their number."""
        return self._sum, self._squares, self._examples

    @property
    def mean(self) -> Tensor:
        """(statistics, layers, heads)"""
        return self._sum / max(self._examples, 1)

    @property
    def standard_error(self) -> Tensor:
        """Of the mean, over examples."""
        n = max(self._examples, 1)
        variance = (self._squares / n - self.mean**2).clamp_min(0)
        return (variance / max(n - 1, 1)).sqrt()


def _cut(share: Tensor, offset: int) -> Tensor:
    """The queries that have a key at this offset, as `diagonal` lists them."""
    return share[:, 1:] if offset < 0 else share[:, : share.shape[1] - offset]
