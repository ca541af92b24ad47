"""Whether training moved the last two layers more than the others, and more than noise would."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bertology.stats import Estimate
from bertology.stats.partial_means import PartialMeans
from bertology.studies.designs.noise import beyond_noise

__all__ = ["LAST", "last_layers"]

LAST = 2  # the layers that claims are about
Floats = NDArray[np.float64]


def last_layers(
    change: Floats, noise: Floats, matched: Floats, means: Callable[[Floats], PartialMeans]
) -> dict[str, Estimate | None]:
    """What the last two layers changed beyond the others, and beyond what noise does.

    `change` is (examples, layers); `noise` and, in the same examples, `matched` are (copies,
    layers). Against the largest other layer, the lower bound is the lowest of all comparisons'
    own, since all must be led (an intersection–union test); the upper one is corrected for
    their number. `means` gives means of rows over examples, with their bounds.
    """
    if change.shape[1] <= LAST:
        return {}
    # As large as the training's change over all layers: where it went is the question.
    size, moved = (profile.mean(axis=1, keepdims=True) for profile in (matched, noise))
    scaled = noise * (size / np.maximum(moved, 1e-30))
    found = dict[str, Estimate | None]()
    for name, contrasts in (
        ("last_two_over_mean", _over_mean),
        ("last_two_over_largest", _over_each),
        ("each_of_last_two_over_largest", _each_over_each),
    ):
        over = means(contrasts(change)).smallest()  # of (comparisons, examples)
        if over is not None:
            trained, noisy = (contrasts(p).min(axis=0) for p in (matched, scaled))
            found[name] = beyond_noise(over, trained, noisy)
    return found


def _over_mean(change: Floats) -> Floats:
    """(1, rows): the last two layers less the mean of the others."""
    found: Floats = (change[:, -LAST:].mean(1) - change[:, :-LAST].mean(1))[None]
    return found


def _over_each(change: Floats) -> Floats:
    """(others, rows): the last two layers less each other one."""
    found: Floats = (change[:, -LAST:].mean(1, keepdims=True) - change[:, :-LAST]).T
    return found


def _each_over_each(change: Floats) -> Floats:
    """(2 · others, rows): each of the last two less each other one."""
    last, others = change[:, -LAST:], change[:, :-LAST]
    found: Floats = (last[:, :, None] - others[:, None]).reshape(len(change), -1).T
    return found
