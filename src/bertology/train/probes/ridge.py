"""Ridge regression of a number on the states of all layers at once, in closed form.

Features are scaled to a spread of one on what is learnt from. The penalty is that of a mean: of
scikit-learn's Ridge, `alpha` is n times as much. Each layer gets the penalty that errs least on
other rows (dev).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

PENALTIES = tuple(10.0**power for power in range(-5, 4))
_FLAT = 1e-6  # a feature with less spread is constant


@dataclass(frozen=True)
class RidgeLayers:
    """One fit for each layer."""

    mean: Tensor  # (L, 1, D)
    spread: Tensor  # (L, 1, D)
    weights: Tensor  # (L, D, 1)
    intercept: float
    penalty: Tensor  # (L,)
    dev_error: Tensor  # (L,), mean squares

    def __call__(self, rows: Tensor) -> Tensor:
        """(L, n, D) rows as (L, n) numbers."""
        scaled = (rows.double() - self.mean) / self.spread
        return (scaled @ self.weights)[..., 0] + self.intercept


def fit_ridge(
    rows: Tensor, wanted: Tensor, dev_rows: Tensor, dev_wanted: Tensor, *, centred: bool = False
) -> RidgeLayers:
    """Fit (L, n, D) to (n,), with the penalty of each layer that errs least on dev.

    With `centred`, rows and numbers are deviations already: neither has its mean taken off.
    """
    x, y = rows.double(), wanted.double()
    mean = torch.zeros_like(x[:, :1]) if centred else x.mean(dim=1, keepdim=True)
    spread = (x - mean).square().mean(dim=1, keepdim=True).sqrt()  # (L, 1, D)
    spread = torch.where(spread < _FLAT, torch.ones_like(spread), spread)
    intercept = 0.0 if centred else float(y.mean())
    scaled = (x - mean) / spread  # (L, n, D)
    values, vectors = torch.linalg.eigh(scaled.mT @ scaled / len(y))  # (L, D), (L, D, D)
    along = vectors.mT @ (scaled.mT @ (y - intercept) / len(y))[..., None]  # (L, D, 1)
    penalties = torch.tensor(PENALTIES, dtype=torch.float64, device=x.device)
    # (L, D, P): weights along the principal axes under each penalty
    axes = along / (values.clamp_min(0)[..., None] + penalties)
    turned = (dev_rows.double() - mean) / spread @ vectors  # (L, m, D)
    errors = (turned @ axes + intercept - dev_wanted.double()[:, None]).square().mean(dim=1)
    best = errors.argmin(dim=1)  # (L,)
    layers = torch.arange(len(best), device=x.device)
    weights = vectors @ axes[layers, :, best][..., None]
    return RidgeLayers(mean, spread, weights, intercept, penalties[best], errors[layers, best])
