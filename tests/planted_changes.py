"""Models that were changed in a known way: what some heads look for, or all weights at random."""

from __future__ import annotations

import copy
from typing import Any

import torch

import planted
from bertology.model.encoder import Encoder


def encoder(model: Any, name: str = "tiny", *, side: str = "right") -> Encoder:
    tokenizer = planted.tokenizer()
    tokenizer.padding_side = side
    return Encoder(model, tokenizer, name=name)


def with_other_queries(model: Any, layer: int, heads: list[int], *, loudness: float = 1.0) -> Any:
    """The same model, but for what some heads of a layer look for."""
    changed, size = copy.deepcopy(model), 6
    weight = changed.encoder.layer[layer].attention.self.query.weight
    with torch.no_grad():
        for head in heads:
            rows = weight[size * head : size * (head + 1)]
            noise = torch.randn(rows.shape, generator=torch.Generator().manual_seed(head))
            rows.add_(noise, alpha=loudness)
    return changed


def with_noise(model: Any, share: float, seed: int) -> Any:
    """Every weight moved at random by this share of the spread of its matrix."""
    changed, generator = copy.deepcopy(model), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weights in changed.parameters():
            noise = torch.randn(weights.shape, generator=generator)
            weights.add_(noise * weights.square().mean().sqrt() * share)
    return changed
