"""How large each dimension of the residual stream is, in one pass."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.model.shape import Shape
from bertology.model.site_context import SiteContext

__all__ = ["MeanMagnitude"]


class MeanMagnitude:
    """Mean absolute value of each dimension over real tokens, by layer.

    For sites such as `layer.*.residual`. Layers that it never sees are NaN.
    """

    def __init__(self, shape: Shape) -> None:
        self._sum = torch.zeros(shape.layers, shape.hidden, dtype=torch.float64)
        self._count = torch.zeros(shape.layers, dtype=torch.float64)

    def update(self, value: Tensor, at: SiteContext) -> None:
        """Add one layer of one batch: (B, T, width)."""
        real = at.real.float()  # (B, T)
        self._sum[at.layer] += torch.einsum("btm,bt->m", value.float().abs(), real).double().cpu()
        self._count[at.layer] += float(real.sum())

    def mean(self) -> NDArray[np.float64]:
        """(layers, width)"""
        found: NDArray[np.float64] = (self._sum / self._count[:, None]).numpy()
        return found
