"""Maps of a quantised model as an ONNX file holds them: whole numbers, and how to read them.

Without this the file would hold 32-bit weights, and be four times as large and no faster than that
of the original. Products of 8-bit maps are written in ONNX's own operations for whole numbers,
which ONNX Runtime computes as such. Weights of other formats are one byte each, and a runtime makes
32-bit numbers of them when it opens the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from bertology.model.compressed.integer_product import Range, grid_of, rounded_input
from bertology.model.compressed.quantised_maps import Quantised, QuantisedEmbedding, QuantisedLinear
from bertology.model.compressed.rounding import DICTIONARY, SYMMETRIC, spread


@contextmanager
def as_whole_numbers(model: nn.Module) -> Iterator[None]:
    """Inside, tracing the model for ONNX finds whole numbers where it is quantised."""
    changed = []
    try:
        for module in model.modules():
            forward = _traced(module)
            if forward is not None:
                module.forward = forward
                changed.append(module)
        yield
    finally:
        for module in changed:
            del module.forward


def _traced(module: nn.Module) -> Any:
    if isinstance(module, QuantisedEmbedding):
        return None if module.by_row else _Table(_Weight.of(module))
    if not isinstance(module, QuantisedLinear):
        return None
    bias, span = None if module.bias is None else module.bias.detach(), module.span()
    if not module.able:
        grid = None if span is None else _Grid.of(span)
        return _Map(_Weight.of(module), bias, module.activations is not None, grid)
    codes, step, _ = module.whole_numbers()
    turned = codes.t().contiguous()
    if span is None:
        return _OwnRange(turned, step, bias)
    return _KnownRange(turned, step, bias, _Grid.of(span))


@dataclass(eq=False)
class _Grid:
    """The steps of inputs whose range is stored."""

    scale: Tensor
    zero: Tensor

    @classmethod
    def of(cls, span: Range) -> _Grid:
        scale, zero = grid_of(span.float())
        return cls(scale, zero.to(torch.uint8))

    def rounded(self, states: Tensor) -> Tensor:
        own = self.scale, self.zero
        whole = _operation("QuantizeLinear", (states, *own), torch.uint8, states)
        return _operation("DequantizeLinear", (whole, *own), torch.float32, states)


@dataclass(eq=False)
class _KnownRange:
    """A product whose inputs are rounded in a range that is stored."""

    codes: Tensor  # (inputs, outputs)
    step: Tensor
    bias: Tensor | None
    grid: _Grid

    def __call__(self, states: Tensor) -> Tensor:
        none = torch.zeros(len(self.step), dtype=torch.int8)
        held = (self.codes, self.step, none)
        weight = _operation("DequantizeLinear", held, torch.float32, self.codes, axis=1)
        found = self.grid.rounded(states) @ weight
        return found if self.bias is None else found + self.bias


@dataclass(eq=False)
class _OwnRange:
    """A product whose inputs are rounded in the range that they have in the batch."""

    codes: Tensor  # (inputs, outputs)
    step: Tensor
    bias: Tensor | None

    def __call__(self, states: Tensor) -> Tensor:
        whole, scale, zero = torch.onnx.ops.symbolic_multi_out(
            "DynamicQuantizeLinear",
            (states,),
            dtypes=(torch.uint8, torch.float32, torch.uint8),
            shapes=(states.shape, (), ()),
        )
        shape = (*states.shape[:-1], self.codes.shape[1])
        counted: Tensor = torch.onnx.ops.symbolic(
            "MatMulInteger", (whole, self.codes, zero), dtype=torch.int32, shape=shape
        )
        found: Tensor = counted.float() * (scale * self.step)
        return found if self.bias is None else found + self.bias


def _operation(
    name: str, given: tuple[Tensor, ...], dtype: torch.dtype, like: Tensor, **how: Any
) -> Tensor:
    found: Tensor = torch.onnx.ops.symbolic(name, given, attrs=how, dtype=dtype, shape=like.shape)
    return found


@dataclass(eq=False)
class _Weight:
    """A matrix in bytes, and the operations that make it."""

    codes: Tensor  # (rows, columns)
    held: dict[str, Tensor]
    dictionary: bool

    @classmethod
    def of(cls, module: Quantised) -> _Weight:
        held = module.unpacked()
        codes = held.pop("codes").contiguous()
        if module.format.scheme == DICTIONARY:
            return cls(codes, {n: t.clone() for n, t in held.items()}, True)
        step = spread(held["step"].float(), module.rows)
        if module.format.scheme == SYMMETRIC:
            least = -module.format.middle * step
        else:
            least = spread(held["least"].float(), module.rows)
        return cls(codes, {"step": step.contiguous(), "least": least.contiguous()}, False)

    def made(self) -> Tensor:
        """(rows, columns)"""
        held = self.held
        if not self.dictionary:
            return self.codes.float() * held["step"] + held["least"]
        weight = held["centroids"].float()[self.codes.long()].reshape(-1)
        if held["places"].numel():
            weight = weight.scatter(0, held["places"].long(), held["outliers"].float())
        return weight.reshape(self.codes.shape)


@dataclass(eq=False)
class _Map:
    """A map whose weights are bytes, and whose inputs may be rounded."""

    weight: _Weight
    bias: Tensor | None
    rounds_inputs: bool
    grid: _Grid | None  # None where the range is that of the batch

    def __call__(self, states: Tensor) -> Tensor:
        if self.rounds_inputs:
            states = rounded_input(states) if self.grid is None else self.grid.rounded(states)
        return functional.linear(states, self.weight.made(), self.bias)


@dataclass(eq=False)
class _Table:
    """A table of embeddings in bytes."""

    weight: _Weight

    def __call__(self, pieces: Tensor) -> Tensor:
        return functional.embedding(pieces, self.weight.made())
