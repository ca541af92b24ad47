"""What can be changed in a model during one run; several changes can be used together.

Each is a frozen dataclass that names its sites and computes a new value from the old one. It never
changes a tensor in place, so gradients still flow and the model itself stays as it was. `examples`
limits an intervention to some examples of the batch (their positions in it).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from bertology.errors import BertologyError, ParameterError
from bertology.model.addressing import AddressedModel
from bertology.model.site_context import SiteContext
from bertology.model.sites import HEAD_KINDS, Kind, Sites, parse_sites

Heads = Sequence[tuple[int, int]]


@dataclass(frozen=True, eq=False, kw_only=True)
class Intervention(ABC):
    """A change at some sites."""

    examples: Sequence[int] | None = None
    stack: str | None = None  # None: the model's main stack

    @abstractmethod
    def sites(self, encoder: AddressedModel) -> list[Sites]:
        """Where it acts; checked against the model before anything runs."""

    @abstractmethod
    def __call__(self, value: Tensor, at: SiteContext) -> Tensor:
        """The new value."""

    def apply(self, value: Tensor, at: SiteContext) -> Tensor:
        """The new value, in the chosen examples only."""
        changed = self(value, at)
        if self.examples is None:
            return changed
        chosen = torch.zeros(at.examples, dtype=torch.bool, device=value.device)
        try:
            chosen[list(self.examples)] = True
        except IndexError:
            raise ParameterError(
                "examples",
                type(self).__name__,
                f"name positions in a batch of {at.examples}",
                list(self.examples),
            ) from None
        # The choices of a multiple-choice example are rows of their own.
        chosen = chosen.repeat_interleave(value.shape[0] // at.examples)
        return torch.where(chosen.view(-1, *[1] * (value.dim() - 1)), changed, value)


def check_heads(heads: Heads, encoder: AddressedModel, stack: str | None) -> dict[int, list[int]]:
    """The heads by layer; an error for a head that the model does not have."""
    shape = encoder.shapes[encoder.stack_name(stack)]
    by_layer: dict[int, list[int]] = {}
    if not isinstance(heads, Sequence) or isinstance(heads, str):
        raise ParameterError("heads", "an intervention", "be pairs such as [(3, 5)]", heads)
    for pair in heads:
        if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
            raise ParameterError("heads", "an intervention", "be pairs such as [(3, 5)]", heads)
        layer, head = pair
        if not (0 <= layer < shape.layers and 0 <= head < shape.heads):
            raise BertologyError(
                f"There is no head {tuple(pair)}: the model has {shape.layers} layers of "
                f"{shape.heads} heads.",
                hint=f"Heads are (layer, head) from (0, 0) to {shape.layers - 1, shape.heads - 1}.",
            )
        encoder.numbering.check(stack or encoder.family.main_stack, layer, head)
        by_layer.setdefault(layer, []).append(head)
    return by_layer


def _at_heads(heads: Heads, encoder: AddressedModel, stack: str | None, kind: Kind) -> list[Sites]:
    by_layer = check_heads(heads, encoder, stack)
    name = encoder.stack_name(stack)
    return [Sites(name, kind, (layer,), tuple(hs)) for layer, hs in by_layer.items()]


def _in_layer(heads: Heads, at: SiteContext) -> list[int]:
    return [h for layer, h in heads if layer == at.layer]


def check_layers(
    layers: Sequence[int], encoder: AddressedModel, stack: str | None
) -> tuple[int, ...]:
    """The layers as they were given, if the stack has them all."""
    shape = encoder.shapes[encoder.stack_name(stack)]
    if not isinstance(layers, Sequence) or isinstance(layers, str):
        raise ParameterError("layers", "an intervention", "be a list such as [3]", layers)
    for layer in layers:
        if not 0 <= layer < shape.layers:
            raise BertologyError(
                f"There is no layer {layer}: the model has {shape.layers} layers, "
                f"0 to {shape.layers - 1}."
            )
    return tuple(layers)


def _check_rows(gates: Tensor, dims: int, name: str, of: str, value: Tensor) -> None:
    if gates.dim() == dims and gates.shape[0] != value.shape[0]:
        must = f"have one row for each of the {value.shape[0]} examples"
        raise ParameterError(name, of, must, tuple(gates.shape))


@dataclass(frozen=True, eq=False)
class UniformAttention(Intervention):
    """Disable heads as Kovaleva et al. (2019) do: every token they may see gets weight 1/L."""

    heads: Heads

    def sites(self, encoder: AddressedModel) -> list[Sites]:
        return _at_heads(self.heads, encoder, self.stack, Kind.PATTERN)

    def __call__(self, value: Tensor, at: SiteContext) -> Tensor:
        changed = value.clone()
        heads = _in_layer(self.heads, at)
        changed[:, heads] = at.uniform(value.dtype).expand(-1, 1, value.shape[2], -1)
        return changed


@dataclass(frozen=True, eq=False)
class ZeroHead(Intervention):
    """The outputs of heads are zero."""

    heads: Heads

    def sites(self, encoder: AddressedModel) -> list[Sites]:
        return _at_heads(self.heads, encoder, self.stack, Kind.OUTPUT)

    def __call__(self, value: Tensor, at: SiteContext) -> Tensor:
        changed = value.clone()
        changed[:, _in_layer(self.heads, at)] = 0
        return changed


@dataclass(frozen=True, eq=False)
class MeanHead(Intervention):
    """The outputs of heads are replaced by their mean: over a corpus (`means` from
    `Encoder.head_means`), or over the real tokens of the batch where no means are given."""

    heads: Heads
    means: Tensor | None = None  # (layers, heads, D)

    def sites(self, encoder: AddressedModel) -> list[Sites]:
        return _at_heads(self.heads, encoder, self.stack, Kind.OUTPUT)

    def __call__(self, value: Tensor, at: SiteContext) -> Tensor:
        heads = _in_layer(self.heads, at)
        if self.means is None:
            weights = at.real.to(value.dtype)[:, None, :, None]  # (B, 1, T, 1)
            mean = (value * weights).sum((0, 2)) / weights.sum()  # (H, D)
        else:
            mean = self.means[at.layer].to(value)
        changed = value.clone()
        changed[:, heads] = mean[heads][None, :, None, :]
        return changed


@dataclass(frozen=True, eq=False)
class GateHead(Intervention):
    """Scale heads by ξ, differentiably: ξ = 1 leaves a head alone, ξ = 0 disables it.

    `xi` is (layers, heads), or (examples, layers, heads) for a gate per example. `toward` says
    what the head gives at ξ = 0: zero, its output under uniform attention, or its mean output
    (`means`, as for MeanHead).
    """

    xi: Tensor
    toward: Literal["zero", "uniform", "mean"] = "zero"
    means: Tensor | None = None  # (layers, heads, D)

    def sites(self, encoder: AddressedModel) -> list[Sites]:
        name = encoder.stack_name(self.stack)
        shape = encoder.shapes[name]
        if tuple(self.xi.shape[-2:]) != (shape.layers, shape.heads) or self.xi.dim() not in (2, 3):
            raise ParameterError(
                "xi",
                "GateHead",
                f"have shape ({shape.layers}, {shape.heads}) or "
                f"(examples, {shape.layers}, {shape.heads})",
                tuple(self.xi.shape),
            )
        if self.toward not in ("zero", "uniform", "mean"):
            raise ParameterError("toward", "GateHead", "be zero, uniform or mean", self.toward)
        if (self.toward == "mean") != (self.means is not None):
            raise ParameterError("means", "GateHead", "go with toward='mean'", self.means)
        every = tuple(range(shape.layers))
        return [Sites(name, Kind.OUTPUT, every, tuple(range(shape.heads)))]

    def __call__(self, value: Tensor, at: SiteContext) -> Tensor:
        _check_rows(self.xi, 3, "xi", "GateHead", value)
        xi = self.xi[..., at.layer, :].to(value)  # (H,) or (B, H)
        gate = xi.view(-1, value.shape[1], 1, 1)  # (1 or B, H, 1, 1)
        if self.toward == "zero":
            return value * gate
        if self.toward == "mean" and self.means is not None:
            closed = self.means[at.layer].to(value)[None, :, None]  # (1, H, 1, D)
        else:
            closed = at.uniform_output()
        return closed + (value - closed) * gate


@dataclass(frozen=True, eq=False)
class GateMLP(Intervention):
    """Scale the MLPs' outputs by ν, differentiably; `nu` is (layers,) or (examples, layers)."""

    nu: Tensor

    def sites(self, encoder: AddressedModel) -> list[Sites]:
        name = encoder.stack_name(self.stack)
        layers = encoder.shapes[name].layers
        if self.nu.dim() not in (1, 2) or self.nu.shape[-1] != layers:
            raise ParameterError(
                "nu", "GateMLP", f"have shape ({layers},) or (examples, {layers})",
                tuple(self.nu.shape),
            )  # fmt: skip
        return [Sites(name, Kind.MLP, tuple(range(layers)))]

    def __call__(self, value: Tensor, at: SiteContext) -> Tensor:
        _check_rows(self.nu, 2, "nu", "GateMLP", value)
        return value * self.nu[..., at.layer].to(value).view(-1, 1, 1)


