"""Which weights are the smallest, exactly, without sorting or copying a model.

Some weights, at even distances, tell about where the threshold lies. One pass counts all that are
surely below and gathers the few near it, among which the threshold is found exactly; a second pass
writes the new mask. Where the guess was wrong, which its count tells, the pass is made again with
wider bounds: so the guess decides how long it takes and nothing else. A few hundred thousand
weights are in work at a time. Of weights that are equal to the last digit, those that come first
in the model go first, so the same model always gives the same mask.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from bertology.errors import ModelError, ParameterError
from bertology.model.weight_masks import WeightMask

THRESHOLDS = ("global", "matrix")
_CHUNK = 1 << 18  # weights in work at a time; a multiple of 8
_SAMPLE = 1 << 17  # weights that tell where the threshold lies
_WIDTH = 6.0  # standard errors of their quantile, at first

Floats = NDArray[np.float32]
Truths = NDArray[np.bool_]
Bits = NDArray[np.uint8]


def without_smallest(
    model: nn.Module, mask: WeightMask, *, share: float = 0.1, threshold: str = "global"
) -> WeightMask:
    """The mask without the smallest `share` of what it keeps now, at least one weight.

    Sizes are those of the model's weights as they are. `global`: one threshold for all matrices, so
    that some lose more than others; `matrix`: each matrix loses the same share.
    """
    if not 0 < share < 1:
        raise ParameterError("share", "without_smallest", "be between 0 and 1", share)
    if threshold not in THRESHOLDS:
        must = f"be {' or '.join(THRESHOLDS)}"
        raise ParameterError("threshold", "without_smallest", must, threshold)
    weights = mask.check(model)
    names, bits = list(weights), dict(mask.bits)
    for group in [names] if threshold == "global" else [[name] for name in names]:
        kept = sum(mask.kept_in(name) for name in group)
        if kept:
            matrices = [_Matrix(weights[name].detach(), mask.bits[name]) for name in group]
            found = _without(matrices, max(1, round(share * kept)), kept)
            bits |= dict(zip(group, found, strict=True))
    return WeightMask(mask.shapes, bits)


@dataclass(frozen=True)
class _Matrix:
    """One matrix, on its device, in chunks."""

    weight: Tensor
    bits: Bits

    @property
    def size(self) -> int:
        return self.weight.numel()

    def chunks(self) -> Iterator[tuple[Floats, Truths]]:
        """Sizes of weights, and which are still there, some at a time."""
        flat = self.weight.float().cpu().reshape(-1).numpy()
        for start in range(0, self.size, _CHUNK):
            some = np.abs(flat[start : start + _CHUNK])
            packed = self.bits[start // 8 : -(-(start + len(some)) // 8)]
            yield some, np.unpackbits(packed, count=len(some)).view(bool)

    def sample(self, every: int) -> Floats:
        """Sizes of some weights that are still there."""
        places = np.arange(0, self.size, every)
        there = (self.bits[places // 8] >> (7 - places % 8) & 1).astype(bool)
        found: Floats = np.abs(self.weight.reshape(-1)[::every].float().cpu().numpy()[there])
        return found


def _without(matrices: Sequence[_Matrix], count: int, kept: int) -> list[Bits]:
    """New bits of each matrix, the `count` smallest weights that were there being gone."""
    border, equal = _threshold(matrices, count, kept)
    found = []
    for matrix in matrices:
        bits = []
        for sizes, there in matrix.chunks():
            stays = there & ~(sizes < border)  # what is not a number stays
            if equal:  # so many of exactly this size go as well, the first ones
                first = np.flatnonzero(there & (sizes == border))[:equal]
                stays[first] = False
                equal -= len(first)
            bits.append(np.packbits(stays))
        found.append(np.concatenate(bits or [matrix.bits]))  # nothing goes of what is empty
    return found


def _threshold(matrices: Sequence[_Matrix], count: int, kept: int) -> tuple[np.float32, int]:
    """The `count`-th smallest size, and how many weights of exactly this size are counted."""
    every = max(1, kept // _SAMPLE) | 1  # odd, or it would always meet the same columns
    some = np.sort(np.concatenate([matrix.sample(every) for matrix in matrices]))
    width = _WIDTH
    while True:
        low, high = _bounds(some, count / kept, width)
        below, near = 0, []
        for matrix in matrices:
            for sizes, there in matrix.chunks():
                below += int(np.count_nonzero(there & (sizes < low)))
                near.append(sizes[np.flatnonzero((sizes >= low) & (sizes <= high) & there)])
        among = np.concatenate(near)
        if below < count <= below + len(among):
            wanted = count - below
            among.partition(wanted - 1)
            border = among[wanted - 1]
            return border, wanted - int(np.count_nonzero(among < border))
        if low <= 0 and math.isinf(high):
            raise ModelError("The model has weights that are not numbers, so none is the smallest.")
        width *= 8


def _bounds(some: Floats, share: float, width: float) -> tuple[np.float32, np.float32]:
    """Sizes between which a quantile of all weights very likely lies, by some of them, sorted."""
    n = len(some)
    reach = width * math.sqrt(max(n * share * (1 - share), 1.0)) if n else math.inf
    low, high = n * share - reach, n * share + reach
    return (
        np.float32(0.0) if low < 1 else some[int(low)],
        np.float32(np.inf) if high >= n - 1 else some[int(high) + 1],
    )
