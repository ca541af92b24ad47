"""Diagonals between the sentences of a pair: tokens attend to their counterpart in the other one.

No type of its own: such a map may be diagonal, heterogeneous or anything else by what is strongest
in it. It deserves a note all the same, for it follows words, not positions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

CROSSING = 0.15  # mean attention along the line, beyond that of its columns
_SHORTEST = 4  # tokens of a line: what is shorter may be chance
_DRIFT = 1  # a word more or less in one sentence moves the line by one


def crossing(weights: NDArray[np.floating], segments: NDArray[np.integer]) -> float:
    """Attention along the best diagonal from one sentence to the other; 0 for a single sentence.

    The mean over the line's tokens, the better direction. Each cell counts by how far it exceeds
    the mean of its column over the same sentence, so stripes, which cross every line, give 0.
    """
    found = 0.0
    for here in (0, 1):
        rows, columns = np.flatnonzero(segments == here), np.flatnonzero(segments == 1 - here)
        if min(len(rows), len(columns)) < _SHORTEST:
            return 0.0
        across = np.asarray(weights, np.float64)[np.ix_(rows, columns)]
        beyond = np.maximum(across - across.mean(0), 0)
        found = max(found, _best_line(beyond))
    return found


def has_crossing(weights: NDArray[np.floating], segments: NDArray[np.integer]) -> bool:
    """Whether a diagonal runs between the sentences."""
    return crossing(weights, segments) >= CROSSING


def _best_line(cells: NDArray[np.float64]) -> float:
    """Of lines that run through at least half of the shorter sentence."""
    rows, columns = cells.shape
    wide = np.pad(cells, ((0, 0), (_DRIFT, _DRIFT)))
    # The best cell at most one step beside the line.
    near = np.max([wide[:, i : i + columns] for i in range(2 * _DRIFT + 1)], axis=0)
    least = max(_SHORTEST, min(rows, columns) // 2)
    lines = (np.diagonal(near, k) for k in range(-rows + least, columns - least + 1))
    return max((float(line.mean()) for line in lines if len(line) >= least), default=0.0)
