"""The layers of an 8-bit model, computed on a CPU with as few calls as there can be.

A small layer on a single text takes transformers longer to call than to compute. Queries, keys and
values are one product here, and nothing is called that does nothing outside of training. Whenever
somebody could see the difference (hooks inside of a layer, gradients, another attention function),
the layer's own way is taken; both give the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from bertology.errors import CapabilityError
from bertology.model.compressed.integer_product import Product, integer_product
from bertology.model.compressed.layers import layer_list
from bertology.model.compressed.low_rank import LowRankLinear
from bertology.model.compressed.quantised_maps import QuantisedLinear


def make_lean(model: Any) -> None:
    """Let the layers of a model of BERT's kind be computed so, where they can be."""
    try:
        layers = layer_list(model)
    except CapabilityError:
        return
    for layer in dict.fromkeys(layers):
        if not _Parts.fits(layer):
            continue
        stage = layer.__dict__.get("forward")  # of early exits, which call what they stand before
        if stage is None:
            layer.forward = _Lean(layer)
        else:
            stage.usual = _Lean(layer)


@dataclass(eq=False)
class _Parts:
    """The modules of a layer that compute something."""

    maps: tuple[Any, Any, Any]  # queries, keys, values
    projection: Any
    up: Any
    down: Any
    activation: Any
    norms: tuple[nn.LayerNorm, nn.LayerNorm]

    @classmethod
    def of(cls, layer: Any) -> _Parts:
        inner, after = layer.attention.self, layer.attention.output
        return cls(
            (inner.query, inner.key, inner.value),
            after.dense,
            layer.intermediate.dense,
            layer.output.dense,
            layer.intermediate.intermediate_act_fn,
            (after.LayerNorm, layer.output.LayerNorm),
        )

    @classmethod
    def fits(cls, layer: Any) -> bool:
        """Whether a layer is of the kind that is known here, its maps being stored in 8 bits."""
        try:
            parts = cls.of(layer)
        except AttributeError:
            return False
        maps = (*parts.maps, parts.projection, parts.up, parts.down)
        known = all(isinstance(m, QuantisedLinear | LowRankLinear) for m in maps)
        return known and not getattr(layer, "is_decoder", False)


@dataclass(eq=False)
class _Lean:
    """What stands in for the `forward` of one layer."""

    layer: Any
    parts: _Parts | None = None
    inside: list[nn.Module] = field(default_factory=list)
    joined: tuple[object, Product | None] | None = None  # what it was made of, and the product

    def __call__(
        self, hidden_states: Tensor, attention_mask: Tensor | None = None, *given: Any, **named: Any
    ) -> Tensor:
        if not self._may(hidden_states, given, named):
            usual = type(self.layer).forward
            plain: Tensor = usual(self.layer, hidden_states, attention_mask, *given, **named)
            return plain
        parts, inner = self.parts, self.layer.attention.self
        assert parts is not None
        rows, tokens, width = hidden_states.shape
        size = inner.attention_head_size
        query, key, value = self._three(hidden_states, size)  # (B, H, T, D) each
        context = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=attention_mask, scale=inner.scaling
        )
        context = context.transpose(1, 2).reshape(rows, tokens, -1)
        change = _product(parts.projection)(context)
        states = _normed(parts.norms[0], change + hidden_states, width)
        change = _product(parts.down)(parts.activation(_product(parts.up)(states)))
        return _normed(parts.norms[1], change + states, width)

    def _may(self, states: Tensor, given: tuple[Any, ...], named: dict[str, Any]) -> bool:
        """Whether nobody can tell that the layer's own way was not taken."""
        if torch.is_grad_enabled() or self.layer.training or torch.compiler.is_compiling():
            return False
        if states.device.type != "cpu" or states.dtype != torch.float32 or not states.numel():
            return False
        if any(v is not None for v in given) or any(v is not None for v in named.values()):
            return False
        if self.parts is None:
            self.parts, self.inside = _Parts.of(self.layer), list(self.layer.modules())[1:]
        for module in self.inside:
            if module._forward_hooks or module._forward_pre_hooks:
                return False
        used: str = self.layer.attention.self.config._attn_implementation
        return used == "sdpa"

    def _three(self, states: Tensor, size: int) -> tuple[Tensor, ...]:
        """Queries, keys and values, of one product where their maps are in whole numbers."""
        assert self.parts is not None
        maps = self.parts.maps
        rows, tokens, _ = states.shape
        product = self._joined() if all(_in_integers(m) for m in maps) else None
        if product is None:
            apart = (m(states).view(rows, tokens, -1, size).transpose(1, 2) for m in maps)
            return tuple(apart)
        together = product(states).view(rows, tokens, 3, -1, size)
        return together.permute(2, 0, 3, 1, 4).unbind(0)

    def _joined(self) -> Product | None:
        """One product for all three; None where they round their inputs in different ways."""
        assert self.parts is not None
        maps = self.parts.maps
        mark = tuple(m.mark for m in maps)
        if self.joined is None or self.joined[0] != mark:
            self.joined = mark, _joined(maps) if _alike(maps) else None
        return self.joined[1]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"parts": None, "inside": [], "joined": None}


def _in_integers(module: Any) -> bool:
    return isinstance(module, QuantisedLinear) and module.able


def _product(module: Any) -> Product:
    """What a map computes, without what torch does around calls of modules."""
    if _in_integers(module):
        own: Product = module.product()
        return own
    called: Product = module
    return called


def _alike(maps: tuple[Any, ...]) -> bool:
    """Whether all round the inputs, which they share, in the same range."""
    one, *others = (module.span() for module in maps)
    if one is None:
        return all(other is None for other in others)
    return all(other is not None and torch.equal(other, one) for other in others)


def _joined(maps: tuple[Any, ...]) -> Product:
    whole = [m.whole_numbers() for m in maps]
    codes, steps, biases = (list(one) for one in zip(*whole, strict=True))
    bias = torch.cat(biases) if all(b is not None for b in biases) else None
    return integer_product(torch.cat(codes), torch.cat(steps), bias, maps[0].span())


def _normed(norm: nn.LayerNorm, states: Tensor, width: int) -> Tensor:
    return torch.layer_norm(states, (width,), norm.weight, norm.bias, norm.eps)
