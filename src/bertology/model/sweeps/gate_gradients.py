"""First-order estimates of what disabling each head does to the loss, from one backward pass.

A gate ξ per example and head goes from 1 (intact) to 0 (disabled). The derivative of an example's
loss at ξ = 1 predicts the change of that loss when the head is disabled: -dL/dξ. Because there is
a gate for every example, the spread of the estimates over examples is known as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from bertology.model.families import Capability
from bertology.model.interventions import GateHead, GateLayer, GateMLP, Intervention

if TYPE_CHECKING:
    from bertology.model.batch import Batch, Text
    from bertology.model.encoder import Encoder
    from bertology.model.sweeps.post_norm import Disable


@dataclass(frozen=True)
class Importances:
    """How much the loss of an example depends on each part, in the mean over examples."""

    heads: NDArray[np.float64]  # (layers, heads)
    layers: NDArray[np.float64]  # (layers,)
    mlps: NDArray[np.float64]  # (layers,)


def losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Each example's loss (N,): cross-entropy, or squared error where there is one output."""
    if logits.shape[-1] == 1:
        return (logits[..., 0] - labels.to(logits)).square()
    return F.cross_entropy(logits, labels.long(), reduction="none")


def first_order_effects(
    encoder: Encoder,
    batch: Batch,
    labels: Tensor,
    *,
    method: str = "uniform",
    means: Tensor | None = None,
) -> Tensor:
    """Predicted rise of each example's loss when each head is disabled: (B, layers, heads)."""
    shape = encoder.shape
    xi = torch.ones(len(batch), shape.layers, shape.heads, device=encoder.device)
    xi.requires_grad_()
    toward = cast(Literal["zero", "uniform", "mean"], method)
    trace = encoder.run(batch, do=GateHead(xi, toward, means), gradients=True)
    loss = losses(trace.logits.float(), labels.to(encoder.device)).sum()
    (slope,) = torch.autograd.grad(loss, xi)
    return -slope


def first_order_over(
    encoder: Encoder,
    texts: Sequence[Text],
    labels: Sequence[float],
    *,
    disable: Disable,
    tokens_per_batch: int = 4096,
) -> NDArray[np.float64]:
    """First-order effects of all texts, in their order: (N, layers, heads)."""
    shape = encoder.shape
    found = np.empty((len(texts), shape.layers, shape.heads))
    for batch in encoder.batches(texts, tokens_per_batch=tokens_per_batch):
        wanted = torch.tensor([labels[i] for i in batch.indices])
        effects = first_order_effects(
            encoder, batch, wanted, method=disable.method, means=disable.means
        )
        found[list(batch.indices)] = effects.float().cpu().numpy()
    return found


def importances(
    encoder: Encoder,
    texts: Sequence[Text],
    labels: Sequence[float],
    *,
    tokens_per_batch: int = 4096,
    layers: bool = True,
) -> Importances:
    """The mean of |dL/dξ| over examples, for gates at heads, layers and MLPs, in one pass.

    This is the measure of Michel et al. (2019), "Are Sixteen Heads Really Better than One?", for
    heads; here the same gates also stand at whole layers and, where the family has them, at MLPs.
    `labels` count as the model's outputs do. Without `layers`, those of layers are 0.
    """
    shape = encoder.shape
    sizes = {"heads": (shape.layers, shape.heads), "layers": (shape.layers,)}
    sizes["mlps"] = (shape.layers,)
    sums = {name: np.zeros(size) for name, size in sizes.items()}
    for batch in encoder.batches(texts, tokens_per_batch=tokens_per_batch):
        gates = {
            name: torch.ones(len(batch), *size, device=encoder.device, requires_grad=True)
            for name, size in sizes.items()
        }
        do: list[Intervention] = [GateHead(gates["heads"])]
        if layers:
            do.append(GateLayer(gates["layers"]))
        if Capability.MLP in encoder.capabilities:
            do.append(GateMLP(gates["mlps"]))
        wanted = torch.tensor([labels[i] for i in batch.indices], device=encoder.device)
        trace = encoder.run(batch, do=do, gradients=True)
        loss = losses(trace.logits.float(), wanted).sum()
        slopes = torch.autograd.grad(loss, list(gates.values()), allow_unused=True)
        for name, slope in zip(gates, slopes, strict=True):
            if slope is not None:
                sums[name] += slope.abs().sum(dim=0).double().cpu().numpy()
    return Importances(**{name: total / len(texts) for name, total in sums.items()})
