"""A race: variants leave as soon as their effect is settled, and the promise still holds.

Every variant has a confidence sequence (`stats.ConfidenceSequence`) for the mean of its
per-example differences to the baseline. It leaves the race when that interval lies above 0
("helps"), below 0 ("hurts") or within the margin ("negligible"). The sequences hold at all times
and for all variants together, so with probability `level` no decision is wrong, whenever and for
whatever reason the race stops.

What may race: differences that are means of bounded per-example values, such as accuracy (-1, 0,
1) or the probability of the right label. F1, Matthews and correlations are not such means.
Examples must come in random order. Rare changes need many examples before they are settled:
among 156 variants, one that changes nothing is known to be within ±0.01 of 0 after about 1,200
examples, so on a few hundred examples only the large effects leave early.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertology.errors import ParameterError
from bertology.stats import ConfidenceSequence, Estimate
from bertology.stats.intervals import check_level

__all__ = ["Decision", "Race", "RaceSimulation", "simulate_race"]

Floats = NDArray[np.float64]


class Decision(StrEnum):
    """What a race says of one variant."""

    HELPS = "helps"
    HURTS = "hurts"
    NEGLIGIBLE = "negligible"
    OPEN = "open"


class Race:
    """Follow `variants` against a baseline until each is settled or the examples run out.

    `margin` is the size of a difference that nobody minds; 0 never calls one negligible.
    """

    def __init__(
        self,
        variants: int,
        *,
        margin: float = 0.01,
        level: float = 0.95,
        low: float = -1.0,
        high: float = 1.0,
    ) -> None:
        if variants < 1:
            raise ParameterError("variants", "Race", "be at least 1", variants)
        if not margin >= 0:
            raise ParameterError("margin", "Race", "be 0 or more", margin)
        if not low < 0 < high:
            raise ParameterError("low", "Race", "be below 0, and high above 0", (low, high))
        self.level, self.margin = check_level(level, "Race"), margin
        # One Bonferroni share for each variant: nothing is assumed about how they hang together.
        each = 1 - (1 - level) / variants
        self._sequence = ConfidenceSequence(variants, low=low, high=high, level=each)
        self._sums = np.zeros(variants)
        self._decisions = np.full(variants, Decision.OPEN, dtype=object)

    @property
    def active(self) -> NDArray[np.bool_]:
        """Which variants (V,) still need examples."""
        return np.asarray(self._decisions == Decision.OPEN)

    @property
    def seen(self) -> NDArray[np.int64]:
        """How many examples each variant (V,) was tried on."""
        return self._sequence.seen.copy()

    @property
    def decisions(self) -> list[Decision]:
        """One for each variant."""
        return list(self._decisions)

    def update(self, differences: ArrayLike) -> NDArray[np.bool_]:
        """Add a block (n, A) of per-example differences of the active variants, in their order.

        Returns the new `active` mask.
        """
        running = np.flatnonzero(self.active)
        block = np.asarray(differences, dtype=np.float64)
        self._sequence.update(block, running)
        self._sums[running] += block.sum(axis=0)
        low, high = self._sequence.interval()
        verdicts = (
            (Decision.NEGLIGIBLE, (low > -self.margin) & (high < self.margin)),
            (Decision.HURTS, high < 0),
            (Decision.HELPS, low > 0),
        )
        # The sign is the stronger statement: it is set last.
        for decision, holds in verdicts:
            self._decisions[running[holds[running]]] = decision
        return self.active

    def interval(self) -> tuple[Floats, Floats]:
        """Bounds (V,), (V,) that hold for all variants together with probability `level`."""
        return self._sequence.interval()

    def estimates(self) -> list[Estimate]:
        """The mean difference of each variant over the examples it saw, with those bounds."""
        low, high = self.interval()
        # A bound that an earlier block gave may exclude today's mean; the bound is what holds.
        means = np.clip(self._sums / np.maximum(self.seen, 1), low, high)
        columns = zip(means, low, high, self.seen, strict=True)
        return [Estimate(m, a, b, n, self.level) for m, a, b, n in columns]


@dataclass(frozen=True)
class RaceSimulation:
    """What `simulate_race` saw."""

    promised: float
    """The largest share of races with a wrong decision that the level allows."""
    observed: float
    """The share of races in which at least one decision was wrong."""
    saved: float
    """The share of (variant, example) evaluations that were not needed."""
    decided: dict[str, float]
    """The share of variants that got each decision."""
    races: int


def simulate_race(
    gains: Sequence[float],
    losses: Sequence[float],
    *,
    examples: int,
    block: int = 50,
    races: int = 100,
    margin: float = 0.01,
    seed: int = 0,
) -> RaceSimulation:
    """Race variants of known effect against each other, at level 0.95, again and again.

    Variant v mends an example (difference 1) with probability gains[v] and spoils it (-1) with
    losses[v], so that its true effect is gains[v] - losses[v].
    """
    up, down = np.asarray(gains, dtype=np.float64), np.asarray(losses, dtype=np.float64)
    if up.shape != down.shape or up.ndim != 1 or (up < 0).any() or (down < 0).any():
        raise ParameterError("gains", "simulate_race", "match losses, one rate for each", gains)
    if (up + down > 1).any():
        raise ParameterError("gains", "simulate_race", "give at most 1 with losses", gains)
    truth, level = up - down, 0.95
    rng = np.random.default_rng(seed)
    wrong, used = 0, 0
    tally = dict.fromkeys((d.value for d in Decision), 0)
    for _ in range(races):
        race = Race(up.size, margin=margin, level=level)
        for start in range(0, examples, block):
            on = np.flatnonzero(race.active)
            if not on.size:
                break
            chance = rng.random((min(block, examples - start), on.size))
            moved = (chance < up[on]).astype(np.float64) - (chance > 1 - down[on])
            race.update(moved)
        decisions = np.array(race.decisions, dtype=object)
        wrong += bool(_mistaken(decisions, truth, margin).any())
        used += int(race.seen.sum())
        for decision in Decision:
            tally[decision.value] += int((decisions == decision).sum())
    return RaceSimulation(
        promised=1 - level,
        observed=wrong / races,
        saved=1 - used / (races * examples * up.size),
        decided={name: count / (races * up.size) for name, count in tally.items()},
        races=races,
    )


def _mistaken(decisions: NDArray[np.object_], truth: Floats, margin: float) -> NDArray[np.bool_]:
    mistaken = (
        ((decisions == Decision.HELPS) & (truth <= 0))
        | ((decisions == Decision.HURTS) & (truth >= 0))
        | ((decisions == Decision.NEGLIGIBLE) & (np.abs(truth) > margin))
    )
    return np.asarray(mistaken, dtype=np.bool_)
