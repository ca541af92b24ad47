"""The masks of a pruning, step by step: each keeps some of what the one before it kept.

Which step a weight went in tells all of them, so that a weight takes one number instead of one bit
for each step. The numbers are kept as bits of bits (`planes`): ten steps of 110 million weights are
four planes, 55 MB, and the mask of any step is made of them without a number being unpacked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertology.model.part_masks import PartMask
from bertology.model.weight_masks import WeightMask, size_of
from bertology.stats.survivors import bits_at_step

Truths = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class NestedParts:
    """Masks of heads and MLPs: few enough to keep each as it is."""

    heads: Truths  # (steps, layers, heads)
    mlps: Truths  # (steps, layers)

    @classmethod
    def begin(cls, mask: PartMask) -> NestedParts:
        """The mask of the whole model alone."""
        return cls(mask.heads[None], mask.mlps[None])

    def then(self, mask: PartMask) -> NestedParts:
        """With the mask of one more step."""
        return NestedParts(
            np.concatenate([self.heads, mask.heads[None]]),
            np.concatenate([self.mlps, mask.mlps[None]]),
        )

    def at(self, step: int) -> PartMask:
        """The mask of a step."""
        return PartMask(self.heads[step], self.mlps[step])


@dataclass(frozen=True, eq=False)
class NestedWeights:
    """Masks of weights, as the last step that each weight is left in; step 0 has all of them."""

    planes: tuple[WeightMask, ...]  # the bits of these numbers, the lowest first
    whole: WeightMask
    steps: int

    @classmethod
    def begin(cls, mask: WeightMask) -> NestedWeights:
        """The mask of the whole model alone."""
        return cls((), mask, 1)

    @classmethod
    def of(cls, planes: Sequence[WeightMask], shapes: WeightMask, steps: int) -> NestedWeights:
        """What was kept: planes, any mask of these shapes, and how many steps there are."""
        ones = {n: np.packbits(np.ones(size_of(s), bool)) for n, s in shapes.shapes.items()}
        return cls(tuple(planes), WeightMask(shapes.shapes, ones), steps)

    def then(self, mask: WeightMask) -> NestedWeights:
        """With the mask of one more step, which keeps nothing that was gone."""
        step, planes = self.steps, list(self.planes)
        if step.bit_length() > len(planes):
            nothing = {name: np.zeros_like(bits) for name, bits in mask.bits.items()}
            planes.append(WeightMask(mask.shapes, nothing))
        for at, plane in enumerate(planes):
            one = step >> at & 1
            bits = {
                name: bits | mask.bits[name] if one else bits & ~mask.bits[name]
                for name, bits in plane.bits.items()
            }
            planes[at] = WeightMask(plane.shapes, bits)
        return NestedWeights(tuple(planes), self.whole, step + 1)

    def at(self, step: int) -> WeightMask:
        """The mask of a step."""
        if not step:
            return self.whole
        return WeightMask(
            self.whole.shapes,
            {n: bits_at_step([p.bits[n] for p in self.planes], step) for n in self.whole.shapes},
        )
