"""A model that is trained for the whole numbers it will be stored in (Q8BERT).

Weights and inputs are rounded in every pass, and gradients pass as if they were not. The ranges of
the inputs are learnt meanwhile, as running means over the batches, and stay as they are when the
model only answers. They are buffers of the maps, so that a training that was stopped goes on with
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from bertology.model.compressed.input_ranges import (
    NAME,
    RealTokens,
    empty_range,
    followed_slowly,
    seen_range,
)
from bertology.model.compressed.integer_product import Range, rounded_input
from bertology.model.compressed.quantised import EIGHT, bits_for
from bertology.model.compressed.rounding import SYMMETRIC, rounded
from bertology.model.compressed.written import named_maps


@dataclass(eq=False)
class _Rehearsal:
    """What a map computes while it is trained for the numbers it will be stored in."""

    module: nn.Linear | nn.Embedding
    bits: int
    scheme: str
    groups: str | int
    real: RealTokens
    rounds_inputs: bool

    def __call__(self, states: Tensor) -> Tensor:
        weight = self.module.weight
        near = rounded(weight.detach(), self.bits, scheme=self.scheme, groups=self.groups)
        # The gradient of the rounded weight is taken for that of the weight.
        through = weight + (near - weight).detach()
        if isinstance(self.module, nn.Embedding):
            return functional.embedding(states, through, self.module.padding_idx)
        inputs = self._rounded(states) if self.rounds_inputs else states
        return functional.linear(inputs, through, self.module.bias)

    def _rounded(self, states: Tensor) -> Tensor:
        if not states.numel():
            return states
        span = self.module.get_buffer(NAME)
        seen = seen_range(self.real.only(states))
        if self.module.training:
            with torch.no_grad():
                span.copy_(followed_slowly(span, seen))
        # Before the first batch was learnt from there is none yet.
        return rounded_input(states, torch.where(span[1] > span[0], span, seen))


@contextmanager
def rehearsed(
    model: Any,
    bits: int = 8,
    *,
    scheme: str = SYMMETRIC,
    groups: str | int = "row",
    bits_of: Mapping[int | str, int] | None = None,
    maps: str = "all",
    activations: int | None = EIGHT,
    ranges: dict[str, Range] | None = None,
) -> Iterator[Any]:
    """Inside, the model computes as if it was quantised, and is trained for that.

    Weights stay in full and keep their names; afterwards `quantise` with the same options. What is
    in `ranges` are the first ranges of inputs, and in the end it holds those that were learnt.
    """
    found: dict[str, Any] = {n: m for n, m in named_maps(model, maps) if m.weight.numel()}
    real, learnt = RealTokens(), {} if ranges is None else ranges
    ranged = {n: m for n, m in found.items() if activations and isinstance(m, nn.Linear)}
    for name, module in ranged.items():
        first = learnt.get(name, empty_range()).clone().to(module.weight.device)
        module.register_buffer(NAME, first)
    for name, module in found.items():
        own = bits_for(model, name, bits, bits_of or {})
        module.forward = _Rehearsal(module, own, scheme, groups, real, name in ranged)
    try:
        with real.followed(model):
            yield model
    finally:
        for module in found.values():
            del module.forward
        for name, module in ranged.items():
            learnt[name] = module.get_buffer(NAME).clone()
            delattr(module, NAME)
