"""Attention for short rows on a GPU: one program for each head of each row.

General kernels work through a row tile by tile and pad narrow heads. A row of up to 128 tokens is
a single tile: scores, softmax and sums stay in registers, each number is read and written once.
With heads of 16 dimensions this is several times as quick. Anything else goes to torch's own, and
so does float32: the kernels' products round it, and who asks for it wants it exact.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Protocol

import torch
from torch import Tensor, nn

from bertology.train.protocols import PretrainingBert

LONGEST_ROW = 128
WIDTHS = (16, 32, 64)
_NAME = "bertology_short"


def use_short_attention(model: PretrainingBert) -> None:
    """Let a model on a GPU use it where it fits; its config is not saved with this."""
    if next(model.parameters()).device.type != "cuda":
        return
    if find_spec("triton") is None:
        return  # torch's own attention serves as well, only slower
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

    AttentionInterface.register(_NAME, _attend)
    AttentionMaskInterface.register(_NAME, ALL_MASK_ATTENTION_FUNCTIONS["sdpa"])
    model.config._attn_implementation = _NAME


def _attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **more: object,
) -> tuple[Tensor, None]:
    """transformers' form of attention: (B, H, T, D) in, (B, T, H, D) out."""
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    fits = query.shape[2] <= LONGEST_ROW and query.shape[3] in WIDTHS and query.shape == key.shape
    fits = fits and query.dtype == torch.bfloat16
    if attention_mask is None and fits and not dropout:
        scale = query.shape[3] ** -0.5 if scaling is None else scaling
        return short_attention(query, key, value, scale), None
    found: tuple[Tensor, None] = ALL_ATTENTION_FUNCTIONS["sdpa"](
        module, query, key, value, attention_mask, scaling=scaling, dropout=dropout, **more
    )
    return found


def short_attention(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    """Softmax attention of (B, H, T, D), T up to 128, without mask; gives (B, T, H, D)."""
    out: Tensor = torch.ops.bertology.short_attention(query, key, value, scale)[0]
    return out


def _launch(kernel: str, tensors: list[Tensor], like: Tensor, scale: float) -> None:
    from bertology.train.pretrain import short_attention_kernels as kernels

    batch, heads, length, width = like.shape
    tile = max(16, 1 << (length - 1).bit_length())
    strides = [s for t in tensors if t.dim() == 4 for s in (t.stride(0), t.stride(1), t.stride(2))]
    getattr(kernels, kernel)[(batch * heads,)](
        *tensors, *strides, heads, length, scale, tile=tile, width=width, num_warps=8
    )


def _rows(like: Tensor) -> Tensor:
    """Room for (B, H, T, D) that lies in memory as (B, T, H, D)."""
    batch, heads, length, width = like.shape
    return like.new_empty(batch, length, heads, width).transpose(1, 2)


@torch.library.custom_op("bertology::short_attention", mutates_args=())
def _forward(query: Tensor, key: Tensor, value: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    out = _rows(query)
    sums = query.new_empty(query.shape[:3], dtype=torch.float32)
    _launch("forward", [query, key, value, out, sums], query, scale)
    return out.transpose(1, 2), sums


@torch.library.custom_op("bertology::short_attention_backward", mutates_args=())
def _backward(
    query: Tensor, key: Tensor, value: Tensor, out: Tensor, sums: Tensor, grad: Tensor, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    gradients = [_rows(query), _rows(query), _rows(query)]
    seen = [query, key, value, out.transpose(1, 2), grad.transpose(1, 2)]
    _launch("backward", [*seen, *gradients, sums], query, scale)
    return gradients[0], gradients[1], gradients[2]


@_forward.register_fake
def _(query: Tensor, key: Tensor, value: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    sums = query.new_empty(query.shape[:3], dtype=torch.float32)
    return _rows(query).transpose(1, 2), sums


@_backward.register_fake
def _(
    query: Tensor, key: Tensor, value: Tensor, out: Tensor, sums: Tensor, grad: Tensor, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    return _rows(query), _rows(query), _rows(query)


class _Context(Protocol):
    """What torch carries from the forward to the backward pass."""

    scale: float

    @property
    def saved_tensors(self) -> tuple[Tensor, ...]: ...

    def save_for_backward(self, *tensors: Tensor) -> None: ...


def _keep(
    ctx: _Context, inputs: tuple[Tensor, Tensor, Tensor, float], output: tuple[Tensor, Tensor]
) -> None:
    query, key, value, ctx.scale = inputs
    ctx.save_for_backward(query, key, value, *output)


def _differentiate(ctx: _Context, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    grad = grad if grad.stride(-1) == 1 else grad.contiguous()
    found = torch.ops.bertology.short_attention_backward(*ctx.saved_tensors, grad, ctx.scale)
    return (*found, None)


torch.library.register_autograd("bertology::short_attention", _differentiate, setup_context=_keep)
