"""Outlier dimensions of the residual stream, as in BERT Busters (Kovaleva et al. 2021).

A dimension can be an outlier in two ways, and often the same few dimensions are outliers in both:
the weights of the last operation of a layer are far from those of the other dimensions (this needs
no text), or its activations are large (this is measured on text). The last operation is the output
LayerNorm, with a scale and a bias for each dimension; in families whose norms come first in a layer
(GPT-2) it is the MLP's last map, with a row of weights and a bias.

This is the one place where outliers are found: the study `outlier-dimensions` and the explorer both
ask here. To set what a layer has for them to zero, run with `ZeroLastOperation`; to set the
dimensions themselves to zero, with `ZeroDimensions`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from bertology.model.reducers.magnitudes import MeanMagnitude

if TYPE_CHECKING:
    from bertology.model.batch import Batch
    from bertology.model.encoder import Encoder

SIGMA = 3.0
"""How many standard deviations from the mean of all dimensions make an outlier."""

MOST = 0.5
"""The share of the layers that counts as most of them."""

_RESIDUAL = "layer.*.residual"
_TINY = 1e-12

Floats = NDArray[np.floating]


@dataclass(frozen=True)
class WeightOutliers:
    """How far the weights of each layer's last operation lie from those of other dimensions."""

    sigmas: NDArray[np.float32]
    """(layers, hidden) by how many σ the scale or the bias, the farther, lies from the mean."""
    distinct: tuple[int, ...]
    """Layers with weights of their own; in ALBERT several layers share theirs."""

    @property
    def outlying(self) -> NDArray[np.bool_]:
        """(layers, hidden)"""
        return self.sigmas > SIGMA

    def in_most_layers(self, share: float = MOST) -> list[int]:
        """The dimensions that are outliers in this share of the layers, the farthest first."""
        enough = max(1, math.ceil(share * len(self.sigmas)))
        chosen = np.flatnonzero(self.outlying.sum(axis=0) >= enough)
        return sorted(chosen.tolist(), key=lambda d: -float(self.sigmas[:, d].mean()))


@dataclass(frozen=True)
class LargeDimensions:
    """Dimensions whose activations are large."""

    magnitudes: NDArray[np.float64]
    """(layers, hidden) mean |activation| over tokens."""
    largest: NDArray[np.float32]
    """(layers, hidden) the largest |activation| of any token."""

    @property
    def large(self) -> NDArray[np.bool_]:
        """(layers, hidden) true where the mean lies more than `SIGMA` σ above that of the layer."""
        return np.asarray(sigmas_from_mean(self.magnitudes) > SIGMA)

    @property
    def mean(self) -> NDArray[np.float64]:
        """(hidden,) the mean magnitude over layers."""
        found: NDArray[np.float64] = self.magnitudes.mean(axis=0)
        return found

    @property
    def ratio_to_median(self) -> NDArray[np.float64]:
        """(hidden,) the mean magnitude as a multiple of the median dimension's."""
        return self.mean / max(float(np.median(self.mean)), _TINY)

    @property
    def enough_layers(self) -> int:
        """A quarter of the layers, but at least two (or the only one)."""
        layers = len(self.magnitudes)
        return min(layers, max(2, layers // 4))

    def in_several_layers(self) -> list[int]:
        """The dimensions that are large in `enough_layers` layers, the largest first."""
        return self._in_layers(self.enough_layers)

    def in_most_layers(self, share: float = MOST) -> list[int]:
        """The dimensions that are large in this share of the layers, the largest first."""
        return self._in_layers(max(1, math.ceil(share * len(self.magnitudes))))

    def _in_layers(self, enough: int) -> list[int]:
        chosen = np.flatnonzero(self.large.sum(axis=0) >= enough)
        return sorted(chosen.tolist(), key=lambda dimension: -self.mean[dimension])


def large_dimensions(encoder: Encoder, batches: Iterable[Batch]) -> LargeDimensions:
    """Run the model and find the dimensions of the residual stream that are large, by layer."""
    magnitude = MeanMagnitude(encoder.shape)
    for batch in batches:
        encoder.run(batch, reduce={_RESIDUAL: magnitude})
    return LargeDimensions(magnitude.mean(), magnitude.largest())


def weight_outliers(encoder: Encoder) -> WeightOutliers | None:
    """How far each dimension's weights lie from the mean of all dimensions of that layer.

    None for families whose layers have no last operation with a weight for each dimension.
    """
    name = encoder.family.main_stack
    stack = encoder.family.stacks[name]
    template = stack.mlp if stack.pre_norm else stack.norms.get("output")
    if "norms" not in encoder.capabilities or template is None:
        return None
    modules = [encoder.module(template, layer) for layer in range(encoder.shape.layers)]
    own = {id(module): layer for layer, module in reversed(list(enumerate(modules)))}
    rows = {layer: _farthest(modules[layer], encoder.shape.hidden) for layer in own.values()}
    sigmas = np.stack([rows[own[id(module)]] for module in modules])
    return WeightOutliers(sigmas, tuple(sorted(rows)))


def _farthest(module: torch.nn.Module, width: int) -> NDArray[np.float32]:
    """(width,) of one operation: by how many σ its weight or its bias is away, the farther."""
    found = np.zeros(width, dtype=np.float32)
    for part in ("weight", "bias"):
        given = getattr(module, part, None)
        if not isinstance(given, torch.Tensor):
            continue
        values = given.detach().float()
        if values.dim() == 2:  # as one number for each dimension: how long its weights are
            values = values.norm(dim=1 if hasattr(module, "in_features") else 0)
        if values.shape == found.shape:
            away = np.abs(sigmas_from_mean(values.cpu().numpy()))
            found = np.maximum(found, away.astype(np.float32))
    return found


def sigmas_from_mean(values: Floats) -> Floats:
    """How many standard deviations each value lies above the mean along the last axis."""
    spread = values.std(axis=-1, keepdims=True)
    found: Floats = (values - values.mean(axis=-1, keepdims=True)) / np.maximum(spread, _TINY)
    return found
