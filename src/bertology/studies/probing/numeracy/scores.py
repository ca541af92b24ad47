"""How well numbers of one group, written one way, were decoded: shares, errors, gains.

Shares are over examples, whose interval is over numbers (examples of the same number are one
cluster) and over seeds together. The layer is picked on dev, by each seed for itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bertology.annotated.numbers import FAR, NEAR
from bertology.arrays import Floats
from bertology.metrics import find_metric
from bertology.stats import Estimate, least_of
from bertology.stats.crossed import crossed_difference, crossed_score
from bertology.studies.designs.probe_scores import among_copies

if TYPE_CHECKING:
    import xarray as xr

BASELINES = ("constant", "length", "vectors")
"""The mean or most frequent place; the length of the number; a random vector for each piece."""
_KNOW_NO_VALUE = ("constant", "length")
_CONTROLS = {"vectors": "a random vector for each piece"}
_SHARE = find_metric("accuracy")


class GroupScores:
    """One group in one writing; layer 0 of the arrays is the input."""

    def __init__(
        self, part: xr.Dataset, copies: Sequence[xr.Dataset], group: str, tolerance: float
    ) -> None:
        self.group, self.lists = group, bool(part.attrs["lists"])
        at = part["group"].to_numpy().tolist().index(group)
        self.reach = tolerance * float(part["range"].to_numpy()[at])
        self.dev = part["dev"].to_numpy()[:, at]  # (seeds, layers)
        self._own = {role: part[f"{role}_group"].to_numpy() == group for role in (NEAR, FAR)}
        self.target, self._clusters, self.said, self._base = (
            {role: self.of_group(part[f"{role}{ending}"].to_numpy(), role) for role in (NEAR, FAR)}
            for ending in ("_target", "_cluster", "", "_base")
        )
        """(N,) targets and clusters, (seeds, layers, N) said, (kinds, seeds, N) baselines."""
        self.picked = self.dev.argmax(axis=1)  # (seeds,)
        self._copies: list[Floats] = []  # (1, N) of right answers within the range
        for copy in copies:
            chosen = copy["dev"].to_numpy()[:, at].argmax(axis=1)
            said = self.of_group(copy[NEAR].to_numpy(), NEAR)
            self._copies.append(self.right(said[np.arange(len(chosen)), chosen], NEAR))

    @property
    def layer(self) -> int:
        """The layer that most seeds pick; -1 is the input."""
        return int(np.bincount(self.picked).argmax()) - 1

    def of_group(self, values: Floats, role: str) -> Floats:
        """Those of (…, all examples of a role) that are of this group."""
        found: Floats = values[..., self._own[role]]
        return found

    def sizes(self, role: str) -> int:
        """How many different numbers are asked about."""
        return len(np.unique(self._clusters[role]))

    def right(self, said: Floats, role: str) -> Floats:
        """(…, N) of what was said: 1 within the tolerance, or of the right place."""
        far = np.abs(said - self.target[role])
        found: Floats = (far < 0.5 if self.lists else far <= self.reach).astype(np.float64)
        return found

    def best(self, role: str) -> Floats:
        """(seeds, N) of what the picked layers say."""
        said = self.said[role]
        found: Floats = said[np.arange(len(said)), self.picked]
        return found

    def statistics(self, right: Floats, role: str) -> Floats:
        """(seeds, numbers, 2): right answers and all, by number."""
        known, place = np.unique(self._clusters[role], return_inverse=True)
        found = np.zeros((len(right), len(known), 2))
        for seed, row in enumerate(right):
            found[seed, :, 0] = np.bincount(place, row, len(known))
            found[seed, :, 1] = np.bincount(place, minlength=len(known))
        return found

    def share(self, said: Floats, role: str, level: float) -> Estimate:
        """Of right answers, of (seeds, N) that were said."""
        found = crossed_score(_SHARE, self.statistics(self.right(said, role), role), level=level)
        return _named(found)

    def base_share(self, kind: str, role: str) -> float:
        """Of right answers, by a baseline."""
        return float(self.right(self._base[role][BASELINES.index(kind)], role).mean())

    def copies_share(self) -> list[float]:
        """Of right answers within the range, by each copy with shuffled weights."""
        return [float(right.mean()) for right in self._copies]

    def best_baseline(self) -> float:
        """The largest share of right answers within the range, of all baselines."""
        copies = self.copies_share()
        bases = [self.base_share(kind, NEAR) for kind in BASELINES]
        return max([*bases, float(np.mean(copies)) if copies else 0.0])

    def gain(self, level: float, said: Floats | None = None) -> Estimate:
        """Right answers within the range beyond what knows no value: a constant, and the length.

        Controls are the other baselines and copies with shuffled weights. These differ among each
        other by more than numbers do; the model is set against their mean, as one more copy would
        be. What was trained (`said`) is not set against them.
        """
        own = self.statistics(self.right(self.best(NEAR) if said is None else said, NEAR), NEAR)
        found = {}
        for at, kind in enumerate(BASELINES):
            base = self.right(self._base[NEAR][at], NEAR)
            other = self.statistics(base[: len(own)], NEAR)
            found[kind] = crossed_difference(_SHARE, own, other, level=level)
        if said is None and len(self._copies) > 1:
            mean = np.mean([right.mean(axis=0) for right in self._copies], axis=0)
            other = self.statistics(mean[None], NEAR)
            beyond = crossed_difference(_SHARE, own, other, level=level)
            found["shuffled weights"] = among_copies(beyond, self.copies_share())
        each = {n: _named(replace(one, low=max(one.low, -1.0))) for n, one in found.items()}
        stated = least_of([each.pop(kind) for kind in _KNOW_NO_VALUE])
        return stated.with_controls({_CONTROLS.get(n, n): one for n, one in each.items()})

    def over(self, other: GroupScores, level: float) -> Estimate:
        """Right answers within the range beyond another writing's, of the same numbers."""
        one, two = (of.statistics(of.right(of.best(NEAR), NEAR), NEAR) for of in (self, other))
        return _named(crossed_difference(_SHARE, one, two, level=level))

    def errors(self, said: Floats, role: str) -> dict[str, float]:
        """Of values (seeds, N): root mean squares in units and of logarithms, and R²."""
        if self.lists:
            return {}
        true = self.target[role]
        off = np.square(said - true).mean(axis=-1)
        far = np.square(_log(said) - _log(true)).mean(axis=-1)
        return {
            "rmse": float(np.sqrt(off).mean()),
            "log_rmse": float(np.sqrt(far).mean()),
            "r2": float(1 - off.mean() / max(true.var(), 1e-12)),
        }


