"""Which of some words a word attends to most, and whether that is a right one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.model.batch import Batch
from bertology.model.site_context import SiteContext


@dataclass(frozen=True)
class Choice:
    """A word that attends, the words to choose from in each of several readings, the right ones."""

    source: int
    among: tuple[tuple[int, ...], ...]
    right: tuple[int, ...]


class MostAttendedChoice:
    """In one batch, by layer, head and reading: is the most attended word a right one?

    Attention to a word is the sum over its pieces, attention from a word the mean over them (Clark
    et al. 2019). Of words that get exactly as much the first is taken.
    """

    def __init__(
        self,
        batch: Batch,
        words: Sequence[Sequence[Sequence[int]]],
        choices: Sequence[Sequence[Choice]],
    ) -> None:
        """`words` are the pieces of each word, padding not counted; all by example."""
        real = batch.real.cpu()
        size, length = real.shape
        columns, most = max(map(len, words)), max(1, *map(len, choices))
        readings = max((len(c.among) for of in choices for c in of), default=1)
        queries = torch.zeros(size, most, length)
        members = torch.zeros(size, length, columns)
        among = torch.zeros(readings, size, most, columns, dtype=torch.bool)
        right = torch.zeros(size, most, columns, dtype=torch.bool)
        for row in range(size):
            at = torch.flatten(torch.nonzero(real[row]))  # where the pieces stand
            for column, pieces in enumerate(words[row]):
                members[row, at[list(pieces)], column] = 1
            for k, choice in enumerate(choices[row]):
                pieces = list(words[row][choice.source])
                queries[row, k, at[pieces]] = 1 / len(pieces)
                right[row, k, list(choice.right)] = True
                for reading, some in enumerate(choice.among):
                    among[reading, row, k, list(some)] = True
        device = batch.real.device
        self._queries, self._members = queries.to(device)[:, None], members.to(device)[:, None]
        self._barred, self._right = ~among.to(device)[:, :, None], right.to(device)[:, None]
        self._found: dict[int, Tensor] = {}

    def update(self, value: Tensor, at: SiteContext) -> None:
        """Take one layer: (B, H, T, S)."""
        weights = self._queries @ value.float() @ self._members  # (B, H, K, W)
        right = self._right.expand(weights.shape)
        hits = [
            right.gather(-1, weights.masked_fill(barred, -1.0).argmax(-1, keepdim=True))[..., 0]
            for barred in self._barred
        ]
        self._found[at.layer] = torch.stack(hits).cpu()

    def value(self) -> NDArray[np.bool_]:
        """(readings, B, layers, H, K), once all layers were seen."""
        layers = [self._found[i] for i in sorted(self._found)]
        return np.asarray(torch.stack(layers, dim=2).numpy())
