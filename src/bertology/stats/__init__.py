"""Intervals and tests; NumPy and SciPy only.

`paired_bootstrap` judges many variants against one baseline; its module's text says which of the
intervals may carry a claim.

- did a change of the model change its answers? `answer_flips` (exact, all variants), `paired`
- is a loss surely below a margin, and of how many heads? `answer_flips` (exact), `multiplicity`
- the best of many heads: `best_of_many` (also: surely better than the others?)
- are all of several means above a margin? `least_means`; of several estimates: `least_of`
- is it surely there beyond what else could make it? `Estimate.with_controls`
- means of skewed or sparse values: `partial_means`, `intervals`; over a few words: `skewed_means`
- how much evidence an error rate takes: `signed_roots`
- runs that differ in their seed: `repeated`; seeds and examples together: `crossed`
- the mean over a few tasks that were chosen, each with its own runs and examples: `fixed_means`
- two kinds of seeds, crossed: `variance_components`
- the best of k runs, poor ones stopped: `best_of_runs`
- choices in which a fixed preference must be worth nothing: `balanced`
- shares by a classifier that errs: `named_shares`
- when in a training run? `emergence`; more with more parameters? `trends`

There are pointwise intervals, and simultaneous bounds of another kind: with a handful of changed
answers, bootstrap intervals around the best of 144 heads are too short.
"""

from __future__ import annotations

from bertology.stats.intervals import (
    Estimate,
    bounded_mean_bounds,
    least_of,
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
    "least_of",
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
