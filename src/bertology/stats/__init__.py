"""Intervals and tests; NumPy and SciPy only.

`paired_bootstrap` judges many variants against one baseline; its module's text says which of the
intervals may carry a claim.
"""

from __future__ import annotations

from bertology.stats.intervals import (
    Estimate,
    bounded_mean_bounds,
    mean_interval,
    mean_intervals,
    percentile_interval,
    rank_correlation,
)
from bertology.stats.multiplicity import holm
from bertology.stats.paired import PairedEffects, bootstrap_weights, paired_bootstrap
from bertology.stats.repeated import adjusted, paired_p, repeated, unpaired, unpaired_p

__all__ = [
    "Estimate",
    "PairedEffects",
    "adjusted",
    "bootstrap_weights",
    "bounded_mean_bounds",
    "holm",
    "mean_interval",
    "mean_intervals",
    "paired_bootstrap",
    "paired_p",
    "percentile_interval",
    "rank_correlation",
    "repeated",
    "unpaired",
    "unpaired_p",
]
