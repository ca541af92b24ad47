"""The weights that are trained, in float32, and the copies that compute, in a faster type.

In bfloat16 a small update to a large weight would be rounded away; so updates go to float32
weights, and the network's own are their rounded copies. In float32 the two are the same tensors.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bertology.train.protocols import HasParameters


class Weights:
    """All weights of a network, by name."""

    def __init__(self, network: HasParameters, precision: torch.dtype) -> None:
        named = {n: p for n, p in network.named_parameters() if p.requires_grad}
        self.names = list(named)
        self.learning: list[Tensor]
        self.copied = precision != torch.float32
        if self.copied:
            self.learning = [p.detach().float().clone().requires_grad_() for p in named.values()]
            network.to(precision)
        else:
            self.learning = list(named.values())
        self.computing: list[Tensor] = [p for p in network.parameters() if p.requires_grad]

    @property
    def live(self) -> list[Tensor]:
        """The learning weights that ever had a gradient: others must not even decay."""
        return [w for w in self.learning if w.grad is not None]

    @property
    def positions(self) -> list[Tensor]:
        """The table of positions: in a phase of short rows, later positions have no gradient."""
        named = zip(self.names, self.learning, strict=True)
        return [w for name, w in named if name.endswith("position_embeddings.weight")]

    def clear(self) -> None:
        """Set the gradients to 0; they stay where they are, as a recorded graph knows them."""
        gradients = [w.grad for w in self.learning if w.grad is not None]
        if gradients:
            torch._foreach_zero_(gradients)

    def collect(self) -> None:
        """Add the network's gradients to those of the learning weights."""
        if not self.copied:
            return  # they are the same
        sums: list[Tensor] = []
        parts: list[Tensor] = []
        for weight, computing in zip(self.learning, self.computing, strict=True):
            if computing.grad is None:
                continue
            if weight.grad is None:
                weight.grad = torch.zeros_like(weight)
            sums.append(weight.grad)
            parts.append(computing.grad)
            computing.grad = None
        torch._foreach_add_(sums, [part.float() for part in parts])

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
