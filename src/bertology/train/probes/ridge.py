"""Ridge regression in closed form, and which penalty on large weights it has.

`fit_ridge`: a number from the states of all layers at once. Features are scaled to a spread of one
on what is learnt from. The penalty is that of a mean: of scikit-learn's Ridge, `alpha` is n times
as much. Each layer gets the penalty that errs least on other rows (dev).

`cross_fitted`: one layer, and every part is scored by a probe of the others. How strong the penalty
is, and so which of several layers tells most, is decided on one further part that was not seen
either. Products of features are added up once for each part, so that all probes of a layer cost
little more than one. `probe_answers` asks so whether two occurrences of a word have the same sense;
`threshold_answers` asks the cosine of their states.

`held_out_leanings`: yes-or-no questions, each answered by probes that saw nothing of its fold.
Which examples are a fold is the question's own matter: some paradigms, or all of one environment,
so that what is asked there was never seen. Probes are ridge classifiers: least squares on yes (1)
and no (-1) with a penalty on large weights, as scikit-learn's `RidgeClassifier`. Their answers to
examples that did not train are exact and need one inversion for each layer, however many folds and
questions there are: what a fold's own answers pulled is taken out again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.arrays import Bools, Floats, Ints

PENALTIES = tuple(10.0**power for power in range(-5, 4))
_FLAT = 1e-6  # a feature with less spread is constant
PENALTY = 40.0
FOLD_PENALTIES = (0.01, 0.1, 1.0, 10.0)
"""For each example, in units of a feature's variance."""


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


def held_out_leanings(
    vectors: NDArray[np.float32], labels: NDArray[np.int64], folds: NDArray[np.int64]
) -> NDArray[np.float32]:
    """(questions, layers, N): what probes lean to where they did not train; above 0 is yes.

    `vectors` are (layers, N, width); `labels` (N, questions) are 1 for yes and 0 for no; `folds`
    (N, questions) are numbers from 0, negative for examples that are not scored. NaN where nothing
    is scored, or where the rest has one answer only.
    """
    layers, n, _ = vectors.shape
    found = np.full((labels.shape[1], layers, n), np.nan, np.float32)
    truth = 2.0 * labels - 1
    for layer, states in enumerate(vectors):
        given, fit = _fitted(states.astype(np.float64))  # (N, D + 1), (D + 1, N)
        pulled = given @ (fit @ truth)
        for question in range(labels.shape[1]):
            for fold in np.unique(folds[:, question]):
                here = folds[:, question] == fold
                if fold < 0 or len(np.unique(labels[~here, question])) < 2:
                    continue
                own = given[here] @ fit[:, here]
                missed = (truth - pulled)[here, question]
                without = np.linalg.solve(np.eye(len(own)) - own, missed)
                found[question, layer, here] = truth[here, question] - without
    return found


def _fitted(states: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Standardised states with a constant, and the weights (D + 1, N) by which answers fit."""
    spread = states.std(axis=0)
    standard = (states - states.mean(axis=0)) / np.where(spread > 1e-6, spread, 1.0)
    given = np.column_stack([standard, np.ones(len(states))])
    penalty = np.full(given.shape[1], PENALTY)
    penalty[-1] = 0.0  # the constant is free
    return given, np.linalg.solve(given.T @ given + np.diag(penalty), given.T)


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
    penalties: Sequence[float] = FOLD_PENALTIES,
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


def cosines(first: NDArray[np.generic], second: NDArray[np.generic]) -> Floats:
    """Of states (…, N, width), pair by pair."""
    a, b = (of.astype(np.float64) for of in (first, second))
    lengths = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    return np.asarray((a * b).sum(axis=-1) / np.maximum(lengths, 1e-12))


def threshold_answers(near: Floats, same: Bools, parts: Sequence[tuple[Ints, Ints]]) -> Bools:
    """(layers, N): whether the answers of each part are right, of cosines (layers, N).

    `parts` are (asked, taught). A pair is called the same at or above the threshold that gives
    most right answers where it is taught; of equally good ones, the lowest.
    """
    found = np.zeros(near.shape, bool)
    for asked, taught in parts:
        for layer, of in enumerate(near):
            at = _threshold(of[taught], same[taught])
            found[layer, asked] = (of[asked] >= at) == same[asked]
    return found


def _threshold(near: Floats, same: Bools) -> float:
    values, which = np.unique(near, return_inverse=True)
    yes, no = (np.bincount(which, weights=of, minlength=len(values)) for of in (same, ~same))
    # Called the same: the value at a place and all above it.
    right = np.append(yes[::-1].cumsum()[::-1], 0) + np.append(0, no.cumsum())
    return float(np.append(values, np.inf)[int(right.argmax())])


def probe_answers(
    first: NDArray[np.generic],
    second: NDArray[np.generic],
    same: Bools,
    folds: Ints,
    taught: Bools,
    *,
    device: torch.device | str = "cpu",
) -> Bools:
    """(layers, N): whether a linear probe of |u − v| and u · v answers right, fold by fold.

    Features are cut to single precision; the penalty is chosen on one more fold that did not
    train.
    """
    found = np.zeros(first.shape[:2], bool)
    parts = [torch.from_numpy(np.flatnonzero(folds == of)).to(device) for of in np.unique(folds)]
    labels = torch.from_numpy(np.where(same, 1.0, -1.0)).float().to(device)
    trains = torch.from_numpy(taught).to(device)
    for layer, (u, v) in enumerate(zip(first, second, strict=True)):
        features = _features(torch.from_numpy(u).to(device), torch.from_numpy(v).to(device))
        made = cross_fitted(features, labels[:, None].expand(-1, len(parts)), parts, trains=trains)
        found[layer] = (made.scores >= 0) == same
    return found


def _features(u: Tensor, v: Tensor) -> Tensor:
    a, b = (x.float() / x.float().norm(dim=-1, keepdim=True).clamp_min(1e-12) for x in (u, v))
    one = torch.ones(len(a), 1, device=a.device)
    return torch.cat([standardised(torch.cat([(a - b).abs(), a * b], dim=1)), one], dim=1)
