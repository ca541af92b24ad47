"""Is it the order of the layers? What is said of the middle, of the first or last, or of a rise.

The layers of a model are no sample: nobody draws twelve of them from more. So what a model's middle
layers tell beyond the others is as sure as the texts it was measured on. But whatever differs from
layer to layer is more in some part of the depth than in the others, in any order that layers may
have: with many texts the middle of every third shuffled model would surely be the best. So a claim
about depth needs both: an interval over texts, and a permutation test that asks how often layers in
a random order show as much.

The test is one-sided, and only what is claimed needs it. That a claim fails, because this model's
first layers surely tell more, is said of this model alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtr, stdtrit

from bertology.arrays import Floats
from bertology.stats.intervals import Estimate

OfLayers = Callable[[Floats], Floats]
"""What is said of layers: of values (…, layers) one number each (…)."""
_ORDERS = 9_999  # drawn at most; fewer where layers have fewer orders
_BY_ORDER = "layers in another order often show as much, which more {} do not change"


def later_less_earlier(at: int) -> OfLayers:
    """The mean of the layers from number `at` on, less that of those before."""

    def contrast(values: Floats) -> Floats:
        found: Floats = values[..., at:].mean(-1) - values[..., :at].mean(-1)
        return found

    return contrast


def first_less_second_half(values: Floats) -> Floats:
    """The mean of the first half of the layers less that of the second, without a middle one."""
    half = values.shape[-1] // 2
    found: Floats = values[..., :half].mean(-1) - values[..., values.shape[-1] - half :].mean(-1)
    return found


def order_p(by_layer: ArrayLike, contrast: OfLayers, *, seed: int = 0) -> float:
    """How often layers in a random order show as much: exact where few orders are possible."""
    from scipy.stats import permutation_test  # here, because it is slow to import

    if not np.isfinite(np.asarray(by_layer, dtype=np.float64)).all():
        return 1.0

    found = permutation_test(
        (np.asarray(by_layer, dtype=np.float64),),
        lambda values, axis: contrast(np.moveaxis(values, axis, -1)),
        permutation_type="pairings",
        alternative="greater",
        vectorized=True,
        n_resamples=_ORDERS,
        random_state=np.random.default_rng(seed),
    )
    return float(found.pvalue)


def in_this_order(
    found: Estimate, by_layer: ArrayLike, contrast: OfLayers, *, seed: int = 0
) -> Estimate:
    """An estimate over texts that is surely above 0 only where the order of layers says so, too.

    `contrast` of `by_layer` is what `found` estimates.
    """
    if math.isnan(found.low):
        return found
    p = order_p(by_layer, contrast, seed=seed)
    return both_above_zero(found, p, chance=_BY_ORDER.format(found.unit))


def mirrored(found: Estimate) -> Estimate:
    """The opposite of an estimate: of what is claimed to fall."""
    at, p = found.tested or (0.0, math.nan)
    return replace(
        found,
        value=-found.value,
        low=-found.high,
        high=-found.low,
        tested=found.tested and (-at, p),
        foreseen=tuple((n, -high, -low) for n, low, high in found.foreseen),
    )


def both_above_zero(found: Estimate, p: float, *, chance: str) -> Estimate:
    """Surely above 0 only where both the interval and a permutation test say so, at any level.

    `chance` says what the permutations do, where they often do as much.
    """
    if p > 1 - found.level + 1e-12:  # one order of twenty errs in 5 %, and not in more
        low = min(found.low, 0.0)
        return replace(
            found,
            low=low,
            needed=None,
            tested=None,
            foreseen=((found.n, low, found.high),),
            remedy=chance,
        )
    if found.low <= 0:
        return found
    if p <= (own := _p_above_zero(found)):
        return replace(found, tested=(0.0, own))
    return replace(found, tested=(0.0, p), lasting=1.0, remedy=chance)


def _p_above_zero(found: Estimate) -> float:
    """Two-sided, of an interval that lies above 0: by its test, or as Student's quantiles say."""
    if found.tested is not None and found.tested[0] == 0:
        return found.tested[1]
    if found.value == found.low:  # what is counted and not sampled
        return 0.0
    freedom = max(found.n - 1 if found.freedom is None else found.freedom, 1.0)
    t = stdtrit(freedom, (1 + found.level) / 2) * found.value / (found.value - found.low)
    return float(2 * stdtr(freedom, -t))
