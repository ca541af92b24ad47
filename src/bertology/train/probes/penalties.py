"""Probes with the penalty on large weights that is best on held-out examples.

Penalties fall from one above that which a probe has, for as long as held-out examples are told
better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from bertology.train.probes.classifiers import Pass, Probes, mean_losses

DECAYS = (1e-2, 1e-3, 1e-4)
"""Beside the mean loss, where training is stopped early."""
PRECISIONS = (1000.0, 200.0, 40.0, 8.0, 1.6)
"""Beside the sum of losses: a belief about weights, right for few examples and for many."""

Train = Callable[[Sequence[Tensor], Sequence[Tensor]], None]
"""Trains those probes that go, each (L, P), with the penalties given, each (L, P)."""


def fitted(
    probes: Sequence[Probes],
    train: Train,
    held: Pass,
    *,
    path: Sequence[float],
    onward: bool = True,
) -> None:
    """Fit all probes, of which `level` says where on the path of penalties they are.

    The penalty above it, and those below, are tried. `onward`: with the next penalty each one
    starts where the last brought it, which is right where there is one best place; else where it
    was before.
    """
    started = [[weight.clone() for weight in one.weights] for one in probes]
    best = [torch.full_like(one.level, torch.inf, dtype=torch.float64) for one in probes]
    kept = [[weight.clone() for weight in one.weights] for one in probes]
    tried = [(one.level - 1).clamp_min(0) for one in probes]
    going = [torch.ones_like(one.level, dtype=torch.bool) for one in probes]
    sizes = torch.tensor(path, device=tried[0].device)
    while any(bool(of.any()) for of in going):
        train([sizes[of] for of in tried], going)
        found = mean_losses(probes, held())
        for number, one in enumerate(probes):
            better = going[number] & (found[number] < best[number])
            best[number] = torch.where(better, found[number], best[number])
            one.level = torch.where(better, tried[number], one.level)
            for weight, of in zip(one.weights, kept[number], strict=True):
                of[better] = weight[better]
            going[number] = better & (tried[number] + 1 < len(path))
            tried[number] = tried[number] + going[number]
            if not onward:
                _copy(started[number], one.weights)
    for one, best_of in zip(probes, kept, strict=True):
        _copy(best_of, one.weights)


def kept_up(probes: Sequence[Probes], train: Train, *, path: Sequence[float]) -> None:
    """Fit all probes with the penalties that they have."""
    sizes = torch.tensor(path, device=probes[0].level.device)
    going = [torch.ones_like(one.level, dtype=torch.bool) for one in probes]
    train([sizes[one.level] for one in probes], going)


def _copy(weights: Sequence[Tensor], into: Sequence[Tensor]) -> None:
    for weight, place in zip(weights, into, strict=True):
        place.copy_(weight)
