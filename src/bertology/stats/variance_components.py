"""Where the variance of runs comes from: two kinds of seeds that are crossed, and the examples.

Every seed of one kind (rows) is run with every seed of the other (columns), once, and all runs
answer the same examples: a random two-way design without replicates, `z[i, j, n]`. A run's score is
its mean over examples. Of other seeds and other examples, scores vary by rows, by columns, by what
is left (both together, and all that no seed decides), and by the luck of the examples: each run has
its own luck, which makes scores of equally good runs differ, and all runs share some.

Components are those of the analysis of variance, which are unbiased whatever the law of the
effects. The luck of examples is taken off by using pairs of *different* examples only: the mean of
all products of the effects in one example with those in another has no part of it.

Intervals have two arms, put together as squares. The arm of seeds is Ting, Burdick, Graybill,
Jeyaratnam and Lu's (1990) modified large-sample interval for differences of mean squares; it
excludes 0 exactly where the F test does, and is exact for the rest. Of sums, the upper arm is
Graybill and Wang's (1980) and the lower one Satterthwaite's (1946): the lower one of the former
misses twice as often as it may where several mean squares are alike, and so does the upper one of
the latter where one is large. All this holds for normal effects. Mean squares have the luck of each
run in them, so that this arm counts it as far as every seed has its own. The arm of examples is a
jackknife, less what it would be if all luck were such: left is what other examples would do to all
seeds alike, for instance if orders differ in which class they prefer and these examples have more
of one class.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtri, fdtrc, fdtri, stdtrit

from bertology.arrays import Floats
from bertology.errors import DataError
from bertology.stats.intervals import Estimate, check_level

EFFECTS = ("rows", "columns", "rest", "runs")
"""`runs` is the sum of the other three: the variance of one run among all."""

_MANY = 500  # seeds of each kind; more are out of reach


@dataclass(frozen=True)
class Components:
    """Variances by effect, without the luck of examples; and that luck, as variances too."""

    variance: Mapping[str, Estimate]
    luck: Mapping[str, float]
    """What examples add to each, on average."""
    shared: float
    """What examples do to the scores of all runs alike."""
    p: Mapping[str, float]
    """Of the F tests that rows, and columns, make no difference on these examples."""


def components(values: ArrayLike, *, level: float = 0.95) -> Components:
    """Of `values` (rows, columns, examples): what each example adds to a run's score.

    For a share of right answers these are 0 and 1; for other scores pseudo-values of a jackknife.
    """
    check_level(level, "components")
    z = np.asarray(values, dtype=np.float64)
    if z.ndim != 3 or min(z.shape[:2]) < 2 or z.shape[2] < 3 or not np.isfinite(z).all():
        raise DataError(
            "Variance components need finite (rows ≥ 2, columns ≥ 2, examples ≥ 3) numbers. "
            f"Got {z.shape}."
        )
    scores, each = z.mean(axis=2), np.moveaxis(z, 2, 0)  # (I, J), (N, I, J)
    squares = _mean_squares(scores, scores)
    freedom = _freedom(*scores.shape)
    own = {name: _over_pairs({name: 1.0}, scores, each)[2] for name in squares}  # luck in each
    found, luck = {}, {}
    for effect in EFFECTS:
        weights = _weights(effect, *scores.shape)
        value, error, added = _over_pairs(weights, scores, each)
        below, above = _arms(weights, squares, freedom, (1 - level) / 2)
        counted = sum(
            4 * w**2 * float(squares[name]) * max(own[name], 0.0) / freedom[name]
            for name, w in weights.items()
        )
        left = math.sqrt(max(error**2 - counted, 0.0))
        half = float(stdtrit(len(each) - 1, (1 + level) / 2)) * left
        count = {"rows": scores.shape[0], "columns": scores.shape[1]}.get(effect, min(scores.shape))
        found[effect] = Estimate(
            value,
            value - math.hypot(below, half),
            value + math.hypot(above, half),
            count,
            level,
            "seeds",
            foreseen=_foreseen(effect, (value, half), squares, scores.shape, (1 - level) / 2),
            remedy="more seeds and more examples would narrow it",
        )
        luck[effect] = added
    p = {
        name: float(fdtrc(freedom[name], freedom["rest"], squares[name] / squares["rest"]))
        if squares["rest"] > 0
        else math.nan
        for name in ("rows", "columns")
    }
    return Components(found, luck, float(each.mean(axis=(1, 2)).var(ddof=1) / len(each)), p)


def spread(variance: Estimate) -> Estimate:
    """A variance as a standard deviation; what is below 0 is 0."""

    def root(x: float) -> float:
        return math.sqrt(max(x, 0.0))

    value, low, high = (root(x) for x in (variance.value, variance.low, variance.high))
    foreseen = tuple((n, root(below), root(above)) for n, below, above in variance.foreseen)
    return replace(variance, value=value, low=low, high=high, foreseen=foreseen)


def _freedom(rows: int, columns: int) -> dict[str, int]:
    return {"rows": rows - 1, "columns": columns - 1, "rest": (rows - 1) * (columns - 1)}


def _mean_squares(one: Floats, other: Floats) -> dict[str, Floats]:
    """Mean squares of (…, I, J), or mean products of two such."""
    (i, j), parts = one.shape[-2:], [_effects(x) for x in (one, other)]
    products = {name: (parts[0][name] * parts[1][name]).sum(axis=(-2, -1)) for name in parts[0]}
    repeats = {"rows": j, "columns": i, "rest": 1}
    freedom = _freedom(i, j)
    return {name: repeats[name] * products[name] / freedom[name] for name in products}


def _effects(x: Floats) -> dict[str, Floats]:
    """Deviations of rows (…, I, 1), of columns (…, 1, J), and what is left (…, I, J)."""
    whole = x.mean(axis=(-2, -1), keepdims=True)
    rows, columns = (x.mean(axis=axis, keepdims=True) - whole for axis in (-1, -2))
    return {"rows": rows, "columns": columns, "rest": x - whole - rows - columns}


def _weights(effect: str, rows: int, columns: int) -> dict[str, float]:
    """A component as a sum of mean squares."""
    if effect == "rows":
        return {"rows": 1 / columns, "rest": -1 / columns}
    if effect == "columns":
        return {"columns": 1 / rows, "rest": -1 / rows}
    if effect == "rest":
        return {"rest": 1.0}
    return {"rows": 1 / columns, "columns": 1 / rows, "rest": 1 - 1 / rows - 1 / columns}


def _over_pairs(
    weights: Mapping[str, float], scores: Floats, each: Floats
) -> tuple[float, float, float]:
    """A component over pairs of different examples, its error over examples, and their luck.

    With B(x, w) the component's bilinear form and S the sum of B(z_n, z_n), the mean over pairs is
    (N² B(y, y) - S) / (N (N - 1)); without example n, N² B(y, y) loses 2 N B(y, z_n) - B(z_n, z_n).
    """

    def form(one: Floats, other: Floats) -> Floats:
        squares = _mean_squares(one, other)
        return np.asarray(sum(w * squares[name] for name, w in weights.items()))

    n = len(each)
    whole, with_all, alone = form(scores, scores), form(scores[None], each), form(each, each)
    value = (n * n * whole - alone.sum()) / (n * (n - 1))
    without = (n * n * whole - 2 * n * with_all + 2 * alone - alone.sum()) / ((n - 1) * (n - 2))
    pseudo = n * value - (n - 1) * without
    return float(value), float(pseudo.std(ddof=1) / math.sqrt(n)), float(whole - value)


def _arms(
    weights: Mapping[str, float],
    squares: Mapping[str, Floats],
    freedom: Mapping[str, int],
    tail: float,
) -> tuple[float, float]:
    """How far the interval over seeds reaches below and above; at most one weight is negative."""
    below, above = 0.0, 0.0
    terms = [(w, float(w * squares[name]), freedom[name]) for name, w in weights.items() if w]
    for weight, part, df in terms:
        least = 1 - df / float(chdtri(df, tail))  # share that the mean square may be too large by
        most = df / float(chdtri(df, 1 - tail)) - 1
        down, up = (least, most) if weight > 0 else (most, least)
        below, above = below + (down * part) ** 2, above + (up * part) ** 2
    if len(terms) == 2 and terms[1][0] < 0:
        (_, first, n1), (_, second, n2) = terms
        below += _cross(n1, n2, tail) * first * abs(second)
        above += _cross(n1, n2, 1 - tail) * first * abs(second)
    elif (whole := sum(part for _, part, _ in terms)) > 0:
        joint = whole**2 / sum(part**2 / df for _, part, df in terms)
        below = (whole * (1 - joint / float(chdtri(joint, tail)))) ** 2
    return math.sqrt(max(below, 0.0)), math.sqrt(max(above, 0.0))


def _foreseen(
    effect: str,
    found: tuple[float, float],
    squares: Mapping[str, Floats],
    shape: tuple[int, ...],
    tail: float,
) -> tuple[tuple[int, float, float], ...]:
    """With so many seeds of each kind, the bounds of a variance, if all parts are as they are here.

    `found` are the variance and what examples alone leave open, which seeds do not take away. The
    bounds of a variance do not narrow as the root of the number of seeds, and a standard deviation
    hides how far below 0 they reach.
    """
    (value, half), (rows, columns) = found, shape
    rest = float(squares["rest"])
    by_row, by_column = (
        max(float(squares[name]) - rest, 0.0) / repeats
        for name, repeats in (("rows", columns), ("columns", rows))
    )
    bounds, seeds = [], max(shape) + 1
    while seeds <= _MANY:
        expected = {
            "rows": np.asarray(rest + seeds * by_row),
            "columns": np.asarray(rest + seeds * by_column),
            "rest": np.asarray(rest),
        }
        weights, freedom = _weights(effect, seeds, seeds), _freedom(seeds, seeds)
        below, above = _arms(weights, expected, freedom, tail)
        bounds.append((seeds, value - math.hypot(below, half), value + math.hypot(above, half)))
        seeds = max(seeds + 1, seeds * 6 // 5)
    return tuple(bounds)


def _cross(n1: int, n2: int, tail: float) -> float:
    """The product term of the modified large-sample interval; it makes the bound's test exact.

    With `tail` below a half for the lower bound, above it for the upper.
    """
    f = float(fdtri(n1, n2, 1 - tail))
    of_first = 1 - n1 / float(chdtri(n1, tail))
    of_second = n2 / float(chdtri(n2, 1 - tail)) - 1
    return ((f - 1) ** 2 - (of_first * f) ** 2 - of_second**2) / f
