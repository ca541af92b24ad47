"""How much of the attention goes to some tokens, by layer."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.model.site_context import SiteContext


class TokenShare:
    """What the tokens `chosen` (B, T) get of a query's attention, mean over queries and heads."""

    def __init__(self, chosen: Tensor) -> None:
        self._chosen = chosen
        self._found: dict[int, Tensor] = {}

    def update(self, value: Tensor, at: SiteContext) -> None:
        """Take one layer: (B, H, T, S)."""
        queries = at.real.float()
        share = torch.einsum(
            "bhts,bt,bs->b", value.float(), queries, self._chosen.to(value.device).float()
        )
        self._found[at.layer] = (share / (queries.sum(-1) * value.shape[1])).cpu()

    def value(self) -> NDArray[np.float32]:
        """(B, layers)"""
        layers = [self._found[i] for i in sorted(self._found)]
        found: NDArray[np.float32] = torch.stack(layers, dim=1).numpy()
        return found
