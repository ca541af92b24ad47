"""What classes of tokens get of the attention, and of what attention really carries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.model.site_context import SiteContext
from bertology.model.sites import Kind


class CarriedShares:
    """Shares of classes in one batch, by layer and head: of weights, and of carried norms.

    A token that is attended to with weight α brings α·f(x), its value vector after the output
    projection; its size is the norm ‖α·f(x)‖ (Kobayashi et al. 2020). Shares are those of a query's
    sum over all tokens, averaged over queries. Give it to the sites `layer.*.head.*.value` and
    `layer.*.head.*.pattern` of the same run.
    """

    def __init__(self, masks: Tensor, projections: Sequence[Tensor]) -> None:
        """`masks` (B, C, T); `projections` (H, D, M) of each layer."""
        self._masks = masks.float()
        self._grams = [p.detach().float() @ p.detach().float().mT for p in projections]  # (H, D, D)
        self._sizes: dict[int, Tensor] = {}
        self._found: dict[int, tuple[Tensor, Tensor]] = {}

    def update(self, value: Tensor, at: SiteContext) -> None:
        """Take the values, then the pattern of one layer: (B, H, S, D) and (B, H, T, S)."""
        value = value.detach().float()
        if at.kind is Kind.VALUE:
            squares = torch.einsum("bhsd,hde,bhse->bhs", value, self._grams[at.layer], value)
            self._sizes[at.layer] = squares.clamp_min(0).sqrt()
            return
        real = at.real.float()
        share = real / real.sum(-1, keepdim=True)  # each query's weight in its example
        carried = value * self._sizes.pop(at.layer)[:, :, None]
        carried = carried / carried.sum(-1, keepdim=True).clamp_min(torch.finfo(value.dtype).tiny)
        both = [torch.einsum("bhts,bt,bcs->bch", v, share, self._masks) for v in (value, carried)]
        self._found[at.layer] = (both[0].cpu(), both[1].cpu())

    def value(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Shares of weights and of norms, each (B, C, layers, H)."""
        layers = [self._found[i] for i in sorted(self._found)]
        weights, norms = (torch.stack(t, dim=2).numpy() for t in zip(*layers, strict=True))
        return weights, norms
