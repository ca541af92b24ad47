"""What a change by training must beat: weight noise of the same size.

A study of two models, one trained from the other, measures noisy copies of the earlier one as well
(`model/weight_noise.py`), whose weights are moved at random as far as training moved them. If
training were nothing but noise, the trained model would be one more draw of it. So the interval
of "trained less noise" is the one that predicts a further draw (Student's, √(1 + 1/draws) times
the spread of draws): noise in the place of training lies outside of it as rarely as `level` says.

Copies differ more than examples do, and with few of them the interval is wide. So there are many,
and each reads some of the examples only, drawn at random; it is compared with the trained model on
the same ones. How much of the spread of draws is due to examples can be told where the influence of
each example on each draw is known (`ExampleErrors`): that part goes away with more examples, the
rest is of noise itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, stdtrit

from bertology.arrays import Floats
from bertology.parameters import parameter
from bertology.stats import Estimate
from bertology.stats.layer_orders import OfLayers, in_this_order
from bertology.stats.partial_means import PartialMeans
from bertology.studies.designs.blocks import Resampled
from bertology.studies.designs.parts import start_of

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus


LAST = 2  # the layers that claims are about
_STEP = 1e-6  # of a derivative, as a share of what an example does
Contrasts = Callable[[Floats], Floats]


@dataclass(frozen=True)
class ProfileInfluences:
    """What each example does to profiles of change: (examples, copies, layers) each."""

    noise: Floats
    matched: Floats
    unit: str


def last_layers(
    change: Floats,
    noise: Floats,
    matched: Floats,
    means: Callable[[Floats], PartialMeans],
    influences: ProfileInfluences | None = None,
) -> dict[str, Estimate | None]:
    """What the last two layers changed beyond the others, and beyond what noise does.

    `change` is (examples, layers); `noise` and, in the same examples, `matched` are (copies,
    layers). A change is judged as it is, and holds only beyond noise (`beyond_noise`). Against the
    largest other layer, the lower bound is the lowest of all comparisons' own, since the statement
    says that all are led (an intersection–union test); the upper one is corrected for their number.
    `means` gives means of rows over examples, with their bounds. Nothing is surely above 0 that
    layers in a random order often show as well. With `influences`, what examples do to "trained
    less noise" is told apart from what noise does.
    """
    if change.shape[1] <= LAST:
        return {}
    found = dict[str, Estimate | None]()
    for name, contrasts in (
        ("last_two_over_mean", _over_mean),
        ("last_two_over_largest", _over_each),
        ("each_of_last_two_over_largest", _each_over_each),
    ):
        over = means(contrasts(change)).smallest()  # of (comparisons, examples)
        if over is not None:
            trained, noisy = _both(contrasts, matched, noise)
            errors = None
            if influences is not None:
                over = over.counting(influences.unit)
                errors = _errors(contrasts, matched, noise, influences)
            beyond = beyond_noise(over, trained, noisy, errors)
            found[name] = in_this_order(beyond, change.mean(axis=0), _smallest(contrasts))
    return found


def _smallest(contrasts: Contrasts) -> OfLayers:
    """The smallest difference, of values (…, layers)."""

    def smallest(values: Floats) -> Floats:
        found: Floats = contrasts(np.atleast_2d(values)).min(axis=0).reshape(values.shape[:-1])
        return found

    return smallest


def _both(contrasts: Contrasts, matched: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """(rows,) each: the smallest difference of the trained model, and of scaled noise."""
    scaled = as_large_as(matched, noise)
    return contrasts(matched).min(axis=0), contrasts(scaled).min(axis=0)


def as_large_as(matched: Floats, noise: Floats) -> Floats:
    """(copies, layers): noise as large as the training's change over all layers.

    Where the change went is the question, and not how much of it there is.
    """
    size, moved = (profile.mean(axis=1, keepdims=True) for profile in (matched, noise))
    scaled: Floats = noise * (size / np.maximum(moved, 1e-30))
    return scaled


def _errors(
    contrasts: Contrasts, matched: Floats, noise: Floats, influences: ProfileInfluences
) -> ExampleErrors:
    """By a derivative along what each example does, so that all steps above are in it."""
    trained, noisy = _both(contrasts, matched, noise)
    found = []
    for of_matched, of_noise in zip(influences.matched, influences.noise, strict=True):
        moved = _both(contrasts, matched + _STEP * of_matched, noise + _STEP * of_noise)
        found.append((moved[0] - moved[1] - trained + noisy) / _STEP)
    return ExampleErrors.of(np.array(found), influences.unit)


def _over_mean(change: Floats) -> Floats:
    """(1, rows): the last two layers less the mean of the others."""
    found: Floats = (change[:, -LAST:].mean(1) - change[:, :-LAST].mean(1))[None]
    return found


def _over_each(change: Floats) -> Floats:
    """(others, rows): the last two layers less each other one."""
    found: Floats = (change[:, -LAST:].mean(1, keepdims=True) - change[:, :-LAST]).T
    return found


def _each_over_each(change: Floats) -> Floats:
    """(2 · others, rows): each of the last two less each other one."""
    last, others = change[:, -LAST:], change[:, :-LAST]
    found: Floats = (last[:, :, None] - others[:, None]).reshape(len(change), -1).T
    return found


NO_NOISE = "not judged: noise 0 leaves out the noisy copies that a change by training must beat"

WEIGHT_NOISE = "weight noise of the same size"
_COPIES = "noisy copies"
_PASSES = 5  # over all examples, by all copies together
_NOISE_VARIES = (
    "noise of this size varies as much by itself: neither more examples nor more copies would "
    "settle it, but another training may"
)
_MORE_COPIES = "more noisy copies (--noise), together with more {unit}, would settle it"


@dataclass(frozen=True)
class NoiseControlled(Resampled):
    """Sets what training changed against what noise of the same size changes."""

    block_on_gpu: ClassVar[int | None] = 512  # noise is drawn anew for each block
    fewest_by_copy: ClassVar[int] = 0  # examples that each copy reads if there are so many

    noise: int = parameter(
        20,
        "Copies of the earlier model with weight noise as large as the change; 0: none. Up to 5 "
        "read all examples, more of them a random part each: in all five times the examples.",
        minimum=0,
        maximum=100,
    )

    def read_by_copies(self, part: str, corpus: Corpus) -> list[NDArray[np.int64]]:
        """Which examples of a part each copy reads, in their order.

        A copy reads as many of all, and the same ones whatever the blocks are.
        """
        n, first, last = len(self.shown(corpus)), start_of(part), int(part.split("-")[2])
        size = math.ceil(n * min(1.0, _PASSES / max(self.noise, 1)))
        size = max(size, min(n, self.fewest_by_copy))
        found = []
        for copy in range(self.noise):
            chosen = np.random.default_rng((self.seed, copy)).permutation(n)[:size]
            found.append(np.sort(chosen[(chosen >= first) & (chosen < last)]) - first)
        return found


@dataclass(frozen=True)
class ExampleErrors:
    """What other examples would do to draws of "trained less noise"."""

    shared: float
    """The standard error of the mean of draws: what examples do to all of them alike."""
    apart: float
    """How far examples alone spread draws: a standard deviation."""
    n: int
    unit: str

    @classmethod
    def of(cls, influence: NDArray[np.float64], unit: str) -> ExampleErrors:
        """Of what each example does to each draw (examples, copies)."""
        n = len(influence)
        shared = float(influence.mean(axis=1).std(ddof=1)) / math.sqrt(n)
        apart = math.sqrt(float(influence.var(axis=1, ddof=1).sum())) / n
        return cls(shared, apart, n, unit)


def beyond_noise(
    change: Estimate, trained: ArrayLike, noisy: ArrayLike, errors: ExampleErrors | None = None
) -> Estimate:
    """The change, with what is left of it beyond noise as its control.

    `change` is over all examples. `noisy` is the same number for each noisy copy, and `trained`
    for the trained model on the copy's examples; both may be scaled alike. With fewer than two
    copies, or with copies that do not differ, the control has no interval and is not passed.
    Without `errors`, the error of the change itself stands for that of what is beyond noise, which
    is the larger one: trained and noisy models read the same examples.
    """
    draws = np.ravel(np.asarray(trained, np.float64) - np.asarray(noisy, np.float64))
    value = draws.mean() if draws.size else math.nan
    if draws.size < 2 or not np.isfinite(draws).all() or np.ptp(draws) <= 0:
        beyond = Estimate(value, math.nan, math.nan, draws.size, change.level, _COPIES)
    else:
        beyond = _beyond(change, value, float(draws.std(ddof=1)), draws.size, errors)
    return change.with_controls({WEIGHT_NOISE: beyond})


def _beyond(
    change: Estimate, value: float, spread: float, copies: int, errors: ExampleErrors | None
) -> Estimate:
    """`value` with the interval that predicts a further draw of noise, and the error of examples.

    However many copies there are, a draw differs from their mean by its own spread.
    """
    tail = (1 + change.level) / 2
    student = float(stdtrit(copies - 1, tail)) * math.sqrt(1 + 1 / copies)
    if errors is None:
        own = max(change.high - change.value, change.value - change.low, 0.0)
        half = math.hypot(student * spread, own)
        lasting = math.hypot(ndtri(tail) * spread, own) / half
        low, high = value - half, value + half
        return Estimate(
            value, low, high, copies, change.level, _COPIES, lasting=lasting, remedy=_NOISE_VARIES
        )
    half = math.hypot(student * spread, float(stdtrit(errors.n - 1, tail)) * errors.shared)
    of_noise = math.sqrt(max(spread**2 - errors.apart**2, 0.0))
    more = abs(value) > ndtri(tail) * of_noise
    return Estimate(
        value,
        value - half,
        value + half,
        errors.n,
        change.level,
        errors.unit,
        lasting=student * of_noise / half,
        remedy=_MORE_COPIES.format(unit=errors.unit) if more else _NOISE_VARIES,
        freedom=copies - 1,
    )
