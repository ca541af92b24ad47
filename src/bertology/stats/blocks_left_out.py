"""Intervals over texts by leaving out one block of them at a time.

A statistic of sums (a mean cosine of all pairs, the share of a principal component) is computed
again without each of some ten blocks of texts; how much it changes tells how much it would change
on other texts (the delete-a-group jackknife). Blocks hold whole texts, so that words of one text
are never taken for independent. Student's t has as many degrees of freedom as blocks less one.
"""

from __future__ import annotations

import numpy as np
from scipy.special import stdtrit

from bertology.arrays import Floats
from bertology.errors import DataError
from bertology.stats.intervals import Estimate, check_level


def left_out_error(left_out: Floats) -> Floats:
    """The standard error of a statistic from its values (blocks, …) with a block left out."""
    blocks = len(left_out)
    if blocks < 2:
        raise DataError(f"Leaving out one block needs two blocks or more. Got {blocks}.")
    spread = left_out - left_out.mean(axis=0)
    found: Floats = np.sqrt((blocks - 1) / blocks * (spread**2).sum(axis=0))
    return found


def left_out_arms(
    left_out: Floats, *, level: float, others: Floats | float = 0.0, families: int = 1
) -> Floats:
    """Half the length of intervals; `others` are arms of another kind, added as squares.

    With `families`, intervals hold for so many together.
    """
    quantile = 1 - (1 - check_level(level, "left_out_arms")) / 2 / families
    found: Floats = np.hypot(
        stdtrit(len(left_out) - 1, quantile) * left_out_error(left_out), others
    )
    return found


def left_out_estimate(
    value: float, left_out: Floats, *, n: int, level: float, others: float = 0.0
) -> Estimate:
    """One statistic with its interval over `n` texts."""
    arm = float(left_out_arms(left_out, level=level, others=others))
    freedom = float(len(left_out) - 1)
    return Estimate(value, value - arm, value + arm, n, level, "texts", freedom=freedom)
