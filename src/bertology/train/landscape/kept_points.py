"""Losses of many points, computed piece by piece: those that are known survive a kill.

    losses = in_pieces(compute, len(steps), file)      # compute(i, j): losses of the points i to j

A large model may need minutes for one point, a small one on a GPU a hundredth of a second. So a
piece is one point where points are slow, and else as many as take about a second: reading a loss
waits for the device, and the disk is asked for little.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_EVERY = 1.0  # seconds between two writes, about
Floats = NDArray[np.float64]


def in_pieces(
    compute: Callable[[int, int], Floats], count: int, file: Path | None, *, multiple: int = 1
) -> Floats:
    """(count,) what `compute` gives for all points; those in `file` are not computed again.

    `multiple`: pieces hold a multiple of so many points, as many as share a pass. The file goes
    when all points are known, and whoever asked then keeps them. Without a file, one piece.
    """
    if file is None:
        return compute(0, count)
    found, piece, written = _read(file, count), multiple, time.monotonic()
    while len(found) < count:
        first, began = len(found), time.monotonic()
        found += compute(first, min(first + piece, count)).tolist()
        now = time.monotonic()
        rate = (len(found) - first) / max(now - began, 1e-9)
        piece = multiple * max(1, int(_EVERY * rate / multiple))
        if now - written >= _EVERY and len(found) < count:
            _write(file, found)
            written = now
    file.unlink(missing_ok=True)
    return np.array(found)


def _read(file: Path, count: int) -> list[float]:
    """The losses in the file; none where it cannot be read, since they are soon computed again."""
    try:
        found = [float(loss) for loss in json.loads(file.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError):
        return []
    return found[:count]


def _write(file: Path, losses: list[float]) -> None:
    """Whole or not at all. JSON gives every digit back."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(f".{os.getpid()}")  # another process may be at the same points
    draft.write_text(json.dumps(losses), encoding="utf-8")
    draft.replace(file)
