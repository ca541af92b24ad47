"""How a head divides its attention among a few words, one of which is the right one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.model.batch import Batch
from bertology.model.site_context import SiteContext

_TINY = 1e-12
Pieces = Sequence[int]


@dataclass(frozen=True)
class Candidates:
    """Of one example, all as pieces: the word that attends, the words that it may attend to.

    The first of `choices` is the right one. `elsewhere` are the other words of the example, which
    have no business with the right one.
    """

    word: Pieces
    choices: Sequence[Pieces]
    elsewhere: Sequence[Pieces] = ()


@dataclass(frozen=True)
class CandidateShares:
    """Shares of the right one in what all candidates get; NaN where there is nobody to attend."""

    of_heads: NDArray[np.float32]
    """(B, layers, H)"""
    of_layers: NDArray[np.float32]
    """(B, layers): of the attention of all heads of a layer together"""
    elsewhere: NDArray[np.float32]
    """(B, layers, H): as seen from the other words"""
    first: NDArray[np.bool_]
    """(B, layers, H): whether no other candidate gets more"""


class CandidateAttention:
    """A reducer for one batch. To a word: the sum over its pieces; from it: the mean (Clark)."""

    def __init__(self, batch: Batch, examples: Sequence[Candidates]) -> None:
        real = batch.real.cpu()
        size, length = real.shape
        most = max(len(one.choices) for one in examples)
        queries = torch.zeros(size, 2, length)  # the word, then the others
        members = torch.zeros(size, length, most)
        there = torch.zeros(size, most, dtype=torch.bool)
        for row, one in enumerate(examples):
            at = torch.flatten(torch.nonzero(real[row]))  # where the pieces stand
            queries[row, 0, at[list(one.word)]] = 1 / len(one.word)
            for pieces in one.elsewhere:
                queries[row, 1, at[list(pieces)]] = 1 / len(pieces) / len(one.elsewhere)
            for column, pieces in enumerate(one.choices):
                members[row, at[list(pieces)], column] = 1
                there[row, column] = True
        device = batch.real.device
        self._queries, self._members = queries.to(device), members.to(device)
        self._there = there.to(device)
        self._found: dict[int, tuple[Tensor, ...]] = {}

    def update(self, value: Tensor, at: SiteContext) -> None:
        """Take one layer: (B, H, T, S)."""
        rows = self._queries[:, None] @ value.float()  # (B, H, 2, S)
        weights = rows @ self._members[:, None]  # (B, H, 2, C)
        own, others = weights.unbind(2)
        elsewhere = torch.where(
            self._queries[:, 1].any(-1)[:, None], self._share(others), torch.nan
        )
        first = own[..., :1] >= own.masked_fill(~self._there[:, None], -1.0)
        found = (self._share(own), self._share(own.sum(1)), elsewhere, first.all(-1))
        self._found[at.layer] = tuple(t.cpu() for t in found)

    def _share(self, weights: Tensor) -> Tensor:
        """Of the first; even where a head gives nothing to any of them."""
        there = self._there[:, None] if weights.dim() == 3 else self._there
        filled = weights + _TINY * there
        return filled[..., 0] / filled.sum(-1)

    def value(self) -> CandidateShares:
        """All layers together."""
        layers = [self._found[i] for i in sorted(self._found)]
        return CandidateShares(*(torch.stack(t, dim=1).numpy() for t in zip(*layers, strict=True)))
