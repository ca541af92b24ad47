"""How large dimensions of the residual stream are, in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.model.shape import Shape
from bertology.model.site_context import SiteContext


class MeanMagnitude:
    """Mean and largest absolute value of each dimension over real tokens, by layer.

    For sites such as `layer.*.residual`. Layers that it never sees are NaN, and 0 at most.
    """

    def __init__(self, shape: Shape) -> None:
        self._sum = torch.zeros(shape.layers, shape.hidden, dtype=torch.float64)
        self._count = torch.zeros(shape.layers, dtype=torch.float64)
        self._largest = torch.zeros(shape.layers, shape.hidden)

    def update(self, value: Tensor, at: SiteContext) -> None:
        """Add one layer of one batch: (B, T, width)."""
        real = at.real.float()  # (B, T)
        size = value.float().abs() * real[..., None]
        self._sum[at.layer] += size.sum((0, 1)).double().cpu()
        self._count[at.layer] += float(real.sum())
        self._largest[at.layer] = torch.maximum(self._largest[at.layer], size.amax((0, 1)).cpu())

    def mean(self) -> NDArray[np.float64]:
        """(layers, width)"""
        found: NDArray[np.float64] = (self._sum / self._count[:, None]).numpy()
        return found

    def largest(self) -> NDArray[np.float32]:
        """(layers, width)"""
        found: NDArray[np.float32] = self._largest.numpy()
        return found


@dataclass(frozen=True)
class SumsOfTexts:
    """Sums over the tokens of each text, each (B, layers, D)."""

    size: NDArray[np.float32]  # Σ |x|
    square: NDArray[np.float32]  # Σ x²
    product: NDArray[np.float32]  # Σ |x| f


class DimensionSums:
    """What means and correlations of a few dimensions are made of, text by text.

    `tokens` (B, T) are the tokens that count, `number` (B, T) is a number of each, such as the
    logarithm of its frequency.
    """

    def __init__(self, dimensions: Sequence[int], tokens: Tensor, number: Tensor) -> None:
        self._dimensions, self._tokens, self._number = list(dimensions), tokens, number
        self._found: dict[int, tuple[Tensor, Tensor, Tensor]] = {}

    def update(self, value: Tensor, at: SiteContext) -> None:
        """Take one layer: (B, T, width)."""
        count = self._tokens.to(value.device).float()
        size = value[..., self._dimensions].float().abs()  # (B, T, D)
        weights = (count, count * self._number.to(value.device).float())
        sums = (
            torch.einsum("btd,bt->bd", size, weights[0]),
            torch.einsum("btd,bt->bd", size * size, weights[0]),
            torch.einsum("btd,bt->bd", size, weights[1]),
        )
        self._found[at.layer] = tuple(s.cpu() for s in sums)  # type: ignore[assignment]

    def value(self) -> SumsOfTexts:
        """All layers together."""
        layers = [self._found[i] for i in sorted(self._found)]
        return SumsOfTexts(*(torch.stack(t, dim=1).numpy() for t in zip(*layers, strict=True)))
