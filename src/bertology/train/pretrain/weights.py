"""The weights that learn, in float32, and the copies that compute, in what is quick.

In bfloat16 a small update to a large weight would be rounded away; so updates go to float32
weights, and the network's own are their rounded copies. In float32 the two are the same tensors.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["Weights"]


class Weights:
    """All weights of a network, by name."""

    def __init__(self, network: nn.Module, precision: torch.dtype) -> None:
        named = {n: p for n, p in network.named_parameters() if p.requires_grad}
        self.names = list(named)
        self.learning: list[Tensor]
        if precision == torch.float32:
            self.copied = False
            self.learning = list(named.values())
        else:
            self.copied = True
            self.learning = [p.detach().float().clone() for p in named.values()]
            for weight in self.learning:
                weight.requires_grad_()
            network.to(precision)
        self.computing: list[Tensor] = [p for p in network.parameters() if p.requires_grad]

    def collect(self, gradients: list[Tensor | None]) -> None:
        """Add the gradients of the computing weights to those of the learning ones."""
        sums: list[Tensor] = []
        parts: list[Tensor] = []
        fresh: list[Tensor] = []
        firsts: list[Tensor] = []
        for weight, gradient in zip(self.learning, gradients, strict=True):
            if gradient is None:
                continue
            if weight.grad is None:
                weight.grad = torch.empty_like(weight)
                fresh.append(weight.grad)
                firsts.append(gradient)
            else:
                sums.append(weight.grad)
                parts.append(gradient.to(weight.dtype))
        if fresh:
            torch._foreach_copy_(fresh, firsts)
        if sums:
            torch._foreach_add_(sums, parts)

    def clear(self) -> None:
        """Forget the gradients."""
        for weight in self.learning:
            weight.grad = None

    def publish(self) -> None:
        """Give the network the weights that were learnt."""
        if self.copied:
            with torch.no_grad():
                torch._foreach_copy_(self.computing, self.learning)

    def as_dict(self) -> dict[str, Tensor]:
        """The learning weights by their names in the network."""
        return {n: w.detach() for n, w in zip(self.names, self.learning, strict=True)}

    def load(self, values: dict[str, Tensor]) -> None:
        """Take over weights by name."""
        with torch.no_grad():
            for name, weight in zip(self.names, self.learning, strict=True):
                weight.copy_(values[name])
        self.publish()
