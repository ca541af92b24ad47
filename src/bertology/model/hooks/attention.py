"""The one attention function through which a run records and edits attention.

transformers routes attention through an interface; we register `attend` there under our name,
and a mask function under the same name (without it, padding would silently be attended to).
Families that are not routed reach the same function through `adapters`.

When scores and weights are not needed, torch's fused attention is used: gates and head outputs
are then almost free.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

from bertology.model.sites import Kind

IMPLEMENTATION = "bertology"
KEYWORD = "bertology_tap"  # the keyword by which a run's state travels to the function


class AttentionTap(Protocol):
    """What `attend` needs of a run: which values are used, and what becomes of each."""

    def watches(self, *kinds: Kind) -> bool:
        """Whether the run records, reduces or edits one of these kinds."""
        ...

    def edits(self, kind: Kind) -> bool:
        """Whether the run edits this kind in this layer."""
        ...

    def visit(
        self,
        kind: Kind,
        value: Tensor,
        *,
        values: Tensor | None = None,
        allowed: Callable[[], Tensor] | None = None,
    ) -> Tensor:
        """Let all interventions edit the value, then record and reduce it."""
        ...


def additive(mask: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """A mask as numbers to add: boolean ones say True for "may be attended to"."""
    if mask is None or mask.dtype != torch.bool:
        return mask
    return torch.zeros_like(mask, dtype=dtype).masked_fill(~mask, torch.finfo(dtype).min)


def may_attend(mask: Tensor | None, like: Tensor) -> Tensor:
    """Which keys each query may attend to, as booleans that broadcast to (B, H, T, S)."""
    if mask is None:
        return like.new_ones((1, 1, 1, like.shape[-1]), dtype=torch.bool)
    return mask > torch.finfo(mask.dtype).min / 2


def uniform_over(allowed: Tensor, dtype: torch.dtype) -> Tensor:
    """Equal weight 1/L on each of the L keys that may be attended to."""
    weights = allowed.to(dtype)
    return weights / weights.sum(-1, keepdim=True).clamp_min(1)


def attend(
    tap: AttentionTap,
    query: Tensor,  # (B, H, T, D)
    key: Tensor,  # (B, H, S, D)
    value: Tensor,  # (B, H, S, D)
    *,
    scaling: float,
    mask: Tensor | None = None,  # additive or boolean, broadcasts to (B, H, T, S)
    bias: Tensor | None = None,  # positions: part of the scores, not of the mask
) -> tuple[Tensor, Tensor | None]:
    """Attention that can be watched and edited. Gives (B, T, H, D) and the weights if computed."""
    query = tap.visit(Kind.QUERY, query)
    key = tap.visit(Kind.KEY, key)
    value = tap.visit(Kind.VALUE, value)
    mask = additive(mask, query.dtype)
    pattern: Tensor | None = None
    if tap.watches(Kind.SCORES, Kind.PATTERN):
        pattern = _pattern(tap, query, key, scaling=scaling, mask=mask, bias=bias)
        output = pattern @ value  # (B, H, T, D)
    elif query.shape[1] == 0:  # every head was pruned; the fused kernels may fail on that
        output = torch.zeros_like(query)
    else:
        both = mask if bias is None else bias if mask is None else mask + bias
        output = F.scaled_dot_product_attention(query, key, value, attn_mask=both, scale=scaling)
    output = tap.visit(Kind.OUTPUT, output, values=value, allowed=lambda: may_attend(mask, key.mT))
    return output.transpose(1, 2).contiguous(), pattern


def _pattern(
    tap: AttentionTap,
    query: Tensor,
    key: Tensor,
    *,
    scaling: float,
    mask: Tensor | None,
    bias: Tensor | None,
) -> Tensor:
    scores = (query @ key.mT).mul_(scaling) if not query.requires_grad else query @ key.mT * scaling
    if bias is not None:
        scores = scores + bias
    scores = tap.visit(Kind.SCORES, scores)
    if mask is not None and tap.edits(Kind.SCORES):
        # As low as an edit can go, or a query with all its keys cut would turn to masked ones.
        scores = scores.masked_fill(~may_attend(mask, scores), float("-inf"))
    elif mask is not None:
        scores = scores + mask
    wide = torch.float32 if scores.dtype in (torch.float16, torch.bfloat16) else scores.dtype
    pattern = torch.softmax(scores, dim=-1, dtype=wide).to(query.dtype)  # (B, H, T, S)
    if tap.edits(Kind.SCORES):
        pattern = pattern.nan_to_num()  # a query cut off from every key attends to nothing
    return tap.visit(Kind.PATTERN, pattern, allowed=lambda: may_attend(mask, scores))


class _Unwatched:
    """Nothing is recorded or edited: for calls outside of a run."""

    def watches(self, *kinds: Kind) -> bool:
        return False

    def edits(self, kind: Kind) -> bool:
        return False

    def visit(self, kind: Kind, value: Tensor, **more: object) -> Tensor:
        return value


_UNWATCHED = _Unwatched()


def _routed(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    position_bias: Tensor | None = None,
    **more: Any,
) -> tuple[Tensor, Tensor | None]:
    """The signature that transformers calls."""
    return attend(
        more.get(KEYWORD, _UNWATCHED),
        query,
        key,
        value,
        scaling=query.shape[-1] ** -0.5 if scaling is None else scaling,
        mask=attention_mask,
        bias=position_bias,
    )


AttentionInterface.register(IMPLEMENTATION, _routed)
AttentionMaskInterface.register(IMPLEMENTATION, eager_mask)
