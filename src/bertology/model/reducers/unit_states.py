"""States of words or tokens after each layer, as a pass goes through them.

What is handed on is small: one vector for each word instead of one for each piece.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from bertology.model.batch import Batch
from bertology.model.site_context import SiteContext
from bertology.model.sites import Kind

Groups = Sequence[Sequence[int]]  # the pieces of each word


class UnitStates:
    """Calls `take(number, states)` with (words of the batch, width): 0 is the input, then layers.

    `words` are those of each example, by their pieces. The state of a word is that of its first or
    last piece, or the mean. For sites `embeddings` and `layer.*.residual`.
    """

    def __init__(
        self,
        batch: Batch,
        words: Sequence[Groups],
        take: Callable[[int, Tensor], None],
        *,
        pooling: str = "mean",
    ) -> None:
        real, device = batch.real.cpu(), batch.real.device
        rows, word_of, count = list[int](), list[int](), 0
        of_word = {"first": slice(1), "last": slice(-1, None), "mean": slice(None)}[pooling]
        for row, groups in enumerate(words):
            # Numbers of Python: a tensor for each word would take longer than the pass.
            at = (torch.flatten(torch.nonzero(real[row])) + row * real.shape[1]).tolist()
            for pieces in groups:
                chosen = pieces[of_word]
                rows += [at[piece] for piece in chosen]
                word_of += [count] * len(chosen)
                count += 1
        self._rows = torch.tensor(rows, dtype=torch.long, device=device)
        self._words = torch.tensor(word_of, dtype=torch.long, device=device)
        sizes = torch.bincount(self._words, minlength=count)
        self._sizes = sizes[:, None] if pooling == "mean" else None
        self._take = take

    def update(self, value: Tensor, at: SiteContext) -> None:
        """Take one layer: (B, T, width)."""
        found = value.flatten(0, 1)[self._rows]
        if self._sizes is not None:
            sums = torch.zeros(len(self._sizes), found.shape[1], device=value.device)
            found = sums.index_add_(0, self._words, found.float()) / self._sizes
        self._take(0 if at.kind is Kind.EMBEDDINGS else at.layer + 1, found)