@dataclass(frozen=True, eq=False)
class GateLayer(Intervention):
    """Scale what whole layers add by λ, differentiably: at 0 a layer's output is its input.

    `gates` is (layers,) or (examples, layers).
    """

    gates: Tensor

    def sites(self, encoder: AddressedModel) -> list[Sites]:
        name = encoder.stack_name(self.stack)
        layers = encoder.shapes[name].layers
        if self.gates.dim() not in (1, 2) or self.gates.shape[-1] != layers:
            raise ParameterError(
                "gates", "GateLayer", f"have shape ({layers},) or (examples, {layers})",
                tuple(self.gates.shape),
            )  # fmt: skip
        return [Sites(name, Kind.RESIDUAL, tuple(range(layers)))]

    def __call__(self, value: Tensor, at: SiteContext) -> Tensor:
        _check_rows(self.gates, 2, "gates", "GateLayer", value)
        if at.entry is None:
            return value
        gate = self.gates[..., at.layer].to(value).view(-1, 1, 1)  # (1 or B, 1, 1)
        return at.entry + (value - at.entry) * gate


@dataclass(frozen=True, eq=False)
class SkipLayer(Intervention):
    """The output of these layers is their input."""

    layers: Sequence[int]

    def sites(self, encoder: AddressedModel) -> list[Sites]:
        name = encoder.stack_name(self.stack)
        return [Sites(name, Kind.RESIDUAL, check_layers(self.layers, encoder, self.stack))]

    def __call__(self, value: Tensor, at: SiteContext) -> Tensor:
        return value if at.entry is None else at.entry


