"""Estimates with intervals: percentile, Student, rank correlation, and bounded means.

`bounded_mean_bounds` is the one behind every strict claim of this package. It asks: which means
could a distribution on [low, high] have, if it may differ from the observed one by no more than
`budget` nats of log-likelihood over all n values? This is the empirical likelihood interval with
one addition that matters when events are rare: mass may sit at the ends of the support where
nothing was observed, so that n values which are all 0 do not give the interval [0, 0]. With
budget = log(2 / alpha) the bound is of Chernoff's kind; it agrees with the exact sign (McNemar)
test where all changes go one way. Source of the dual form: Filippi, Cappé & Garivier (2010).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from bertology.arrays import Floats
from bertology.errors import DataError, ParameterError

ONE_SIDE = 1e-12
"""A bound this far from a value says on which side of it a number lies, and no more."""
_STEPS = 60  # at most; nearly always five are enough
_CLOSE = 1e-8  # a step of Newton's that is shorter leaves an error like its square
_DRAWN = 1 << 18  # examples of several resamples that are ranked together
_HELD = 1 << 16  # values looked at together: what is made of them stays in the cache


@dataclass(frozen=True)
class Estimate:
    """A number, the interval around it, and how many observations it rests on."""

    value: float
    low: float
    high: float
    n: int
    level: float = 0.95
    unit: str = "examples"
    """What `n` counts: what was resampled, so what the interval is over (sentences, seeds …)."""
    needed: int | None = None
    """How many of `unit` would settle an open question; None: as the root of n tells."""
    tested: tuple[float, float] | None = None
    """A value and the two-sided p-value of a test that decides whether the truth lies on the same
    side of it as the estimate. The bound there agrees with the test, at every level."""
    lasting: float = 0.0
    """The share of the width that no number of `unit` takes away."""
    counted: bool = False
    """Whether the bounds count what is sure and what is not excluded: they follow no law."""
    remedy: str = ""
    """What would settle an open question where no number of `unit` would."""
    freedom: float | None = None
    """Degrees of freedom of Student's quantiles; None: n - 1."""
    foreseen: tuple[tuple[int, float, float], ...] = ()
    """What more of `unit` would give where bounds follow no root law: numbers, low and high."""
    controls: tuple[tuple[str, Estimate], ...] = ()
    """What else could make such a number, and what is left beyond it; see `with_controls`."""

    def __post_init__(self) -> None:
        # NumPy scalars would not survive a round trip through JSON.
        for name in ("value", "low", "high", "level"):
            object.__setattr__(self, name, float(getattr(self, name)))
        object.__setattr__(self, "n", int(self.n))
        if self.needed is not None:
            object.__setattr__(self, "needed", int(self.needed))
        if self.tested is not None:
            value, p = self.tested
            object.__setattr__(self, "tested", (float(value), float(p)))
        if self.freedom is not None:
            object.__setattr__(self, "freedom", float(self.freedom))
        foreseen = tuple((int(n), float(low), float(high)) for n, low, high in self.foreseen)
        object.__setattr__(self, "foreseen", foreseen)
        controls = tuple(
            (str(name), one if isinstance(one, Estimate) else Estimate(**one))
            for name, one in self.controls
        )
        object.__setattr__(self, "controls", controls)

    def as_record(self) -> dict[str, Any]:
        """Plain values, as JSON holds them; what few estimates have is there where they have it."""
        always = {"value", "low", "high", "n", "level", "unit"}
        return {
            field.name: _listed(getattr(self, field.name))
            for field in fields(self)
            if field.name in always or getattr(self, field.name) != field.default
        }

    def with_controls(self, controls: Mapping[str, Estimate | None]) -> Estimate:
        """The same number, on which a claim holds only if it is surely there beyond all of these.

        The number is the one that the claim states, and it alone makes the claim fail. A control is
        something else that could make such a number (a guess, shuffled weights, noise), by name,
        with what is left beyond it: passed where that is surely above zero. All must be passed, so
        each is tested at the full level (an intersection–union test). Where one is not, the claim
        is not judged: what the number shows may be due to the control. One that could not be
        measured (None) is not passed.
        """
        unknown = replace(self, value=math.nan, low=math.nan, high=math.nan, controls=())
        more = ((name, unknown if one is None else one) for name, one in controls.items())
        return replace(self, controls=(*self.controls, *more))

    def beyond_all(self) -> Estimate:
        """The smallest of this and of what is left beyond its controls, as tables show it."""
        controls = (
            one if one.level > self.level else one.at_level(self.level) for _, one in self.controls
        )
        return least_of([replace(self, controls=()), *controls])

    @property
    def missed(self) -> dict[str, Estimate]:
        """The controls that are not surely passed."""
        return {name: one for name, one in self.controls if not one.low > 0}

    @property
    def surely_there(self) -> bool:
        """Whether it is surely above zero, and beyond all of its controls."""
        return self.low > 0 and not self.missed

    def counting(self, unit: str) -> Estimate:
        """The same number, with the name of what `n` counts."""
        return replace(self, unit=unit)

    def expected_at(self, n: int) -> Estimate:
        """What `n` observations would give around the same value: the width falls as 1/√n.

        Student's quantiles are taken along, since with a few observations they matter more. What is
        `lasting` stays; both parts add up as squares do. (So a prediction interval, which never
        falls below the spread of what it predicts, is told right to a few per cent.) A test's
        p-value falls as exp(-n) does, but for what is lasting.
        """
        if self.foreseen:
            low, high = next(
                (bounds for m, *bounds in reversed(self.foreseen) if m <= n), (self.low, self.high)
            )
            return replace(self, low=low, high=high, n=n)
        quantile = (1 + self.level) / 2
        fewer, more = (stdtrit(self._freedom_at(m), quantile) for m in (self.n, n))
        shrunk = (more / fewer) ** 2 * self.n / n
        stays = 1.0 if self.counted else self.lasting**2
        found = self._scaled((stays + (1 - stays) * shrunk) ** 0.5)
        times = self.lasting**2 + (1 - self.lasting**2) * n / self.n
        tested = self.tested and (self.tested[0], self.tested[1] ** times)
        freedom = self.freedom and self._freedom_at(n)
        return replace(found, n=n, tested=tested, freedom=freedom)._agreeing()

    def at_level(self, level: float) -> Estimate:
        """The interval at another level, as Student's would change with its degrees of freedom.

        Exact for Student's intervals, and close for all that are nearly normal; with few
        observations it errs to the wide side. Where a test decided on which side of a value the
        truth lies, its p-value decides at the new level too.
        """
        check_level(level, "at_level")
        freedom = self._freedom_at(self.n)
        old, new = (stdtrit(freedom, (1 + at) / 2) for at in (self.level, level))
        more = math.log((1 - level) / 2) / math.log((1 - self.level) / 2)  # Chernoff's law
        needed = None if self.needed is None else math.ceil(self.needed * more)
        foreseen = tuple(
            (
                n,
                self.value - (self.value - low) * new / old,
                self.value + (high - self.value) * new / old,
            )
            for n, low, high in self.foreseen
        )
        scaled = self._scaled(new / old)
        # A control may be tested more strictly, and stays so.
        controls = tuple(
            (name, one.at_level(level) if one.level < level else one) for name, one in self.controls
        )
        found = replace(scaled, level=level, needed=needed, foreseen=foreseen, controls=controls)
        return found._agreeing()

    def _freedom_at(self, n: int) -> float:
        """Degrees of freedom with `n` observations; they grow as observations do."""
        known = n - 1 if self.freedom is None else self.freedom * n / self.n
        return max(known, 1.0)

    def _agreeing(self) -> Estimate:
        """The bound next to the tested value on the side on which the test puts it."""
        if self.tested is None or math.isnan(self.low) or math.isnan(self.high):
            return self
        at, p = self.tested
        sure = p < 1 - self.level
        if self.value > at:
            return replace(self, low=max(self.low, at + ONE_SIDE) if sure else min(self.low, at))
        if self.value < at:
            open_yet = max(self.high, at + ONE_SIDE)  # a bound of `at` would exclude all above it
            return replace(self, high=min(self.high, at - ONE_SIDE) if sure else open_yet)
        return self

    def _scaled(self, factor: float) -> Estimate:
        """Both sides of the interval, which may differ, times a factor; no end stays none."""
        below, above = (
            factor * max(0.0, x) if math.isfinite(x) else x
            for x in (self.value - self.low, self.high - self.value)
        )
        return replace(self, low=self.value - below, high=self.value + above)

    def excludes(self, x: float) -> bool:
        """Whether the interval lies wholly above or wholly below `x`."""
        return x < self.low or x > self.high

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def least_of(each: Sequence[Estimate]) -> Estimate:
    """The smallest of several numbers: for statements that say something of all of them.

    It is above a border if all are: each is tested at the full level (Berger's intersection–union
    test). Its upper bound is the smallest of theirs, which must hold together for that. What one
    of them has as a control, the smallest has.
    """
    controls = tuple(control for one in each for control in one.controls)
    # At stricter levels each bound moves by its own law; the widest of them is safe.
    tests = [one.tested for one in each if one.tested and one.tested[0] == 0]
    smallest = replace(
        min(each, key=lambda one: one.value),
        controls=controls,
        freedom=min(one.n - 1 if one.freedom is None else one.freedom for one in each),
        tested=max(tests, key=lambda test: test[1], default=None),
    )
    if any(math.isnan(one.low) for one in each):
        return replace(smallest, low=math.nan, high=math.nan)
    strict = 1 - (1 - smallest.level) / len(each)
    high = min(one.at_level(strict).high for one in each)
    return replace(smallest, low=min(one.low for one in each), high=max(high, smallest.value))


