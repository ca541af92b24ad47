"""Whole numbers of a few bits, packed into bytes without gaps."""

from __future__ import annotations

import torch
from torch import Tensor

_BYTE = 8


def packed_size(count: int, bits: int) -> int:
    """How many bytes so many numbers take."""
    return -(-count * bits // _BYTE)


def pack(codes: Tensor, bits: int) -> Tensor:
    """Numbers below 2^bits, in any shape, as bytes: the lowest bits of the first number first."""
    flat = codes.reshape(-1).to(torch.uint8)
    if bits == _BYTE:
        return flat.clone()
    single = (flat[:, None] >> _places(bits, flat)) & 1  # (count, bits)
    row = torch.zeros(
        packed_size(flat.numel(), bits) * _BYTE, dtype=torch.uint8, device=flat.device
    )
    row[: single.numel()] = single.reshape(-1)
    return _joined(row.reshape(-1, _BYTE))


def unpack(packed: Tensor, bits: int, count: int) -> Tensor:
    """The `count` numbers that were packed, as bytes of their own."""
    if bits == _BYTE:
        return packed[:count]
    single = (packed[:, None] >> _places(_BYTE, packed)) & 1  # (bytes, 8)
    return _joined(single.reshape(-1)[: count * bits].reshape(count, bits))


def _places(bits: int, like: Tensor) -> Tensor:
    return torch.arange(bits, dtype=torch.uint8, device=like.device)


def _joined(single: Tensor) -> Tensor:
    """(count, bits) of zeros and ones -> (count,)"""
    return (single << _places(single.shape[1], single)).sum(1, dtype=torch.uint8)
