"""Do two matrices of distances between the same few things go together? Mantel's test.

Things (such as languages) are few, and each is in many pairs. So chance is that the things of one
matrix are named anew (Mantel 1967): all pairs of one thing move together. The interval counts pairs
that share a thing as dependent (`rank_agreement.PairLinks`), with as many degrees of freedom as
there are things. With `given`, other matrices are taken out of both first (partial Mantel test;
Smouse, Long and Sokal 1986): what is left is not due to these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bertology.arrays import Floats
from bertology.stats.intervals import Estimate
from bertology.stats.rank_agreement import Agreement, PairLinks

FEWEST = 5
"""Things: with four there are 24 ways to name them, and no p-value below 0.04."""


def ranks_of_pairs(matrix: Floats, given: Sequence[Floats] = ()) -> Floats:
    """(pairs,): ranks of the upper triangle, with mean 0 and length 1, without those of `given`."""
    from scipy.stats import rankdata

    above = np.triu_indices(len(matrix), 1)
    x = rankdata(matrix[above])
    if given:
        others = [rankdata(one[above]) for one in given]
        basis = np.column_stack([np.ones(x.size), *others])
        x = x - basis @ np.linalg.lstsq(basis, x, rcond=None)[0]
    x = x - x.mean()
    length = np.sqrt(x @ x)
    found: Floats = x / length if length > 1e-9 * x.size else np.zeros(x.size)
    return found


def together(
    one: Floats, other: Floats, *, given: Sequence[Floats] = ()
) -> tuple[Agreement, PairLinks]:
    """The correlation of ranks over pairs of things, and which things each pair has."""
    x, y = (ranks_of_pairs(of, given) for of in (one, other))
    value, n = float(x @ y), x.size
    influence = n * (x * y - value / 2 * (x * x + y * y))
    links = PairLinks.of(list(zip(*np.triu_indices(len(one), 1), strict=True)))
    return Agreement(np.array([value]), influence[None]), links


def mantel(
    one: Floats,
    other: Floats,
    *,
    given: Sequence[Floats] = (),
    level: float,
    unit: str,
    draws: int = 4999,
    seed: int = 0,
) -> Estimate | None:
    """The correlation of two matrices (K, K), with an interval and a test that names things anew.

    None of fewer than five things, or where one matrix (what is `given` taken out) has no order.
    """
    if len(one) < FEWEST:
        return None
    x, y = (ranks_of_pairs(of, given) for of in (one, other))
    if not (x.any() and y.any()):
        return None
    found, links = together(one, other, given=given)
    above = np.triu_indices(len(one), 1)
    square = np.zeros_like(one, dtype=np.float64)
    square[above] = y
    square += square.T
    rng, value = np.random.default_rng(seed), float(x @ y)
    drawn = np.empty(draws)
    for at in range(draws):
        order = rng.permutation(len(one))
        drawn[at] = x @ square[np.ix_(order, order)][above]
    # Counted with the one that was observed, as in every test by permutation.
    p = float((1 + (np.abs(drawn) >= abs(value) - 1e-12).sum()) / (1 + draws))
    made = links.estimate(found, level=level, unit=unit)
    made = replace(
        made, n=len(one), low=max(made.low, -1.0), high=min(made.high, 1.0), tested=(0.0, p)
    )
    return made.at_level(level)
