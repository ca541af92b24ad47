"""Ridge regression of one layer, cross-fitted: every part is scored by a probe of the others.

How strong the penalty is, and so which of several layers tells most, is decided on one further part
that was not seen either.
Products of features are added up once for each part, so that all probes of a layer cost little more
than one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

PENALTIES = (0.01, 0.1, 1.0, 10.0)
"""For each example, in units of a feature's variance."""


@dataclass(frozen=True)
class Ridge:
    """Scores of all examples, and how much of the labels' variance each fold's inner probe told."""

    scores: NDArray[np.float64]  # (N,)
    inner: NDArray[np.float64]  # (N,) of the part on which the penalty was chosen, by its probe
    told: NDArray[np.float64]  # (folds,) share of the variance, of the inner part


def standardised(features: Tensor) -> Tensor:
    """(N, d) with mean 0 and variance 1; what does not vary is 0."""
    away = features - features.mean(dim=0)
    spread = away.std(dim=0, unbiased=False)
    return away / torch.where(spread > 1e-6 * spread.max().clamp_min(1e-30), spread, torch.inf)


def cross_fitted(
    features: Tensor,
    labels: Tensor,
    parts: Sequence[Tensor],
    *,
    trains: Tensor | None = None,
    penalties: Sequence[float] = PENALTIES,
) -> Ridge:
    """Of features (N, d) and labels (N, folds), which may differ by the fold that is left out.

    `parts` are the examples of each fold; the fold after the one that is scored chooses the
    penalty. `trains` (N,): what may train or choose; all are scored.
    """
    usable = torch.ones(len(features), dtype=torch.bool, device=features.device)
    usable = usable if trains is None else trains
    taught = [at[usable[at]] for at in parts]
    products = [features[at].T @ features[at] for at in taught]  # (d, d) each
    whole = torch.stack(products).sum(dim=0)
    scores, inner = (np.full(len(features), np.nan) for _ in range(2))
    told = np.zeros(len(parts))
    every = torch.arange(len(features), device=features.device)
    for fold, test in enumerate(parts):
        chosen = (fold + 1) % len(parts)
        y = labels[:, fold]
        seen = usable & ~torch.isin(every, test)
        training = every[seen & ~torch.isin(every, taught[chosen])]
        inner_products = whole - products[fold] - products[chosen]
        tried = torch.stack(
            [_said(features, y, training, inner_products, c, taught[chosen]) for c in penalties]
        )
        errors = ((tried - y[taught[chosen]]) ** 2).mean(dim=1)
        best = int(errors.argmin())
        spread = y[taught[chosen]].var(unbiased=False).clamp_min(1e-12)
        told[fold] = 1 - float(errors[best] / spread)
        inner[taught[chosen].cpu().numpy()] = tried[best].cpu().double().numpy()
        own = _said(features, y, every[seen], whole - products[fold], penalties[best], test)
        scores[test.cpu().numpy()] = own.cpu().double().numpy()
    return Ridge(scores, inner, told)


def _said(
    features: Tensor, labels: Tensor, training: Tensor, products: Tensor, penalty: float, of: Tensor
) -> Tensor:
    """Scores of some examples by the probe of others, whose products are known."""
    mean = labels[training].mean()
    pulled = features[training].T @ (labels[training] - mean)
    ridge = products + penalty * len(training) * torch.eye(len(products), device=products.device)
    weights = torch.cholesky_solve(pulled[:, None], torch.linalg.cholesky(ridge))[:, 0]
    return mean + features[of] @ weights
