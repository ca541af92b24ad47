"""What an intervention or reducer is told about the value it is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from bertology.model.hooks.attention import uniform_over
from bertology.model.sites import Kind


@dataclass
class SiteContext:
    """Where a value was met. Values come batch first:

    head kinds (B, H, T, D) or (B, H, T, S); the others (B, T, width).
    """

    stack: str
    layer: int
    kind: Kind
    real: Tensor  # (B, T) True for tokens that are not padding
    examples: int  # in the batch; the choices of multiple choice are rows of one example
    entry: Tensor | None = None  # (B, T, width) the residual as this layer found it
    values: Tensor | None = None  # (B, H, S, D) at output sites
    allowed: Callable[[], Tensor] | None = None  # keys each query may attend to

    def uniform(self, dtype: torch.dtype) -> Tensor:
        """Attention of 1/L over the keys each query may attend to; broadcasts to (B, H, T, S)."""
        if self.allowed is None:
            raise ValueError("uniform attention is defined at pattern and output sites only")
        return uniform_over(self.allowed(), dtype)

    def uniform_output(self) -> Tensor:
        """What each head would give under uniform attention: (B, H, T or 1, D)."""
        if self.values is None:
            raise ValueError("head outputs under uniform attention need an output site")
        return self.uniform(self.values.dtype) @ self.values
