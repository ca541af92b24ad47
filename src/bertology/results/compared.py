"""Numbers by which two models are set side by side, kept among the arrays of a result.

A number may come with its rows: values of examples (or of sentences, or of nouns) whose mean it is.
Two models that were asked the same have rows of the same examples, and their difference is then
paired: it has the interval of the mean of the rows' differences. What makes an example hard for
both does not widen it. Other numbers have the difference that their two intervals allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from bertology.arrays import Floats
from bertology.stats.intervals import Estimate
from bertology.stats.partial_means import partial_means

if TYPE_CHECKING:
    import xarray as xr


PERCENT = "%"
"""The unit of shares: they are stored as fractions, shown times a hundred, and differ by points."""
_VARIABLE = "compared"
_DIMS = ("compared_number", "compared_row")


@dataclass(frozen=True)
class Compared:
    """A number of one model that the same study has of another one."""

    title: str
    estimate: Estimate
    unit: str = PERCENT
    rows: Floats | None = None
    """(N,): their mean is the number; NaN where an example says nothing. None: there are none."""
    support: tuple[float, float] | None = None
    """Where a difference of two rows must lie, if that is known."""


@dataclass(frozen=True)
class Difference:
    """The second model less the first."""

    estimate: Estimate
    paired: bool
    """Whether the interval is over the differences of the same examples."""

    @property
    def sure(self) -> bool:
        """Whether the interval excludes 0."""
        return self.estimate.low > 0 or self.estimate.high < 0


def row_mean(
    title: str,
    rows: Floats,
    *,
    level: float,
    unit: str = PERCENT,
    counted: str = "examples",
    bounded: bool = True,
) -> Compared | None:
    """A number from its rows alone; None of fewer than two.

    `bounded`: rows are shares of single examples, between 0 and 1. Else they may lie beyond, as
    where the mean is a ratio.
    """
    if np.isfinite(rows).sum() < 2:
        return None
    share = unit == PERCENT
    found = partial_means(
        rows[None],
        within=(0.0, 1.0) if share else (-np.inf, np.inf),
        support=(0.0, 1.0) if share and bounded else None,
        reach=float(share),
        level=level,
        among=1,
    )
    ends = (found.alone_low[0], found.alone_high[0])
    estimate = Estimate(found.value[0], *ends, int(found.n[0]), level, counted)
    return Compared(title, estimate, unit, rows, (-1.0, 1.0) if share and bounded else None)


def difference(first: Compared, second: Compared) -> Difference:
    """The second less the first: paired where both have rows of the same examples."""
    one, other = first.estimate, second.estimate
    rows = _paired_rows(first, second)
    if rows is None:
        apart = (other.value - one.value, other.low - one.high, other.high - one.low)
        return Difference(Estimate(*apart, min(one.n, other.n), one.level, one.unit), False)
    share = first.unit == PERCENT
    found = partial_means(
        rows[None],
        within=(-1.0, 1.0) if share else (-np.inf, np.inf),
        support=first.support if first.support == second.support else None,
        reach=float(share),
        level=one.level,
        among=1,
    )
    ends = (found.alone_low[0], found.alone_high[0])
    return Difference(Estimate(found.value[0], *ends, int(found.n[0]), one.level, one.unit), True)


def _paired_rows(first: Compared, second: Compared) -> Floats | None:
    """Differences of rows; None where the two do not speak of the same examples."""
    one, other = first.rows, second.rows
    if one is None or other is None or one.shape != other.shape:
        return None
    there = np.isfinite(one)
    if not np.array_equal(there, np.isfinite(other)) or there.sum() < 2:
        return None
    return other - one


# Among the arrays of a result ---------------------------------------------------------------------


def compared_arrays(found: Sequence[Compared]) -> xr.Dataset:
    """The numbers as an array of rows, with all else in its attributes."""
    import xarray as xr

    if not found:
        return xr.Dataset()
    lengths = [0 if one.rows is None else len(one.rows) for one in found]
    rows = np.full((len(found), max(lengths)), np.nan)
    for at, one in enumerate(found):
        if one.rows is not None:
            rows[at, : lengths[at]] = one.rows
    told = [
        {
            "title": one.title,
            "unit": one.unit,
            "rows": length if one.rows is not None else -1,
            "support": None if one.support is None else list(one.support),
            "estimate": {k: asdict(one.estimate)[k] for k in _KEPT},
        }
        for one, length in zip(found, lengths, strict=True)
    ]
    return xr.Dataset({_VARIABLE: xr.DataArray(rows, dims=_DIMS, attrs={"numbers": told})})


_KEPT = ("value", "low", "high", "n", "level", "unit")


def read_compared(arrays: xr.Dataset) -> list[Compared]:
    """The numbers that `compared_arrays` put there; none where it did not."""
    if _VARIABLE not in arrays:
        return []
    array = arrays[_VARIABLE]
    rows = array.to_numpy()
    return [
        Compared(
            told["title"],
            Estimate(**told["estimate"]),
            told["unit"],
            None if told["rows"] < 0 else rows[at, : told["rows"]],
            None if told["support"] is None else (told["support"][0], told["support"][1]),
        )
        for at, told in enumerate(array.attrs["numbers"])
    ]
