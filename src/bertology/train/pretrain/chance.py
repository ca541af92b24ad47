"""Random numbers that depend only on a seed, on names, and on where they are used.

A generator gives other numbers on a GPU than on a CPU, with another batch size, or after a resume
without its state. Here the number for row 17, position 5 of epoch 2 is a hash of exactly that,
computed for whole tensors at once, on any device. So masks are the same everywhere, and there is
no state to keep.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

import torch
from torch import Tensor

_STEP = -7046029254386353131  # 2^64 / the golden ratio, as a signed number
_FIRST, _SECOND = -4658895280553007687, -7723592293110705685  # the multipliers of splitmix64


@dataclass(frozen=True)
class Chance:
    """A source of random numbers; `chance("mask", 3)` gives another, independent source."""

    seed: int = 0
    path: tuple[int | str, ...] = ()

    def __call__(self, *names: int | str) -> Chance:
        return Chance(self.seed, (*self.path, *names))

    @property
    def key(self) -> int:
        """A signed 64-bit number for this source."""
        text = repr((self.seed, self.path)).encode()
        return int.from_bytes(blake2b(text, digest_size=8).digest(), "big", signed=True)

    def uniform(self, *where: Tensor) -> Tensor:
        """Numbers from 0 to below 1, one for each combination of the broadcast integer tensors."""
        # 24 bits are what a float32 holds exactly.
        return _shifted(self.bits(*where), 40).to(torch.float32) * 2.0**-24

    def below(self, limit: int, *where: Tensor) -> Tensor:
        """Integers from 0 to below `limit`."""
        return _shifted(self.bits(*where), 1) % limit

    def bits(self, *where: Tensor) -> Tensor:
        """64 random bits as int64, one for each combination of the broadcast integer tensors."""
        state = torch.full_like(where[0], self.key, dtype=torch.int64)
        for index in where:
            state = _mixed(state ^ _mixed(index.to(torch.int64) * _STEP + _STEP))
        return state


def _mixed(z: Tensor) -> Tensor:
    """The finaliser of splitmix64; products wrap around, on every device."""
    z = (z ^ _shifted(z, 30)) * _FIRST
    z = (z ^ _shifted(z, 27)) * _SECOND
    return z ^ _shifted(z, 31)


def _shifted(z: Tensor, by: int) -> Tensor:
    """Shift to the right, zeros from the left; torch's own >> repeats the sign."""
    return (z >> by) & ((1 << (64 - by)) - 1)
