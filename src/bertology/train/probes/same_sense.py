"""Do two occurrences have the same sense? By a threshold of their cosine, and by a probe."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.train.probes.ridge import cross_fitted, standardised

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


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