def check_level(level: float, of: str) -> float:
    """`level` if it is a probability strictly between 0 and 1, else a ParameterError."""
    if not 0 < level < 1:
        raise ParameterError("level", of, "lie strictly between 0 and 1, such as 0.95", level)
    return level


def percentile_interval(
    samples: ArrayLike, level: float = 0.95, *, axis: int = 0
) -> tuple[Floats, Floats]:
    """The middle `level` of bootstrap `samples` along `axis`."""
    tail = (1 - check_level(level, "percentile_interval")) / 2
    low, high = np.quantile(np.asarray(samples, dtype=np.float64), [tail, 1 - tail], axis=axis)
    return low, high


def _listed(value: Any) -> Any:
    """Lists in place of tuples, and records of estimates, as they come back from JSON."""
    if isinstance(value, Estimate):
        return value.as_record()
    return [_listed(one) for one in value] if isinstance(value, tuple) else value


def mean_interval(values: ArrayLike, level: float = 0.95) -> Estimate:
    """The mean of independent values with Student's interval; needs two values or more."""
    check_level(level, "mean_interval")
    x = np.asarray(values, dtype=np.float64).ravel()
    if x.size < 2 or not np.isfinite(x).all():
        raise DataError(
            f"An interval for a mean needs at least two finite values. Got {x.size} values, "
            f"{int(np.isfinite(x).sum())} of them finite."
        )
    half = stdtrit(x.size - 1, (1 + level) / 2) * x.std(ddof=1) / np.sqrt(x.size)
    return Estimate(x.mean(), x.mean() - half, x.mean() + half, x.size, level)


