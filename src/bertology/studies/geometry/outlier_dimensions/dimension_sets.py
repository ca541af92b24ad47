"""Sets of dimensions that are disabled: those chosen, one by one and together, and random ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

TOGETHER, SINGLE, DRAW, LONE = "together", "single", "draw", "lone draw"
SINGLES = 8  # of the chosen dimensions, the farthest, are disabled one by one


@dataclass(frozen=True)
class DimensionSet:
    """Dimensions that are disabled at once, and in which of the weights."""

    name: str
    kind: str
    dimensions: tuple[int, ...]
    scale: bool = True
    bias: bool = True

    @property
    def watched(self) -> bool:
        """Whether attention and predictions are looked at as well."""
        return self.kind in (TOGETHER, DRAW) and self.scale and self.bias


def dimension_sets(
    chosen: Sequence[int], width: int, *, draws: int, seed: int
) -> list[DimensionSet]:
    """All of `chosen`, in scale, in bias and in both; each alone; as many random ones, `draws` of
    them; and as often a single random one.

    Random sets have no dimension in common with the chosen ones or with each other. So if the
    choice meant nothing, all sets would be cut out of one shuffled row of dimensions, and the
    chosen one would be the largest as often as any other, also where a single dimension rules. With
    sets that overlap it would be so in k of `width` cases, since no draw could hold what it holds.
    There are fewer than `draws` where the dimensions do not suffice, and none where more than half
    of them are chosen.
    """
    if not chosen:
        return []
    every = tuple(chosen)
    found = [
        DimensionSet("outliers", TOGETHER, every),
        DimensionSet("outliers, scale only", TOGETHER, every, bias=False),
        DimensionSet("outliers, bias only", TOGETHER, every, scale=False),
    ]
    found += [DimensionSet(f"dimension {d}", SINGLE, (d,)) for d in every[:SINGLES]]
    rng = np.random.default_rng([seed, 1])
    others = np.setdiff1d(np.arange(width), every)
    for kind, size in ((DRAW, len(every)), (LONE, 1)):
        if kind == LONE and len(every) == 1:
            continue  # draws of one are there already
        order = rng.permutation(others)
        for i in range(min(draws, len(order) // size)):
            drawn = np.sort(order[i * size : (i + 1) * size])
            found.append(DimensionSet(f"{kind} {i}", kind, tuple(map(int, drawn))))
    return found
