"""Probes with the penalty on large weights that is best on held-out examples.

Penalties fall from the largest for as long as held-out examples are told better. A probe that was
fitted before, with fewer examples, goes on with the penalty that it had: more examples do not ask
for a larger one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from bertology.train.probes.classifiers import Pass, Probes, mean_losses

__all__ = ["DECAYS", "PATH", "fitted"]

DECAYS = (1e-2, 1e-3, 1e-4)
PATH = (1.0, 1e-1, *DECAYS)

Train = Callable[[Sequence[Tensor], Sequence[Tensor]], None]
"""Trains those probes that go, each (L, P), with the penalties given, each (L, P)."""


def fitted(
    probes: Sequence[Probes],
    train: Train,
    held: Pass,
    *,
    path: Sequence[float] = PATH,
    search: bool = True,
    onward: bool = True,
) -> None:
    """Fit all probes, of which `level` says where on the path of penalties they are.

    Without `search`, they keep the penalty that they have. `onward`: with the next penalty each one
    starts where the last brought it, which is right where there is one best place; else where it
    was before.
    """
    started = [[weight.clone() for weight in one.weights] for one in probes]
    best = [torch.full_like(one.level, torch.inf, dtype=torch.float64) for one in probes]
    kept = [[weight.clone() for weight in one.weights] for one in probes]
    tried = [one.level.clone() for one in probes]
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
            going[number] = better & (tried[number] + 1 < len(path)) & search
            tried[number] = tried[number] + going[number]
            if not onward:
                _copy(started[number], one.weights)
    for one, of in zip(probes, kept, strict=True):
        _copy(of, one.weights)


def _copy(weights: Sequence[Tensor], into: Sequence[Tensor]) -> None:
    for weight, place in zip(weights, into, strict=True):
        place.copy_(weight)
