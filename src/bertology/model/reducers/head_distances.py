"""How far apart heads are: the Jensen–Shannon divergence of what they attend to, for all pairs.

Clark et al. (2019), section 6. The maps of one piece of a batch are held, never those of a corpus.
With p and q the two distributions of a query and m their mean, the divergence is the mean of
Σ p log p and Σ q log q, less Σ m log m: only the last needs a logarithm for each pair of heads, and
there both orders are the same, so each pair is looked at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.model.shape import Shape
from bertology.model.site_context import SiteContext

_AT_ONCE = 2**18  # weights of pairs of maps on a CPU: what its caches hold
_AT_ONCE_ON_A_GPU = 2**26
_LEAST = 1e-30  # so that 0 · log 0 is 0


@dataclass(frozen=True)
class LayerDistances:
    """Divergences in nats, mean over the tokens of each text."""

    total: NDArray[np.float64]
    """(K, K) of all heads, layer by layer: the sum over texts."""
    within: NDArray[np.float64]
    """(B, layers): of heads of the layer from each other, mean over pairs."""
    between: NDArray[np.float64]
    """(B, layers): of heads of the layer from those of all other layers."""


class HeadDistances:
    """A reducer that holds the maps of one piece of a batch until all layers were seen."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._layers: dict[int, Tensor] = {}
        self._found: LayerDistances | None = None

    def update(self, value: Tensor, at: SiteContext) -> None:
        """Take one layer: (B, H, T, S). After the last one maps are compared and let go."""
        self._layers[at.layer] = value
        if len(self._layers) == self._shape.layers:
            self._found = self._compared(at.real)
            self._layers = {}

    def value(self) -> LayerDistances:
        """Of all pairs of heads, once all layers were seen."""
        if self._found is None:
            raise ValueError("not all layers were seen yet")
        return self._found

    def _compared(self, every: Tensor) -> LayerDistances:
        layers, heads = self._shape.layers, self._shape.heads
        held = [self._layers[i] for i in sorted(self._layers)]
        total = np.zeros((layers * heads, layers * heads))
        within, between = (np.full((len(every), layers), np.nan) for _ in range(2))
        for row, real in enumerate(every):
            there = torch.flatten(torch.nonzero(real))
            maps = torch.stack([layer[row] for layer in held])  # (layers, H, T, S)
            maps = maps[:, :, there][..., there].float().reshape(layers * heads, -1)
            found = _divergences(maps, len(there)).double().cpu().numpy()
            total += found
            blocks = found.reshape(layers, heads, layers, heads).sum((1, 3))
            own = blocks.diagonal()
            if heads > 1:
                within[row] = own / (heads * (heads - 1))
            if layers > 1:
                between[row] = (blocks.sum(1) - own) / (heads * heads * (layers - 1))
        return LayerDistances(total, within, between)


def _divergences(maps: Tensor, tokens: int) -> Tensor:
    """(K, K) of maps (K, cells), mean over queries; exactly 0 on the diagonal."""
    k, cells = maps.shape
    own = _surprise(maps)  # (K,)
    limit = _AT_ONCE if maps.device.type == "cpu" else _AT_ONCE_ON_A_GPU
    mixed = maps.new_zeros(k, k)
    start = 0
    while start < k:
        stop = min(k, start + max(1, limit // ((k - start) * cells)))
        # Of p + q, which is twice the mean: log 2 is added below, once for each query.
        mixed[start:stop, start:] = _surprise(maps[start:stop, None] + maps[None, start:]) / 2
        start = stop
    mixed = torch.triu(mixed, 1)
    mixed = mixed + mixed.T
    found = ((own[:, None] + own) / 2 - mixed) / tokens + math.log(2)
    return found.clamp_(0, math.log(2)).fill_diagonal_(0)


def _surprise(values: Tensor) -> Tensor:
    """Σ x log x over the last axis."""
    return values.clamp_min(_LEAST).log_().mul_(values).sum(-1)
