"""How far a model's answers move without one of its parts.

The measure is the divergence from the answers of the whole model (for numbers, the squared
difference), not the loss on the labels: a model that is too sure of itself may lose a layer and
have a lower loss, only because it is less sure of everything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional as F

from bertology.model.interventions import GateMLP, Intervention, SkipLayer

if TYPE_CHECKING:
    from bertology.model.batch import Batch, Text
    from bertology.model.encoder import Encoder

Left = Callable[["Encoder"], Intervention]


class GivenAnswers:
    """What the whole model answers to some texts, kept to compare smaller ones with."""

    def __init__(self, encoder: Encoder, texts: Sequence[Text], *, tokens_per_batch: int) -> None:
        self._batches: list[tuple[Batch, Tensor]] = []
        with torch.no_grad():
            for batch in encoder.batches(list(texts), tokens_per_batch=tokens_per_batch):
                self._batches.append((batch, encoder.run(batch).logits.float()))

    def change(self, encoder: Encoder, left_out: Left | None = None) -> float:
        """The mean divergence of this model's answers, with a part left out or as it is."""
        total, texts = 0.0, 0
        do = () if left_out is None else left_out(encoder)
        with torch.no_grad():
            for batch, given in self._batches:
                logits = encoder.run(batch, do=do).logits.float()
                total += divergence(given, logits).sum().item()
                texts += len(batch)
        return total / texts


def without(part: str, layer: int) -> Left:
    """Leave out a layer, or its MLP."""

    def intervention(encoder: Encoder) -> Intervention:
        if part == "layers":
            return SkipLayer([layer])
        gates = torch.ones(encoder.shape.layers, device=encoder.device)
        gates[layer] = 0
        return GateMLP(gates)

    return intervention


def divergence(given: Tensor, found: Tensor) -> Tensor:
    """(N,): Kullback-Leibler divergence in nats, or the squared difference of one output."""
    if given.shape[-1] == 1:
        return (given - found).square().squeeze(-1)
    wanted, said = F.log_softmax(given, dim=-1), F.log_softmax(found, dim=-1)
    return F.kl_div(said, wanted, reduction="none", log_target=True).sum(-1)
