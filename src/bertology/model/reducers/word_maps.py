"""Attention between words, layer by layer, handed on as soon as a layer is done.

Nothing is kept but the mean over all layers and heads: maps of a whole batch are large, and what is
found in them is small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from bertology.model.batch import Batch
from bertology.model.site_context import SiteContext

WordPieces = Sequence[Sequence[int]]  # the pieces of each word


class WordMaps:
    """Calls `take(layer, maps)` with (B, H, W, W) of each layer: rows attend to columns.

    Attention to a word is the sum over its pieces, attention from a word the mean over them (Clark
    et al. 2019). Pieces of no word, such as [CLS] and [SEP], are left out. Words are the rows of
    `words`, example by example; what lies beyond those of an example is 0.
    """

    def __init__(
        self, batch: Batch, words: Sequence[WordPieces], take: Callable[[int, Tensor], None]
    ) -> None:
        real = batch.real.cpu()
        size, length = real.shape
        members = torch.zeros(size, length, max(map(len, words)))
        for row, groups in enumerate(words):
            at = torch.flatten(torch.nonzero(real[row]))  # where the pieces stand
            for column, pieces in enumerate(groups):
                members[row, at[list(pieces)], column] = 1
        self._to = members.to(batch.real.device)[:, None]  # (B, 1, T, W)
        self._from = (self._to / self._to.sum(2, keepdim=True).clamp_min(1)).transpose(2, 3)
        self._take = take
        self._sum: Tensor | None = None
        self._count = 0

    def update(self, value: Tensor, at: SiteContext) -> None:
        """Take one layer: (B, H, T, S)."""
        maps = self._from @ (value.float() @ self._to)  # (B, H, W, W)
        added = maps.sum(1)
        self._sum = added if self._sum is None else self._sum + added
        self._count += maps.shape[1]
        self._take(at.layer, maps)

    @property
    def mean(self) -> Tensor:
        """(B, W, W): over all heads of all layers, once all were seen."""
        if self._sum is None:
            raise ValueError("no layer was seen yet")
        return self._sum / self._count
