"""Tokens that matter little are left out, layer after layer (PoWER-BERT, Goyal et al. 2020).

After the attention of a layer, the tokens that it attended to most are kept, and the MLP and all
layers above see only these. How much a token was attended to is the sum of its column in the
attention of all heads, over real tokens. The first token, which the classifier reads, always stays,
and padding never outlives a real token.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

from bertology.errors import BertologyError, CapabilityError
from bertology.model.compressed.layers import layer_list, main_stack
from bertology.model.compressed.written import check_new, misfit, write_form
from bertology.model.hooks.attention import additive, may_attend

FORM = "eliminated_tokens"
IMPLEMENTATION = "bertology_significance"
_SCORES = "bertology_scores"  # where a module leaves them until the hook after it


def eliminate(model: Any, keep: Sequence[int]) -> Any:
    """Let each layer pass on `keep` tokens at most, the first among them; never more than before.

    With as many as there are tokens, the model's answers are what they were.
    """
    count = len(layer_list(model))
    numbers = list(keep)
    if not _fits(numbers, count):
        raise BertologyError(
            f"keep must be a number of tokens for each of the {count} layers, at least 1 and none "
            f"above that of the layer below, not {numbers!r:.80}."
        )
    check_new(model, FORM, "early_exit")  # which leaves out rows: a mask is cut in one way only
    put_in(model, keep=numbers)
    write_form(model, FORM, keep=numbers)
    return model


def put_in(model: Any, keep: list[int]) -> None:
    """Hooks on the layers, which choose tokens and pass them on."""
    stack, layers = main_stack(model), layer_list(model)
    if not _fits(keep, len(layers)):
        raise misfit(f"of {FORM!r}, keep is {keep!r:.80}")
    if not stack.attention.endswith(".attention.self"):
        raise CapabilityError(
            f"{model.config.model_type} models cannot leave out tokens between attention and MLP.",
            hint="BERT, RoBERTa, ELECTRA and their like can.",
        )
    chosen = _Chosen()
    model.base_model.register_forward_pre_hook(_Begin(chosen))
    for layer, number in zip(layers, keep, strict=True):
        layer.register_forward_pre_hook(_Mask(chosen), with_kwargs=True)
        inner = layer.get_submodule("attention.self")
        config: Any = copy.copy(inner.config)  # this one module's; the model's stays as it is
        config._attn_implementation_internal = IMPLEMENTATION
        inner.config = config
        layer.get_submodule("attention").register_forward_hook(_Choose(chosen, inner, number))


def significance(pattern: Tensor, allowed: Tensor | None = None) -> Tensor:
    """(B, H, T, S) -> (B, S): how much each token is attended to, by all heads and real tokens."""
    if allowed is not None:  # (B, 1, T or 1, S); a padding token's own attention counts nothing
        real = allowed.amax(2)[:, 0]  # (B, S)
        pattern = pattern * real[:, None, :, None].to(pattern.dtype)
        return pattern.sum((1, 2)).masked_fill(~real, -1.0)
    return pattern.sum((1, 2))


def _fits(keep: object, count: int) -> bool:
    if not isinstance(keep, list) or len(keep) != count:
        return False
    if not all(type(k) is int and k >= 1 for k in keep):
        return False
    return all(above <= below for below, above in itertools.pairwise(keep))


@dataclass(eq=False)
class _Chosen:
    """Which tokens of each row are left in this pass: (B, kept), in their order."""

    tokens: Tensor | None = None


@dataclass(eq=False)
class _Begin:
    """Before a pass: all tokens are there."""

    chosen: _Chosen

    def __call__(self, module: nn.Module, given: object) -> None:
        self.chosen.tokens = None


@dataclass(eq=False)
class _Mask:
    """Before a layer: the columns, and rows, of the mask that are of tokens still there."""

    chosen: _Chosen

    def __call__(
        self, module: nn.Module, given: tuple[Any, ...], named: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        tokens = self.chosen.tokens
        if tokens is None:
            return None
        if len(given) > 1:
            return (given[0], _cut(given[1], tokens), *given[2:]), dict(named)
        return given, dict(named) | {"attention_mask": _cut(named.get("attention_mask"), tokens)}


def _cut(mask: Tensor | None, tokens: Tensor) -> Tensor | None:
    """(B, 1, T or 1, T) -> (B, 1, kept or 1, kept)"""
    if mask is None:
        return None
    mask = mask.expand(len(tokens), *mask.shape[1:])
    if mask.shape[2] > 1:
        rows = tokens[:, None, :, None].expand(-1, mask.shape[1], -1, mask.shape[3])
        mask = mask.gather(2, rows)
    columns = tokens[:, None, None, :].expand(-1, mask.shape[1], mask.shape[2], -1)
    return mask.gather(3, columns)


@dataclass(eq=False)
class _Choose:
    """After the attention of a layer: the most attended tokens go on, in their order."""

    chosen: _Chosen
    inner: nn.Module
    keep: int

    def __call__(self, module: nn.Module, given: object, output: Any) -> Any:
        scores: Tensor = self.inner.__dict__.pop(_SCORES)  # (B, S)
        if scores.shape[1] <= self.keep:
            return None
        scores = scores.clone()
        scores[:, 0] = float("inf")
        left = scores.topk(self.keep, dim=1).indices.sort(dim=1).values  # (B, kept)
        states = output[0]
        passed = states.gather(1, left[..., None].expand(-1, -1, states.shape[-1]))
        before = self.chosen.tokens
        self.chosen.tokens = left if before is None else before.gather(1, left)
        return (passed, *output[1:])


def _attend(
    module: nn.Module,
    query: Tensor,  # (B, H, T, D)
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **more: Any,
) -> tuple[Tensor, Tensor]:
    """Attention that leaves with its module how much each token was attended to."""
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    mask = additive(attention_mask, query.dtype)
    if mask is not None:
        scores = scores + mask
    pattern = scores.softmax(-1, dtype=torch.float32).to(query.dtype)
    allowed = None if mask is None else may_attend(mask, key.mT).expand(len(query), -1, -1, -1)
    module.__dict__[_SCORES] = significance(pattern.detach(), allowed)
    weights = nn.functional.dropout(pattern, dropout, module.training)
    return (weights @ value).transpose(1, 2).contiguous(), pattern


AttentionInterface.register(IMPLEMENTATION, _attend)
AttentionMaskInterface.register(IMPLEMENTATION, eager_mask)
