"""How wide an optimum is: how far one can go before the loss has risen by so much."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from bertology.arrays import Floats
from bertology.train.landscape.places import around_places, share_places
from bertology.train.landscape.terrain import Terrain, Weights

_REFINED = 5  # more points around the crossing
_BEYOND = (1.5, 2.25, 3.4, 5.0)  # times the reach, where it is not reached within


@dataclass(frozen=True)
class Widths:
    """Losses along directions, and where they have risen by so much in the mean."""

    places: Floats  # (points,) from -reach to reach
    losses: Floats  # (directions, points)
    width: float  # inf where it is far beyond the reach


def measure_widths(
    terrain: Terrain,
    at: Weights,
    directions: Sequence[Mapping[str, Tensor]],
    *,
    rise: float,
    reach: float,
    points: int,
) -> Widths:
    """How far one goes until the loss, in the mean over directions and sides, has risen so much.

    The mean over directions first, and then the crossing: along a single direction the loss may
    never rise.
    """
    places, middle = around_places(reach, points), points // 2
    losses = np.stack([terrain.losses(at, [way], places[:, None]) for way in directions])
    base = float(losses[0, middle])

    def rises(step: float) -> float:
        ends = [terrain.losses(at, [way], [[-step], [step]]) for way in directions]
        return float(np.mean(ends)) - base

    mean = losses.mean(axis=0)
    known = (mean[middle:] + mean[middle::-1]) / 2 - base
    return Widths(places, losses, _crossing(places[middle:], known, rise, rises))


def _crossing(
    steps: Floats, rises: Floats, rise: float, measure: Callable[[float], float]
) -> float:
    """Where the rise is first reached; the square root of a rise is nearly a straight line."""
    above = np.flatnonzero(~(rises < rise))  # what is no number is above
    if len(above):
        low, high = float(steps[above[0] - 1]), float(steps[above[0]])
        below, over = max(float(rises[above[0] - 1]), 0.0), float(rises[above[0]])
    else:
        low, below = float(steps[-1]), max(float(rises[-1]), 0.0)
        for times in _BEYOND:
            high = times * float(steps[-1])
            over = measure(high)
            if not over < rise:
                break
            low, below = high, max(over, 0.0)
        else:
            return math.inf
    for _ in range(_REFINED):
        at = _between(low, high, below, over, rise)
        found = measure(at)
        if found < rise:
            low, below = at, max(found, 0.0)
        else:
            high, over = at, found
    return _between(low, high, below, over, rise)


def _between(low: float, high: float, below: float, over: float, rise: float) -> float:
    if not math.isfinite(over):
        return (low + high) / 2
    share = (math.sqrt(rise) - math.sqrt(below)) / (math.sqrt(over) - math.sqrt(below))
    return low + share * (high - low)


def barrier(losses: Floats) -> float:
    """How far the loss rises above the straight line between both ends, at most."""
    shares = share_places(len(losses))
    return float(np.max(losses - (1 - shares) * losses[0] - shares * losses[-1]))