def apart(one: Estimate, other: Estimate) -> Estimate:
    """The difference of two shares of other numbers: arms are put together as squares.

    (Zou and Donner's method of variance estimates recovery.)
    """
    value = one.value - other.value
    below = math.hypot(one.value - one.low, other.high - other.value)
    above = math.hypot(one.high - one.value, other.value - other.low)
    return _named(
        Estimate(
            value,
            max(-1.0, value - below),
            min(1.0, value + above),
            min(one.n, other.n),
            one.level,
            one.unit,
            freedom=_fewest_free([one, other]),
        )
    )


def mean_of(found: Sequence[Estimate]) -> Estimate | None:
    """The mean of independent estimates; None of none."""
    if not found:
        return None
    value = float(np.mean([one.value for one in found]))
    below = math.sqrt(sum((one.value - one.low) ** 2 for one in found)) / len(found)
    above = math.sqrt(sum((one.high - one.value) ** 2 for one in found)) / len(found)
    n = sum(one.n for one in found)
    return _named(
        Estimate(
            value,
            max(-1.0, value - below),
            min(1.0, value + above),
            n,
            found[0].level,
            found[0].unit,
            freedom=_fewest_free(found),
        )
    )


def _fewest_free(found: Sequence[Estimate]) -> float:
    """At stricter levels what is made of several moves as the one with the fewest does at most."""
    return min(one.n - 1 if one.freedom is None else one.freedom for one in found)


def _named(found: Estimate) -> Estimate:
    """What the interval is over, where it is not seeds that make it wide."""
    return found if found.unit == "seeds" else replace(found, unit="numbers")


def _log(values: Floats) -> Floats:
    """Signed logarithms: 0 stays, 9 becomes 1, -99 becomes -2."""
    found: Floats = np.sign(values) * np.log10(1 + np.abs(values))
    return found