def mean_intervals(
    values: NDArray[np.floating], level: float = 0.95
) -> tuple[Floats, Floats, Floats]:
    """Means over the first axis with Student's intervals: values, lower and upper bounds."""
    n, mean = len(values), values.mean(axis=0)
    half = stdtrit(n - 1, (1 + level) / 2) * (values.std(axis=0, ddof=1) / np.sqrt(n))
    return mean, mean - half, mean + half


def rank_correlation(
    x: ArrayLike, y: ArrayLike, *, resamples: int = 2000, level: float = 0.95, seed: int = 0
) -> Estimate:
    """Spearman's correlation with a percentile bootstrap interval over the pairs.

    Each resample is ranked anew. A constant side has no order: the correlation is then 0.
    """
    from scipy.stats import rankdata  # here, because it is slow to import

    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1 or a.size < 3 or not np.isfinite([a, b]).all():
        raise DataError(
            "A rank correlation needs two lists of the same length, three finite numbers or more. "
            f"Got shapes {a.shape} and {b.shape}."
        )

    def correlate(u: Floats, v: Floats) -> Floats:
        u, v = (rankdata(side, axis=-1) - (a.size + 1) / 2 for side in (u, v))
        scale = np.sqrt((u * u).sum(-1) * (v * v).sum(-1))
        ratio: Floats = (u * v).sum(-1) / np.where(scale > 0, scale, 1.0)
        return ratio

    rng, rows, drawn = np.random.default_rng(seed), max(1, _DRAWN // a.size), list[Floats]()
    for start in range(0, resamples, rows):
        picks = rng.integers(a.size, size=(min(rows, resamples - start), a.size))
        drawn.append(correlate(a[picks], b[picks]))
    low, high = percentile_interval(np.concatenate(drawn), level)
    return Estimate(float(correlate(a, b)), float(low), float(high), a.size, level)


def distinct(values: Floats) -> tuple[Floats, Floats]:
    """The different values of each row of (V, N), and how often each occurs: (V, U), (V, U).

    Flips of class ids give a handful of values; what follows is then much less work.
    """
    ordered = np.sort(values, axis=1)
    new = np.ones(ordered.shape, bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    place = new.cumsum(axis=1) - 1  # which of the different values it is
    most = int(place[:, -1].max()) + 1
    rows = np.arange(len(values))[:, None]
    support = np.repeat(ordered[:, :1], most, axis=1)
    support[np.broadcast_to(rows, place.shape)[new], place[new]] = ordered[new]
    counts = np.bincount((rows * most + place).ravel(), minlength=support.size)
    return support, counts.reshape(support.shape).astype(np.float64)


def bounded_mean_bounds(
    values: Floats, counts: ArrayLike | None, *, low: ArrayLike, high: ArrayLike, budget: ArrayLike
) -> tuple[Floats, Floats]:
    """Bounds for the mean of each row of `values` (V, U), seen `counts` (V, U) times each.

    The true values lie in [low, high]; `budget` is in nats (see the module's text). `low`,
    `high` and `budget` may be given for each row. A row without observations gets [low, high].
    """
    below, above = np.negative(high), np.negative(low)
    lower = -upper_mean_bound(-values, counts, low=below, high=above, budget=budget)
    return lower, upper_mean_bound(values, counts, low=low, high=high, budget=budget)


def upper_mean_bound(
    values: Floats, counts: ArrayLike | None, *, low: ArrayLike, high: ArrayLike, budget: ArrayLike
) -> Floats:
    """The upper one (V,) of `bounded_mean_bounds`."""
    rows = values.shape[0]
    bottom, top, nats = (
        np.broadcast_to(np.asarray(v, dtype=np.float64), (rows,)) for v in (low, high, budget)
    )
    found = np.empty(rows)
    for some in _few_rows(values):
        seen = None if counts is None else np.asarray(counts, dtype=np.float64)[some]
        found[some] = _upper_bounds(values[some], seen, bottom[some], top[some], nats[some])
    return found


def _few_rows(values: Floats) -> Iterator[slice]:
    """Rows are independent of each other, so memory need not grow with their number."""
    step = max(1, _HELD // max(1, values.shape[1]))
    yield from (slice(start, start + step) for start in range(0, values.shape[0], step))


def _upper_bounds(
    values: Floats, counts: Floats | None, bottom: Floats, top: Floats, nats: Floats
) -> Floats:
    weights = np.ones_like(values) if counts is None else counts
    n = weights.sum(axis=1)
    width = top - bottom
    safe = np.where(width > 0, width, 1.0)
    unit = np.clip((values - bottom[:, None]) / safe[:, None], 0.0, 1.0)
    # A row without observations is computed as if it had some, and replaced below.
    share = np.where(n > 0, weights.T, 1.0).T / np.where(n > 0, n, values.shape[1])[:, None]
    bound = _unit_upper(unit, share, nats / np.maximum(n, 1))
    return np.where(n > 0, bottom + width * bound, top)


def _unit_upper(x: Floats, share: Floats, budget: Floats) -> Floats:
    """The largest mean on [0, 1] within `budget` nats per value of the shares `share` at `x`.

    The extreme distribution has weights proportional to share / (v - x) for some v >= 1; when
    v would have to fall below 1, the rest of its mass sits at 1 instead.
    """

    def distance(log_gap: Floats) -> tuple[Floats, Floats]:
        """Nats, and how they change with `log_gap`."""
        gap = np.exp(log_gap)
        below = 1 + gap[:, None] - x
        parts = share / below
        whole = parts.sum(1)
        nats: Floats = (share * np.log(below)).sum(1) + np.log(whole)
        return nats, gap * (whole - (parts / below).sum(1) / whole)

    near, far = (np.full(x.shape[0], np.log(gap)) for gap in (1e-12, 1e8))
    at_least, _ = distance(near)
    beyond = at_least < budget  # v would have to be less than 1
    spread = (share * (x - (share * x).sum(1)[:, None]) ** 2).sum(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Where all of a normal distribution's budget goes; nan, if both are 0, is put right below.
        found = np.clip(np.log(spread / (2 * budget)) / 2, near, far)
        found = np.where(beyond | np.isnan(found), near, found)
        for _ in range(_STEPS):
            nats, slope = distance(found)
            too_far = nats < budget
            near, far = np.where(too_far, near, found), np.where(too_far, found, far)
            # The logarithm of the nats is nearly a line, so that few steps of Newton's suffice.
            step = found - nats * np.log(nats / budget) / slope
            step = np.where((step > near) & (step < far), step, (near + far) / 2)
            moved = np.where(beyond, 0.0, np.abs(step - found))
            found = np.where(beyond, found, step)
            if moved.max(initial=0.0) < _CLOSE:
                break
    tilt = share / (1 + np.exp(found)[:, None] - x)
    tilted = (tilt * x).sum(1) / np.maximum(tilt.sum(1), 1e-300)
    kept = np.where(beyond, np.exp(np.minimum(at_least - budget, 0)), 1.0)
    bound: Floats = np.clip(kept * tilted + 1 - kept, 0.0, 1.0)
    return bound


def evidence_against_zero(values: Floats, counts: ArrayLike | None, *, reach: Floats) -> Floats:
    """The `budget` (V,) at which `bounded_mean_bounds` of each row first touch 0.

    `reach` (V,) is the largest size a value may have on either side.
    """
    found = np.empty(values.shape[0])
    for some in _few_rows(values):
        seen = None if counts is None else np.asarray(counts, dtype=np.float64)[some]
        found[some] = _evidence(values[some], seen, reach[some])
    return found


def _evidence(values: Floats, counts: Floats | None, reach: Floats) -> Floats:
    weights = np.ones_like(values) if counts is None else counts
    signs = np.sign((weights * values).sum(axis=1))
    x = values * (signs / np.where(reach > 0, reach, 1.0))[:, None]
    near, far = np.zeros(x.shape[0]), np.full(x.shape[0], 1 - 1e-12)
    at_end = (weights * x / (1 + far[:, None] * x)).sum(axis=1) >= 0  # it rises all the way
    found = np.where(at_end, far, near)
    for _ in range(_STEPS):
        parts = x / (1 + found[:, None] * x)
        slope, bend = (weights * parts).sum(axis=1), (weights * parts * parts).sum(axis=1)
        rising = slope > 0
        near, far = np.where(rising, found, near), np.where(rising, far, found)
        step = found + slope / np.where(bend > 0, bend, 1.0)
        step = np.where((step > near) & (step < far), step, (near + far) / 2)
        moved = np.where(at_end, 0.0, np.abs(step - found))
        found = np.where(at_end, found, step)
        if moved.max(initial=0.0) < _CLOSE:
            break
    evidence: Floats = (weights * np.log1p(found[:, None] * x)).sum(axis=1)
    return np.maximum(evidence, 0.0)
