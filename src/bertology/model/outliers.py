"""Outlier dimensions of the residual stream, as in BERT Busters (Kovaleva et al. 2021).

A dimension can be an outlier in two ways, and often the same few dimensions are outliers in both:
the weight or the bias of a layer's output LayerNorm is far from those of the other dimensions (this
needs no text), or its activations are large (this is measured on text). To set dimensions to zero,
run with `ZeroDimensions`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.model.reducers.magnitudes import MeanMagnitude

if TYPE_CHECKING:
    from bertology.model.batch import Batch
    from bertology.model.encoder import Encoder

__all__ = [
    "SIGMA",
    "LargeDimensions",
    "large_dimensions",
    "norm_outliers",
    "norm_sigmas",
    "sigmas_from_mean",
]

SIGMA = 3.0
"""How many standard deviations from the mean of all dimensions make an outlier."""

_RESIDUAL = "layer.*.residual"
_TINY = 1e-12

Floats = NDArray[np.floating]


@dataclass(frozen=True)
class LargeDimensions:
    """Dimensions whose activations are large."""

    magnitudes: NDArray[np.float64]
    """(layers, hidden) mean |activation| over tokens."""
    large: NDArray[np.bool_]
    """(layers, hidden) true where that lies more than `SIGMA` σ above the mean of the layer."""

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
        layers = len(self.large)
        return min(layers, max(2, layers // 4))

    def in_several_layers(self) -> list[int]:
        """The dimensions that are large in `enough_layers` layers, the largest first."""
        chosen = np.flatnonzero(self.large.sum(axis=0) >= self.enough_layers)
        return sorted(chosen.tolist(), key=lambda dimension: -self.mean[dimension])


def large_dimensions(encoder: Encoder, batches: Iterable[Batch]) -> LargeDimensions:
    """Run the model and find the dimensions of the residual stream that are large, by layer."""
    magnitude = MeanMagnitude(encoder.shape)
    for batch in batches:
        encoder.run(batch, reduce={_RESIDUAL: magnitude})
    mean = magnitude.mean()
    return LargeDimensions(mean, sigmas_from_mean(mean) > SIGMA)


def norm_outliers(encoder: Encoder) -> NDArray[np.bool_] | None:
    """(layers, hidden) true where the output LayerNorm has an outlying weight or bias.

    More than `SIGMA` σ above or below the mean of all dimensions of that layer, the rule of
    Kovaleva et al. (2021). None for families without such a LayerNorm.
    """
    sigmas = norm_sigmas(encoder)
    return None if sigmas is None else sigmas > SIGMA


def norm_sigmas(encoder: Encoder) -> NDArray[np.float32] | None:
    """(layers, hidden) how many σ the output LayerNorm's weight or bias, the farther, is away."""
    stack = encoder.family.stacks[encoder.family.main_stack]
    if "norms" not in encoder.capabilities or "output" not in stack.norms:
        return None
    found = np.zeros((encoder.shape.layers, encoder.shape.hidden), dtype=np.float32)
    for layer, row in enumerate(found):
        norm = encoder.module(stack.norms["output"], layer)
        for part in ("weight", "bias"):
            values = getattr(norm, part, None)
            if values is not None and values.shape == row.shape:
                away = np.abs(sigmas_from_mean(values.detach().float().cpu().numpy()))
                np.maximum(row, away, out=row)
    return found


def sigmas_from_mean(values: Floats) -> Floats:
    """How many standard deviations each value lies above the mean along the last axis."""
    spread = values.std(axis=-1, keepdims=True)
    found: Floats = (values - values.mean(axis=-1, keepdims=True)) / np.maximum(spread, _TINY)
    return found
