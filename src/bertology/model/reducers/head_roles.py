"""What each head attends to, of a few things that any text has: neighbours, itself, classes.

Two readings of one map: how much of the attention goes there (`shares`), and for how many tokens
it is what they attend to most (`hits`). Every number is a mean over the tokens of a text that have
such a thing: the first token has none before it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.model.site_context import SiteContext

OFFSETS = {"previous": -1, "next": 1, "self": 0}
SHARES = (*OFFSETS, "cls", "sep", "punctuation", "special", "entropy")
"""`special` is [CLS], [SEP] and punctuation together; `entropy` is 1 where attention is even."""
HITS = (*OFFSETS, "end")


@dataclass(frozen=True)
class Roles:
    """Of one batch; NaN where a text has no such token."""

    shares: NDArray[np.float32]
    """(B, SHARES, layers, H)"""
    hits: NDArray[np.float32]
    """(B, HITS, layers, H): shares of tokens"""


class HeadRoles:
    """A reducer for one batch.

    `masks` (B, 3, T) say what is [CLS], [SEP] and punctuation, `ends` (B, T) what ends a text: its
    last token, and the full stop before it.
    """

    def __init__(self, masks: Tensor, ends: Tensor) -> None:
        self._masks, self._ends = masks.float(), ends
        self._found: dict[int, tuple[Tensor, Tensor]] = {}

    def update(self, value: Tensor, at: SiteContext) -> None:
        """Take one layer: (B, H, T, S)."""
        value, real = value.float(), at.real
        weight = real / real.sum(-1, keepdim=True)  # (B, T): of each query
        received = torch.einsum("bhts,bt->bhs", value, weight)
        classes = torch.einsum("bhs,bcs->bch", received, self._masks)  # (B, 3, H)
        there = self._masks.any(-1)[..., None]
        surprise = value.clamp_min(1e-30).log_().mul_(value).sum(-1)  # (B, H, T)
        most = real.sum(-1).clamp_min(2).log()[:, None]
        entropy = -torch.einsum("bht,bt->bh", surprise, weight) / most
        shares = [_at_offset(value, real, k) for k in OFFSETS.values()]
        found = [torch.stack(shares, 1), torch.where(there, classes, torch.nan)]
        found += [classes.sum(1, keepdim=True), entropy[:, None]]
        self._found[at.layer] = (torch.cat(found, 1).cpu(), self._hits(value, real, weight).cpu())

    def _hits(self, value: Tensor, real: Tensor, weight: Tensor) -> Tensor:
        """(B, HITS, H)"""
        best = value.argmax(-1)  # (B, H, T)
        where = torch.arange(value.shape[-1], device=value.device)
        found = []
        for k in OFFSETS.values():
            own = _with_key(real, k)
            right = ((best == where + k) & own[:, None]).sum(-1)
            found.append(right / torch.where(own.any(-1), own.sum(-1), torch.nan)[:, None])
        ends = self._ends[:, None].expand(-1, value.shape[1], -1).gather(2, best)
        return torch.stack([*found, torch.einsum("bht,bt->bh", ends.float(), weight)], 1)

    def value(self) -> Roles:
        """All layers together."""
        layers = [self._found[i] for i in sorted(self._found)]
        shares, hits = (torch.stack(t, dim=2).numpy() for t in zip(*layers, strict=True))
        return Roles(shares, hits)


def _with_key(real: Tensor, offset: int) -> Tensor:
    """(B, T): queries whose key at this offset is a token, too."""
    there = torch.zeros_like(real)
    size = real.shape[1]
    if offset < 0:
        there[:, -offset:] = real[:, : size + offset]
    else:
        there[:, : size - offset] = real[:, offset:]
    return there & real


def _at_offset(value: Tensor, real: Tensor, offset: int) -> Tensor:
    """(B, H): mean attention at an offset, of the queries that have such a key."""
    own = _with_key(real, offset)
    there = own[:, -offset:] if offset < 0 else own[:, : own.shape[1] - offset]
    total = (value.diagonal(offset, -2, -1) * there[:, None]).sum(-1)
    return total / torch.where(own.any(-1), own.sum(-1), torch.nan)[:, None]
