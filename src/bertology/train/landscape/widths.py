"""How wide an optimum is: how far one can go before the loss has risen by so much."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from bertology.train.landscape.places import around_places, share_places
from bertology.train.landscape.terrain import Terrain, Weights

__all__ = ["Widths", "barrier", "measure_widths"]

Floats = NDArray[np.float64]
_REFINED = 3  # more points around each crossing


@dataclass(frozen=True)
class Widths:
    """Losses along directions, and where they have risen by so much."""

    places: Floats  # (points,) from -reach to reach
    losses: Floats  # (directions, points)
    crossings: Floats  # (directions, 2): distances to both sides; inf where it is farther away

    @property
    def mean(self) -> float:
        """The mean distance over directions and sides; inf where one was not reached."""
        return float(self.crossings.mean())


def measure_widths(
    terrain: Terrain,
    at: Weights,
    directions: Sequence[Mapping[str, Tensor]],
    *,
    rise: float,
    reach: float,
    points: int,
) -> Widths:
    """Go along each direction to both sides until the loss is `rise` above what it is at `at`."""
    places = around_places(reach, points)
    middle = points // 2
    lines, crossings = [], []
    for direction in directions:

        def there(steps: Floats, way: Mapping[str, Tensor] = direction) -> Floats:
            return terrain.losses(at, [way], steps[:, None])

        losses = there(places)
        lines.append(losses)
        sides = []
        for side in (-1, 1):
            known = losses[middle:] if side > 0 else losses[middle::-1]

            def rises(step: float, side: int = side, base: float = losses[middle]) -> float:
                return float(there(np.array([side * step]))[0] - base)

            sides.append(_crossing(np.abs(places[middle:]), known - known[0], rise, rises))
        crossings.append(sides)
    return Widths(places, np.array(lines), np.array(crossings))


def _crossing(
    steps: Floats, rises: Floats, rise: float, measure: Callable[[float], float]
) -> float:
    """Where the rise is first reached; the square root of a rise is nearly a straight line."""
    above = np.flatnonzero(~(rises < rise))  # what is no number is above
    if not len(above):
        return math.inf
    low, high = steps[above[0] - 1], steps[above[0]]
    below, over = max(rises[above[0] - 1], 0.0), rises[above[0]]
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
