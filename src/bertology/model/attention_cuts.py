"""Attention taken away from some tokens, and given to the others in proportion or dropped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bertology.model.addressing import AddressedModel
from bertology.model.interventions import Intervention, check_layers
from bertology.model.site_context import SiteContext
from bertology.model.sites import Kind, Sites


@dataclass(frozen=True, eq=False)
class CutAttention(Intervention):
    """Every query loses attention to the tokens `cut`; what is left is scaled up to one again.

    Without `made_up` it is not scaled up: what these tokens carried is missing, and no more.

    It loses as much as the tokens `cut` and the tokens `beside` both get: the smaller of the two.
    So two cuts that differ only in which of two classes is `cut` and which is `beside` take the
    same mass away, and can be compared.
    """

    cut: Tensor  # (B, T) True where a token is one of those
    beside: Tensor  # (B, T); no token is in both
    layers: Sequence[int]
    made_up: bool = True

    def sites(self, encoder: AddressedModel) -> list[Sites]:
        name = encoder.stack_name(self.stack)
        heads = tuple(range(encoder.shapes[name].heads))
        chosen = check_layers(self.layers, encoder, self.stack)
        return [Sites(name, Kind.PATTERN, chosen, heads)]

    def __call__(self, value: Tensor, at: SiteContext) -> Tensor:
        cut, beside = (t.to(value.device)[:, None, None] for t in (self.cut, self.beside))
        lost, other = ((value * t).sum(-1, keepdim=True) for t in (cut, beside))  # (B, H, T, 1)
        kept = 1 - torch.minimum(lost, other) / lost.clamp_min(torch.finfo(value.dtype).tiny)
        changed = torch.where(cut, value * kept, value)
        if not self.made_up:
            return changed
        # At most half of all attention is lost, so that the rest can be scaled up.
        return changed / changed.sum(-1, keepdim=True).clamp_min(torch.finfo(value.dtype).tiny)
