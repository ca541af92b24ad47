"""Where losses are measured: the places along an axis, which a result without torch also knows."""

from __future__ import annotations

import numpy as np

from bertology.arrays import Floats

_BEFORE, _BEYOND = -0.25, 1.25  # of the way from the start to the end


def around_places(reach: float, points: int) -> Floats:
    """Places to both sides of an end, which is in the middle."""
    half = points // 2
    return reach * np.arange(-half, half + 1) / half


def way_places(points: int) -> Floats:
    """Places on the straight way from a start (0) to an end (1), and beyond both."""
    return np.linspace(_BEFORE, _BEYOND, points)


def share_places(points: int) -> Floats:
    """Places between two ends."""
    return np.linspace(0, 1, points)
