"""Whether training moved the last two layers more than the others, and more than noise would."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertology.stats import Estimate
from bertology.stats.partial_means import PartialMeans
from bertology.studies.designs.noise import ExampleErrors, beyond_noise

LAST = 2  # the layers that claims are about
_STEP = 1e-6  # of a derivative, as a share of what an example does
Floats = NDArray[np.float64]
Contrasts = Callable[[Floats], Floats]


@dataclass(frozen=True)
class ProfileInfluences:
    """What each example does to profiles of change: (examples, copies, layers) each."""

    noise: Floats
    matched: Floats
    unit: str


def last_layers(
    change: Floats,
    noise: Floats,
    matched: Floats,
    means: Callable[[Floats], PartialMeans],
    influences: ProfileInfluences | None = None,
) -> dict[str, Estimate | None]:
    """What the last two layers changed beyond the others, and beyond what noise does.

    `change` is (examples, layers); `noise` and, in the same examples, `matched` are (copies,
    layers). Against the largest other layer, the lower bound is the lowest of all comparisons'
    own, since all must be led (an intersection–union test); the upper one is corrected for
    their number. `means` gives means of rows over examples, with their bounds. With `influences`,
    what examples do to "trained less noise" is told apart from what noise does.
    """
    if change.shape[1] <= LAST:
        return {}
    found = dict[str, Estimate | None]()
    for name, contrasts in (
        ("last_two_over_mean", _over_mean),
        ("last_two_over_largest", _over_each),
        ("each_of_last_two_over_largest", _each_over_each),
    ):
        over = means(contrasts(change)).smallest()  # of (comparisons, examples)
        if over is not None:
            trained, noisy = _both(contrasts, matched, noise)
            errors = None
            if influences is not None:
                over = over.counting(influences.unit)
                errors = _errors(contrasts, matched, noise, influences)
            found[name] = beyond_noise(over, trained, noisy, errors)
    return found


def _both(contrasts: Contrasts, matched: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """(rows,) each: the smallest difference of the trained model, and of scaled noise."""
    scaled = as_large_as(matched, noise)
    return contrasts(matched).min(axis=0), contrasts(scaled).min(axis=0)


def as_large_as(matched: Floats, noise: Floats) -> Floats:
    """(copies, layers): noise as large as the training's change over all layers.

    Where the change went is the question, and not how much of it there is.
    """
    size, moved = (profile.mean(axis=1, keepdims=True) for profile in (matched, noise))
    scaled: Floats = noise * (size / np.maximum(moved, 1e-30))
    return scaled


def _errors(
    contrasts: Contrasts, matched: Floats, noise: Floats, influences: ProfileInfluences
) -> ExampleErrors:
    """By a derivative along what each example does, so that all steps above are in it."""
    trained, noisy = _both(contrasts, matched, noise)
    found = []
    for of_matched, of_noise in zip(influences.matched, influences.noise, strict=True):
        moved = _both(contrasts, matched + _STEP * of_matched, noise + _STEP * of_noise)
        found.append((moved[0] - moved[1] - trained + noisy) / _STEP)
    return ExampleErrors.of(np.array(found), influences.unit)


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
