"""Streaming reducers: sums over batches, so that memory does not grow with the corpus."""

from __future__ import annotations

import torch
from torch import Tensor

from bertology.errors import CapabilityError
from bertology.model.shape import Shape
from bertology.model.site_context import SiteContext


class MeanOutput:
    """Mean head output over real tokens. Give it all heads of every layer it is asked about."""

    def __init__(self, shape: Shape) -> None:
        self._sum = torch.zeros(shape.layers, shape.heads, shape.head_size, dtype=torch.float64)
        self._count = torch.zeros(shape.layers, dtype=torch.float64)

    def update(self, value: Tensor, at: SiteContext) -> None:
        """Add one layer of one batch: (B, H, T, D)."""
        _check_heads(value, self._sum.shape[1], "MeanOutput")
        real = at.real.float()  # (B, T); sums in half precision would lose tokens
        self._sum[at.layer] += torch.einsum("bhtd,bt->hd", value.float(), real).double().cpu()
        self._count[at.layer] += float(real.sum())

    @property
    def value(self) -> Tensor:
        """(layers, heads, D)"""
        return (self._sum / self._count[:, None, None]).float()


class AttentionStatistics:
    """Where each head looks, averaged over queries and examples, in one pass.

    Per head: attention to the previous, same and next token, to the first and last token
    ([CLS] and the final [SEP] in BERT), the entropy of its distributions (nats) and its mean
    distance (tokens). Every example has the same weight, short or long. Give it all heads of
    every layer it is asked about; layers it never sees are NaN.
    """

    NAMES = ("previous", "self", "next", "first", "last", "entropy", "distance")

    def __init__(self, shape: Shape) -> None:
        self._sum = torch.zeros(len(self.NAMES), shape.layers, shape.heads, dtype=torch.float64)
        self._squares = torch.zeros_like(self._sum)
        self._examples = torch.zeros(shape.layers, dtype=torch.float64)

    def update(self, value: Tensor, at: SiteContext) -> None:
        """Add one layer of one batch: (B, H, T, S)."""
        _check_heads(value, self._sum.shape[2], "AttentionStatistics")
        if value.dtype is not torch.float64:  # half precision is too coarse for sums
            value = value.float()
        real = at.real.to(value.dtype)  # (B, T)
        share = real / real.sum(-1, keepdim=True)  # each real query's weight in its example
        size = value.shape[-1]
        offsets = [
            (value.diagonal(k, -2, -1) * _cut(share, k)[:, None]).sum(-1) for k in (-1, 0, 1)
        ]  # 3 × (B, H)
        received = torch.einsum("bhts,bt->bhs", value, share)  # (B, H, S)
        # Padding may be on either side.
        ends = real.argmax(-1), size - 1 - real.flip(-1).argmax(-1)
        first, last = (
            received.gather(-1, end[:, None, None].expand(-1, value.shape[1], 1))[..., 0]
            for end in ends
        )
        entropy = torch.einsum("bht,bt->bh", torch.special.entr(value).sum(-1), share)
        distance = torch.einsum("bhts,bts->bh", value, self._distances(size, value, share))
        found = torch.stack([*offsets, first, last, entropy, distance])  # (statistics, B, H)
        self._sum[:, at.layer] += found.sum(1).double().cpu()
        self._squares[:, at.layer] += found.square().sum(1).double().cpu()
        self._examples[at.layer] += value.shape[0]

    def _distances(self, size: int, like: Tensor, share: Tensor) -> Tensor:
        where = torch.arange(size, device=like.device, dtype=like.dtype)
        return (where[:, None] - where).abs() * share[:, :, None]  # (B, T, S)

    def sums(self) -> tuple[Tensor, Tensor, int]:
        """Sums and sums of squares (statistics, layers, heads) over examples, and their number."""
        return self._sum, self._squares, int(self._examples.max())

    @property
    def mean(self) -> Tensor:
        """(statistics, layers, heads)"""
        return self._sum / self._examples[:, None]

    @property
    def standard_error(self) -> Tensor:
        """Of the mean, over examples."""
        n = self._examples[:, None]
        variance = (self._squares / n - self.mean**2).clamp_min(0)
        return (variance / (n - 1).clamp_min(1)).sqrt()


def _check_heads(value: Tensor, heads: int, of: str) -> None:
    if value.shape[1] != heads:
        raise CapabilityError(
            f"{of} needs all {heads} heads of a layer and was given {value.shape[1]}.",
            hint="Name the site with head.*",
        )


def _cut(share: Tensor, offset: int) -> Tensor:
    """The queries that have a key at this offset, as `diagonal` lists them."""
    return share[:, 1:] if offset < 0 else share[:, : share.shape[1] - offset]
