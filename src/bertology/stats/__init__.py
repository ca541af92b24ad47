"""Intervals, tests and sequences; NumPy and SciPy only.

`paired_bootstrap` judges many variants against one baseline; its module's text says which of the
intervals may carry a claim. `ConfidenceSequence` is for looking while the data come in.
"""

from __future__ import annotations

from bertology.stats.intervals import (
    Estimate,
    bounded_mean_bounds,
    mean_interval,
    percentile_interval,
    rank_correlation,
)
from bertology.stats.multiplicity import benjamini_hochberg, holm
from bertology.stats.paired import PairedEffects, bootstrap_weights, paired_bootstrap
from bertology.stats.repeated import adjusted, paired_p, repeated
from bertology.stats.sequences import ConfidenceSequence

__all__ = [
    "ConfidenceSequence",
    "Estimate",
    "PairedEffects",
    "adjusted",
    "benjamini_hochberg",
    "bootstrap_weights",
    "bounded_mean_bounds",
    "holm",
    "mean_interval",
    "paired_bootstrap",
    "paired_p",
    "percentile_interval",
    "rank_correlation",
    "repeated",
]
