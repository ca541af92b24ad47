"""Do people who sorted the same things into classes agree, beyond chance?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from bertology.arrays import Floats
from bertology.errors import DataError, UnknownNameError
from bertology.stats.intervals import Estimate, check_level, percentile_interval


@dataclass(frozen=True)
class Agreement:
    """Cohen's κ with its interval, and the table behind it."""

    kappa: Estimate | None
    """None where it is not defined: both used one class only, and the same one."""
    same: float
    """The share of things that both put into the same class."""
    classes: tuple[str, ...]
    table: tuple[tuple[int, ...], ...]
    """How often the first said the row's class and the second the column's."""

    @property
    def n(self) -> int:
        """How many things both have sorted."""
        return sum(map(sum, self.table))


def cohens_kappa(
    first: Sequence[str],
    second: Sequence[str],
    classes: Sequence[str],
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Agreement:
    """Cohen's κ (1960) of two lists of classes for the same things, in the same order.

    The interval is the percentile bootstrap's over things, widened where need be to what Wilson's
    interval for the share of agreement means for κ: where two people agree on everything, all
    resamples do too, and the bootstrap alone would claim to know κ exactly.
    """
    check_level(level, "cohens_kappa")
    table = _table(first, second, list(classes))
    n = int(table.sum())
    same = float(np.trace(table)) / n
    kappa = None
    value = float(_kappa(table[None].astype(np.float64))[0])
    if not np.isnan(value):
        draws = np.random.default_rng(seed).multinomial(n, table.ravel() / n, size=resamples)
        found = _kappa(draws.reshape(resamples, *table.shape).astype(np.float64))
        # A resample with one class only has no κ, and says nothing about it.
        low, high = percentile_interval(found[~np.isnan(found)], level)
        expected = float(table.sum(0) @ table.sum(1)) / (n * n)
        ends = [(share - expected) / (1 - expected) for share in _wilson(same, n, level)]
        kappa = Estimate(
            value, min(float(low), ends[0]), max(float(high), ends[1]), n, level, "things"
        )
    rows = tuple(tuple(int(c) for c in row) for row in table)
    return Agreement(kappa, same, tuple(classes), rows)


def krippendorffs_alpha(
    things: Sequence[Sequence[str]],
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Estimate | None:
    """Krippendorff's α (1970) for classes: the agreement of any number of people.

    Each thing comes with the classes that were given to it, by whomever and however many; those
    with fewer than two say nothing. None where α is not defined: all of them got one class. The
    interval is the percentile bootstrap's over things, widened where need be to what Wilson's
    interval for the share of disagreement means for α, as for κ.
    """
    check_level(level, "krippendorffs_alpha")
    shared = [given for given in things if len(given) > 1]
    if not shared:
        raise DataError("Agreement needs things that were sorted at least twice.")
    names = sorted({name for given in shared for name in given})
    counts = np.array([[given.count(name) for name in names] for given in map(list, shared)])
    value = float(_alpha(counts[None].astype(np.float64))[0])
    if np.isnan(value):
        return None
    rng = np.random.default_rng(seed)
    drawn = (counts[rng.integers(len(counts), size=len(counts))] for _ in range(resamples))
    found = np.concatenate([_alpha(one[None].astype(np.float64)) for one in drawn])
    low, high = percentile_interval(found[~np.isnan(found)], level)
    ends = _alpha_ends(counts.astype(np.float64), level)
    ends = min(float(low), ends[0]), max(float(high), ends[1])
    return Estimate(value, *ends, n=len(shared), level=level, unit="things")


def _alpha_ends(counts: Floats, level: float) -> tuple[float, float]:
    """α at the ends of Wilson's interval for the share of disagreement, of one table.

    A thing counts by its people; where their numbers differ, it rests on fewer things in effect.
    """
    given = counts.sum(-1)  # (things,)
    apart = (given**2 - (counts**2).sum(-1)) / (given * (given - 1))  # shares of pairs
    observed = float(given @ apart / given.sum())
    things = float(given.sum() ** 2 / (given**2).sum())
    classes, n = counts.sum(0), counts.sum()
    expected = float((n**2 - (classes**2).sum()) / (n * (n - 1)))
    least, most = _wilson(observed, things, level)
    return 1 - most / expected, 1 - least / expected


def _alpha(counts: Floats) -> Floats:
    """α of each table (R, things, classes); NaN where only one class was given."""
    given = counts.sum(-1)  # (R, things)
    # Ordered pairs of different people that disagree, each thing weighted by its people.
    apart = given**2 - (counts**2).sum(-1)
    observed = (apart / (given - 1)).sum(-1)
    classes, n = counts.sum(1), counts.sum((1, 2))
    expected = (n**2 - (classes**2).sum(-1)) / (n - 1)
    certain = expected == 0
    found: Floats = np.where(certain, np.nan, 1 - observed / np.where(certain, 1.0, expected))
    return found


def _table(first: Sequence[str], second: Sequence[str], classes: list[str]) -> NDArray[np.int64]:
    if len(first) != len(second) or not first:
        raise DataError(
            "Agreement needs two classes for each thing, at least one thing. "
            f"Got lists of {len(first)} and {len(second)}."
        )
    table = np.zeros((len(classes), len(classes)), np.int64)
    for a, b in zip(first, second, strict=True):
        for name in (a, b):
            if name not in classes:
                raise UnknownNameError("class", name, classes)
        table[classes.index(a), classes.index(b)] += 1
    return table


def _kappa(tables: Floats) -> Floats:
    """κ of each table (R, K, K); NaN where both marginals sit on one class."""
    n = tables.sum((1, 2))
    observed = np.trace(tables, axis1=1, axis2=2) / n
    expected = (tables.sum(1) * tables.sum(2)).sum(1) / (n * n)
    certain = expected >= 1
    ratio = (observed - expected) / np.where(certain, 1.0, 1 - expected)
    found: Floats = np.where(certain, np.nan, ratio)
    return found


def _wilson(share: float, n: float, level: float) -> tuple[float, float]:
    """Wilson's interval (1927) for a share of `n`."""
    z = float(ndtri((1 + level) / 2))
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * float(np.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2))
    return max(0.0, middle - half), min(1.0, middle + half)
