"""Attributions by attention: weights, weights through all layers, and what they carry.

Each gives (B, T): what the first token, which the classifier reads, gets from each token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from bertology.model.batch import Batch
from bertology.model.sites import Kind

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder
    from bertology.model.site_context import SiteContext


class AttentionOfFirst:
    """Attributions of one batch; give it to the sites of values and patterns of one run.

    `last`: weights of the last layer, mean over heads. `mean`: over all layers. `rollout`: weights
    multiplied through the layers, half of each being the token itself, for the residual stream
    (Abnar and Zuidema 2020). `norms`: the size of what the last layer's attention brings from each
    token, ‖Σ α f(x)‖ over heads (Kobayashi et al. 2020).
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._layers = encoder.shape.layers
        self._values: Tensor | None = None
        self._rolled: Tensor | None = None
        self._sum: Tensor | None = None
        self.last: Tensor
        self.norms: Tensor

    def update(self, value: Tensor, at: SiteContext) -> None:
        """Take the values, then the pattern of one layer: (B, H, S, D) and (B, H, T, S)."""
        is_last = at.layer == self._layers - 1
        if at.kind is Kind.VALUE:
            self._values = value.detach().float() if is_last else None
            return
        pattern = value.detach().float()
        mean = pattern.mean(1)  # (B, T, S)
        first = mean[:, 0]
        self._sum = first if self._sum is None else self._sum + first
        own = torch.eye(mean.shape[-1], device=mean.device)
        step = (mean + own) / 2
        self._rolled = step if self._rolled is None else step @ self._rolled
        if is_last:
            self.last = first
            projection = self._encoder.projection_weight(at.layer).detach().float()  # (H, D, M)
            assert self._values is not None
            brought = torch.einsum("bhs,bhsd,hdm->bsm", pattern[:, :, 0], self._values, projection)
            self.norms = brought.norm(dim=-1)

    @property
    def mean(self) -> Tensor:
        """Weights of the first token, mean over layers and heads."""
        assert self._sum is not None
        return self._sum / self._layers

    @property
    def rollout(self) -> Tensor:
        """Weights of the first token, multiplied through the layers."""
        assert self._rolled is not None
        return self._rolled[:, 0]


def attention_of_first(encoder: Encoder, batch: Batch) -> tuple[AttentionOfFirst, Tensor]:
    """All attributions by attention, from one pass; and the logits of the classifier."""
    found = AttentionOfFirst(encoder)
    sites = {"layer.*.head.*.value": found, "layer.*.head.*.pattern": found}
    trace = encoder.run(batch, reduce=sites)
    return found, trace.logits.float()
