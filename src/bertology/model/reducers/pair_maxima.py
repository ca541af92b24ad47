"""The largest attention weight among chosen pairs of tokens, per head, in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.errors import CapabilityError
from bertology.model.shape import Shape
from bertology.model.site_context import SiteContext


@dataclass(frozen=True)
class Aim:
    """Pairs of tokens in one row of a batch; their largest weight is added to one cell.

    Positions are (query, key) among the row's real tokens.
    """

    row: int
    pairs: Sequence[tuple[int, int]]
    cell: int


class PairMaxima:
    """Means of maxima: the largest weight of each aim, then for each cell the mean over its aims.

    Call `aim` before every run; the sums of all runs are kept, one number per cell and head.
    Give it all heads of every layer.
    """

    def __init__(self, shape: Shape, cells: int) -> None:
        self._sum = torch.zeros(cells, shape.layers, shape.heads, dtype=torch.float64)
        self._count = torch.zeros(cells, dtype=torch.float64)
        self._rows = self._queries = self._keys = self._set = self._cell = torch.zeros(0).long()

    def aim(self, aims: Sequence[Aim]) -> None:
        """Say which pairs are read in the next run."""
        flat = [
            (aim.row, query, key, at) for at, aim in enumerate(aims) for query, key in aim.pairs
        ]
        table = torch.tensor(flat, dtype=torch.long).reshape(-1, 4)
        self._rows, self._queries, self._keys, self._set = table.unbind(1)
        self._cell = torch.tensor([aim.cell for aim in aims], dtype=torch.long)
        self._count.index_add_(0, self._cell, torch.ones(len(aims), dtype=torch.float64))

    def update(self, value: Tensor, at: SiteContext) -> None:
        """Add one layer of one batch: (B, H, T, S)."""
        heads = self._sum.shape[2]
        if value.shape[1] != heads:
            raise CapabilityError(
                f"PairMaxima needs all {heads} heads of a layer and was given {value.shape[1]}.",
                hint="Name the site with head.*",
            )
        if not len(self._cell):
            return
        device = value.device
        rows, queries, keys, sets = (
            t.to(device) for t in (self._rows, self._queries, self._keys, self._set)
        )
        start = at.real.long().argmax(-1).to(device)[rows]  # padding may be on the left
        weights = value[rows, :, queries + start, keys + start].float()  # (P, H)
        maxima = torch.zeros(len(self._cell), heads, device=device)
        where = sets[:, None].expand(-1, heads)
        maxima.scatter_reduce_(0, where, weights, "amax")  # from 0: weights are not negative
        self._sum[:, at.layer].index_add_(0, self._cell, maxima.double().cpu())

    def means(self) -> NDArray[np.float32]:
        """(cells, layers, heads); NaN for cells without any aim."""
        mean: NDArray[np.float32] = (self._sum / self._count[:, None, None]).float().numpy()
        return mean
