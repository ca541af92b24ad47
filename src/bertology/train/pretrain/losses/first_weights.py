"""First weights, drawn as BERT draws its own."""

from __future__ import annotations

from torch import nn


def draw(module: nn.Module, spread: float) -> None:
    """Normal with this spread, biases 0: a head on top then begins with even predictions."""
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            nn.init.normal_(part.weight, std=spread)
        if isinstance(part, nn.Linear):
            nn.init.zeros_(part.bias)
