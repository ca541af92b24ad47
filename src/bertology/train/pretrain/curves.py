"""How the held-out loss of a run went down, and when it came down to a given loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertology.train.pretrain.log import LogEntry

Floats = NDArray[np.float64]


class Curve(NamedTuple):
    """Where a run was evaluated: the update, the seconds of training, and the held-out loss."""

    step: Floats
    seconds: Floats
    loss: Floats

    @classmethod
    def of_log(cls, log: Sequence[LogEntry]) -> Curve:
        """From what `pretrain` logs."""
        seen = [(e["step"], e["seconds"], e["scores"]["mlm_loss"]) for e in log if e.get("scores")]
        return cls(*np.array(seen, dtype=np.float64).T)

    def reaches(self, loss: float) -> tuple[float, float]:
        """The update and the second at which it does, between evaluations; NaN if it never does."""
        under = np.flatnonzero(self.loss <= loss)
        if not under.size:
            return math.nan, math.nan
        i = int(under[0])
        back = (loss - self.loss[i]) / (self.loss[i - 1] - self.loss[i]) if i else 0.0
        at = np.arange(len(self.loss))
        step, seconds = (float(np.interp(i - back, at, c)) for c in (self.step, self.seconds))
        return step, seconds