@dataclass(frozen=True, eq=False)
class KnockOutEdges(Intervention):
    """Forbid attention along edges (query position, key position), in some heads or in all.

    Positions count from 0. The remaining attention is renormalised; a query with no key left
    attends to nothing. Where a head has uniform attention as well, this has no effect.
    """

    edges: Sequence[tuple[int, int]]
    heads: Heads | None = None

    def sites(self, encoder: AddressedModel) -> list[Sites]:
        if self.heads is not None:
            return _at_heads(self.heads, encoder, self.stack, Kind.SCORES)
        name = encoder.stack_name(self.stack)
        shape = encoder.shapes[name]
        return [Sites(name, Kind.SCORES, tuple(range(shape.layers)), tuple(range(shape.heads)))]

    def __call__(self, value: Tensor, at: SiteContext) -> Tensor:
        length, width = value.shape[2:]
        for q, k in self.edges:
            if not (0 <= q < length and 0 <= k < width):
                raise BertologyError(
                    f"Edge {(q, k)} lies outside an attention map of {length} × {width} tokens."
                )
        cut = torch.zeros(value.shape[1:], dtype=torch.bool, device=value.device)  # (H, T, S)
        queries, keys = [q for q, _ in self.edges], [k for _, k in self.edges]
        for head in range(value.shape[1]) if self.heads is None else _in_layer(self.heads, at):
            cut[head, queries, keys] = True
        return value.masked_fill(cut, float("-inf"))


