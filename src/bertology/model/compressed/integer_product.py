"""Products of whole numbers on a CPU: 8-bit weights times inputs that are rounded on the fly.

Inputs get 8 bits between the least and the largest of them (zero is kept exact), anew for each
call. torch has all of it in one operation, whose weights are tensors of a kind that later versions
will drop; machines or versions without it get the same by plain operations.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["integer_product", "plain_product", "rounded_input"]

_MOST = 255
_TINY = 1e-12

Product = Callable[[Tensor], Tensor]


def integer_product(codes: Tensor, step: Tensor, bias: Tensor | None) -> Product:
    """The map whose weights are `codes` (outputs, inputs; -127 to 127) times `step` (outputs,)."""
    try:
        return _fused_product(codes, step, bias)
    except (AttributeError, NotImplementedError, RuntimeError):
        return plain_product(codes, step, bias)


def _fused_product(codes: Tensor, step: Tensor, bias: Tensor | None) -> Product:
    with warnings.catch_warnings():  # of the kind of tensor; the plain product is for that day
        warnings.simplefilter("ignore")
        weight = torch._make_per_channel_quantized_tensor(
            codes, step.double(), torch.zeros(len(codes), dtype=torch.long), 0
        )
        packed = torch.ops.quantized.linear_prepack(weight, bias)
    # Without these instructions, sums of two products overflow unless inputs have 7 bits.
    narrow = not torch.cpu._is_vnni_supported()
    product = torch.ops.quantized.linear_dynamic

    def multiply(states: Tensor) -> Tensor:
        found: Tensor = product(states, packed, narrow)
        return found

    return multiply


def plain_product(codes: Tensor, step: Tensor, bias: Tensor | None) -> Product:
    """The same in operations on plain tensors."""
    turned = codes.t()
    sums = codes.sum(1, dtype=torch.int32)  # (outputs,)

    def multiply(states: Tensor) -> Tensor:
        scale, zero = _range(states)
        whole = torch.round(states / scale).add_(zero).clamp_(0, _MOST)
        signed = (whole - 128).to(torch.int8).reshape(-1, states.shape[-1])
        counted = torch._int_mm(signed, turned)  # (…, outputs)
        shifted = counted.float() - (zero - 128) * sums
        found = shifted.mul_(scale * step).reshape(*states.shape[:-1], -1)
        return found if bias is None else found.add_(bias)

    return multiply


def rounded_input(states: Tensor) -> Tensor:
    """What inputs become, in float; gradients pass as if nothing was rounded."""
    if not states.numel():
        return states
    scale, zero = _range(states.detach())
    whole = torch.round(states.detach() / scale).add_(zero).clamp_(0, _MOST)
    near = (whole - zero) * scale
    return states + (near - states).detach() if states.requires_grad else near


def _range(states: Tensor) -> tuple[Tensor, Tensor]:
    """The step of the inputs, and the whole number that stands for zero."""
    least, most = states.min().clamp(max=0), states.max().clamp(min=0)  # aminmax is not in ONNX
    scale = ((most - least) / _MOST).clamp_min(_TINY)
    return scale, torch.round(-least / scale).clamp_(0, _MOST)
