"""Products of whole numbers on a CPU: 8-bit weights times inputs that are rounded on the way in.

Inputs get 8 bits between the least and the largest of them; zero is kept exact. This range is known
before (`Range`: what is beyond it becomes its end), or it is that of all inputs of the call, anew
for each. torch has all of it in one operation, whose weights are tensors of a kind that later
versions will drop; machines or versions without it get the same by plain operations.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable

import torch
from torch import Tensor

_MOST = 255
_FEWER = 127  # on machines that add up products in 16 bits
_MIDDLE = 128
_TINY = 1e-12

Product = Callable[[Tensor], Tensor]
Range = Tensor  # (2,): the least and the largest input; equal ones for a range that is not known


def is_known(span: Range | None) -> bool:
    """Whether inputs are rounded in a range that is known before."""
    return span is not None and bool(span[1] > span[0])


def integer_product(
    codes: Tensor, step: Tensor, bias: Tensor | None, span: Range | None = None
) -> Product:
    """The map whose weights are `codes` (outputs, inputs; -127 to 127) times `step` (outputs,)."""
    try:
        return _fused_product(codes, step, bias, span)
    except (AttributeError, NotImplementedError, RuntimeError):
        return plain_product(codes, step, bias, span)


def _fused_product(codes: Tensor, step: Tensor, bias: Tensor | None, span: Range | None) -> Product:
    packed = _packed(codes, step, bias)
    narrow = _overflows()
    if span is None or not is_known(span):
        dynamic = torch.ops.quantized.linear_dynamic

        def multiply(states: Tensor) -> Tensor:
            found: Tensor = dynamic(states, packed, narrow)
            return found

        return multiply
    least, most = (float(end) for end in span)
    grid = grid_of(span.float(), _FEWER if narrow else _MOST)
    scale, zero = float(grid[0]), int(grid[1])
    fixed = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32

    def multiply_known(states: Tensor) -> Tensor:
        inside = states.clamp(least, most) if narrow else states  # it ends at 255, not at 127
        found: Tensor = fixed(inside, scale, zero, packed)
        return found

    return multiply_known


def _packed(codes: Tensor, step: Tensor, bias: Tensor | None) -> object:
    """Weights in the order in which they are multiplied."""
    with warnings.catch_warnings():  # of the kind of tensor; the plain product is for that day
        warnings.simplefilter("ignore")
        none = torch.zeros(len(codes), dtype=torch.long)
        values = codes * step[:, None]
        weight = torch.quantize_per_channel(values, step.double(), none, 0, torch.qint8)
        return torch.ops.quantized.linear_prepack(weight, bias)


@functools.cache
def _overflows() -> bool:
    """Whether sums of two products overflow here, so that inputs can only have 7 bits.

    It depends on the instructions of the machine; it is seen by the largest products there are.
    """
    many = 64
    packed = _packed(torch.full((many, many), _FEWER, dtype=torch.int8), torch.ones(many), None)
    most = torch.full((1, many), float(_MOST))
    found = torch.ops.quantized.linear_dynamic(most, packed, False)
    return not bool((found == _FEWER * _MOST * many).all())


def plain_product(
    codes: Tensor, step: Tensor, bias: Tensor | None, span: Range | None = None
) -> Product:
    """The same in operations on plain tensors."""
    turned = codes.t()
    sums = codes.sum(1, dtype=torch.int32)  # (outputs,)
    known = is_known(span)

    def multiply(states: Tensor) -> Tensor:
        scale, zero = grid_of(span.float()) if known and span is not None else _own_grid(states)
        whole = torch.round(states / scale).add_(zero).clamp_(0, _MOST)
        signed = (whole - _MIDDLE).to(torch.int8).reshape(-1, states.shape[-1])
        counted = torch._int_mm(signed, turned)  # (…, outputs)
        shifted = counted.float() - (zero - _MIDDLE) * sums
        found = shifted.mul_(scale * step).reshape(*states.shape[:-1], -1)
        return found if bias is None else found.add_(bias)

    return multiply


def rounded_input(states: Tensor, span: Range | None = None) -> Tensor:
    """What inputs become, in float; gradients pass as if nothing was rounded.

    Nothing is asked of the values of `span`, which may be on a GPU: that it is known (`is_known`)
    has to be asked before.
    """
    if not states.numel():
        return states
    held = states.detach().float()
    scale, zero = _own_grid(held) if span is None else grid_of(span.float())
    whole = torch.round(held / scale).add_(zero).clamp_(0, _MOST)
    near = ((whole - zero) * scale).to(states.dtype)
    return states + (near - states).detach() if states.requires_grad else near


def _own_grid(states: Tensor) -> tuple[Tensor, Tensor]:
    """That of the inputs themselves, all of a call together."""
    least, most = states.min().clamp(max=0), states.max().clamp(min=0)  # aminmax is not in ONNX
    return grid_of(torch.stack([least, most]))


def grid_of(span: Tensor, most: int = _MOST) -> tuple[Tensor, Tensor]:
    """The step of the inputs, and the whole number that stands for zero."""
    scale = ((span[1] - span[0]) / most).clamp_min(_TINY)
    return scale, torch.round(-span[0] / scale).clamp_(0, most)
