"""What a change by training must beat: weight noise of the same size.

A study of two models, one trained from the other, measures noisy copies of the earlier one as well
(`model/weight_noise.py`), whose weights are moved at random as far as training moved them. If
training were nothing but noise, the trained model would be one more draw of it. So the interval
of "trained less noise" is the one that predicts a further draw (Student's, √(1 + 1/draws) times
the spread of draws): noise in the place of training lies outside of it as rarely as `level` says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from bertology.parameters import parameter
from bertology.stats import Estimate
from bertology.studies.designs.blocks import Resampled

__all__ = ["NO_NOISE", "NoiseControlled", "beyond_noise"]

NO_NOISE = "not judged: noise 0 leaves out the noisy copies that a change by training must beat"


@dataclass(frozen=True)
class NoiseControlled(Resampled):
    """Sets what training changed against what noise of the same size changes."""

    noise: int = parameter(
        5,
        "Copies of the earlier model with weight noise as large as the change; 0: none.",
        minimum=0,
        maximum=100,
    )


def beyond_noise(change: Estimate, trained: float, noisy: ArrayLike) -> Estimate:
    """The change, or what is left of it beyond noise, whichever is less.

    `change` is over examples. `trained` is the same number for the trained model and `noisy` for
    each noisy copy; both may be scaled alike. A claim needs both: a change that is surely there,
    and that is surely more than noise makes. The bounds are the smaller ones of the two, so the
    claim is decided as both are (an intersection–union test). With fewer than two copies, or with
    copies that do not differ, there is no interval.
    """
    draws = np.asarray(noisy, dtype=np.float64).ravel()
    value = trained - draws.mean() if draws.size else math.nan
    half = math.nan
    if draws.size > 1 and np.isfinite(draws).all() and np.ptp(draws) > 0:
        spread = draws.std(ddof=1) * math.sqrt(1 + 1 / draws.size)
        # The trained model's own error over examples comes on top.
        own = max(change.high - change.value, change.value - change.low, 0.0)
        half = math.hypot(stdtrit(draws.size - 1, (1 + change.level) / 2) * spread, own)
    beyond = Estimate(value, value - half, value + half, draws.size, change.level, "noisy copies")
    if math.isnan(half):
        return beyond
    first, second = sorted((change, beyond), key=lambda e: e.low)
    return Estimate(
        min(first.value, second.value),
        first.low,
        min(first.high, second.high),
        first.n,
        change.level,
        first.unit,
    )
