"""Mean attention maps over texts of different lengths, on a grid of relative positions."""

from __future__ import annotations

import torch
from torch import Tensor

from bertology.errors import CapabilityError, ParameterError
from bertology.model.shape import Shape
from bertology.model.site_context import SiteContext


class RelativeMaps:
    """Where each head looks on average, from the start (0) to the end (1) of the text.

    Every example is laid over `size` × `size` cells: a query's row counts in the cells that its
    token covers, and a key's weight is shared among the cells that its token covers. So each row
    of a mean map still sums to 1, and every example has the same weight. Give it all heads of
    every layer it is asked about; layers it never sees are NaN.
    """

    def __init__(self, shape: Shape, size: int = 16) -> None:
        if size < 2:
            raise ParameterError("size", "RelativeMaps", "be at least 2", size)
        self.size = size
        self._sum = torch.zeros(shape.layers, shape.heads, size, size, dtype=torch.float64)
        self._examples = torch.zeros(shape.layers, dtype=torch.float64)

    def update(self, value: Tensor, at: SiteContext) -> None:
        """Add one layer of one batch: (B, H, T, S)."""
        heads = self._sum.shape[1]
        if value.shape[1] != heads:
            raise CapabilityError(
                f"RelativeMaps needs all {heads} heads of a layer and was given {value.shape[1]}.",
                hint="Name the site with head.*",
            )
        covered = _covered(at.real, self.size)  # (B, size, T)
        rows = covered / covered.sum(-1, keepdim=True)
        shares = covered / covered.sum(1, keepdim=True).clamp_min(1e-12)
        laid = rows[:, None] @ value.float() @ shares[:, None].transpose(-1, -2)
        self._sum[at.layer] += laid.sum(0).double().cpu()
        self._examples[at.layer] += value.shape[0]

    def sums(self) -> tuple[Tensor, int]:
        """Sums (layers, heads, size, size) over examples, and their number."""
        return self._sum, int(self._examples.max())

    @property
    def mean(self) -> Tensor:
        """(layers, heads, size, size)"""
        return self._sum / self._examples[:, None, None, None]


def _covered(real: Tensor, size: int) -> Tensor:
    """(B, size, T) how much of each cell each real token covers, in cells."""
    mask = real.float()
    length = mask.sum(-1, keepdim=True)  # (B, 1)
    # Padding may be on either side; the text's own positions count.
    start = (mask.cumsum(-1) - 1) / length * size  # (B, T)
    end = start + size / length
    low = torch.arange(size, device=real.device, dtype=mask.dtype)[:, None]  # (size, 1)
    overlap = torch.minimum(end[:, None], low + 1) - torch.maximum(start[:, None], low)
    return overlap.clamp_min(0) * mask[:, None]
