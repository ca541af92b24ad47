"""Which tokens vertical maps point at: counts of maps by the class of their strongest column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.stats import Estimate, bounded_mean_bounds

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
_OFTEN = 0.05  # of a head's maps: if fewer are vertical, the head tells nothing about stripes


def stripe_table(counts: Floats, parts: Sequence[str]) -> pd.DataFrame:
    """How many vertical maps (part, layer, head) point at each part, and the share of all."""
    import pandas as pd

    of = counts.sum(axis=(1, 2))
    return pd.DataFrame(
        {"part": list(parts), "maps": of.astype(int), "share": of / max(of.sum(), 1)}
    )


def share_of_stripes(counts: Floats, first: int, *, examples: int, level: float) -> Estimate | None:
    """The share of vertical maps that point at one of the `first` parts, mean over heads.

    Heads with hardly any vertical map say nothing. A head looks at the same tokens in every
    text, so the interval is over heads; it holds for any shares, however few the heads.
    """
    vertical = counts.sum(axis=0).ravel()
    often = vertical > _OFTEN * examples
    if not often.any():
        return None
    shares = counts[:first].sum(axis=0).ravel()[often] / vertical[often]
    budget = math.log(2 / (1 - level))
    low, high = bounded_mean_bounds(shares[None], None, low=0, high=1, budget=budget)
    return Estimate(shares.mean(), low[0], high[0], int(often.sum()), level, "heads")
