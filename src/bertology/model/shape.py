"""The size of a stack of layers, known without loading any weights. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """Layers × heads × width of one stack."""

    layers: int
    heads: int
    hidden: int
    head_size: int
    mlp: int

    def __str__(self) -> str:
        return f"{self.layers} layers × {self.heads} heads × {self.hidden} wide"