def check_dimensions(dimensions: Sequence[int], width: int) -> None:
    """Refuse dimensions that a hidden state of this width does not have."""
    for d in dimensions:
        if not 0 <= d < width:
            raise BertologyError(
                f"There is no dimension {d}: the model is {width} wide, 0 to {width - 1}."
            )


@dataclass(frozen=True, eq=False)
class SetDimensions(Intervention):
    """Set dimensions of the residual stream to a value, after some layers or all of them."""

    dimensions: Sequence[int]
    value: float | Tensor = 0.0
    layers: Sequence[int] | None = None
    embeddings: bool = False  # also in what enters layer 0

    def sites(self, encoder: AddressedModel) -> list[Sites]:
        name = encoder.stack_name(self.stack)
        shape = encoder.shapes[name]
        check_dimensions(self.dimensions, shape.hidden)
        layers = range(shape.layers) if self.layers is None else self.layers
        chosen = check_layers(tuple(layers), encoder, self.stack)
        places = [Sites(name, Kind.RESIDUAL, chosen)]
        return places + ([Sites(name, Kind.EMBEDDINGS, (0,))] if self.embeddings else [])

    def __call__(self, value: Tensor, at: SiteContext) -> Tensor:
        changed = value.clone()
        new = self.value
        changed[..., list(self.dimensions)] = new.to(value) if isinstance(new, Tensor) else new
        return changed


@dataclass(frozen=True, eq=False)
class ZeroDimensions(SetDimensions):
    """Set dimensions of the residual stream to zero."""

    value: float | Tensor = field(default=0.0, init=False)


@dataclass(frozen=True, eq=False)
class Patch(Intervention):
    """Replace values of this run by those of another run, at any site, at some positions or all."""

    site: str
    value: Tensor
    positions: Sequence[int] | None = None

    def sites(self, encoder: AddressedModel) -> list[Sites]:
        found = parse_sites(self.site, encoder.shapes, encoder.stack_name(self.stack))
        if found[0].kind is Kind.CONTRIBUTION:
            raise BertologyError(
                "A 'contribution' can be recorded but not patched.",
                hint="Patch the head's 'output' instead.",
            )
        return found

    def __call__(self, value: Tensor, at: SiteContext) -> Tensor:
        changed = value.clone()
        new = self.value.to(value)
        chosen = slice(None) if self.positions is None else list(self.positions)
        name = self.site
        least = value.dim() - (at.kind in HEAD_KINDS)  # one head may be given without its axis
        try:
            if not least <= new.dim() <= value.dim():
                raise IndexError("too few or too many axes")
            if at.kind in HEAD_KINDS:
                heads = self._heads(name, value.shape[1])
                target = changed[:, heads]  # a copy when heads is a list
                target[:, :, chosen] = new if new.dim() == value.dim() else new[:, None]
                changed[:, heads] = target
            else:
                changed[:, chosen] = new
        except (RuntimeError, IndexError) as error:
            raise BertologyError(
                f"A patch of shape {tuple(new.shape)} does not fit {name!r}, "
                f"which is {tuple(value.shape)} here."
            ) from error
        return changed

    @staticmethod
    def _heads(site: str, count: int) -> list[int]:
        from bertology.model.sites import select

        return list(select(site.split(".head.")[1].split(".")[0], count, what="head"))
