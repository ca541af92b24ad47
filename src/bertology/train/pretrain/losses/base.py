"""What every loss is given and gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from bertology.train.pretrain.chance import Chance
from bertology.train.pretrain.masking import Hidden, MaskableVocabulary
from bertology.train.pretrain.rows import Rows

__all__ = ["Judge", "Loss", "LossInput", "LossOutcome", "TokenLoss", "additive", "judged", "told"]

Judge = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]


@dataclass(frozen=True)
class LossInput:
    """What the body of the model is about to see."""

    rows: Rows
    hidden: Hidden
    pieces: MaskableVocabulary
    inputs: dict[str, Tensor]  # of BertModel.forward
    notes: dict[str, Any] = field(default_factory=dict)  # from a loss's prepare to its forward

    @classmethod
    def masked(cls, rows: Rows, hidden: Hidden, pieces: MaskableVocabulary) -> LossInput:
        """The rows with their hidden tokens, as they are."""
        inputs = {"input_ids": hidden.ids, "token_type_ids": rows.segments}
        if rows.real is not None:
            inputs["attention_mask"] = rows.real.long()
        if rows.positions is not None:
            inputs["position_ids"] = rows.positions
        return cls(rows, hidden, pieces, inputs)


@dataclass(frozen=True)
class LossOutcome:
    """A loss to go down, and how many of the predictions were right; scalars on the device."""

    loss: Tensor
    correct: Tensor
    count: Tensor


class Loss(nn.Module):
    """One thing to predict. `model` is always the BertForPreTraining that is trained."""

    name = ""

    def prepare(self, view: LossInput, model: Any, chance: Chance) -> LossInput:
        """Change what the body will see; most losses do not."""
        return view

    def forward(self, states: Tensor, view: LossInput, model: Any) -> LossOutcome:
        """Judge the body's last states (B, T, hidden)."""
        raise NotImplementedError

    def speed_up(self) -> None:
        """Compile what takes the time; most losses take little."""


def additive(sees: Tensor, kind: torch.dtype) -> Tensor:
    """(B, 1, T, T) to be added to scores, from (B, T, T): whether one attends to the other.

    Eager attention adds a mask, so it cannot be bool; torch's fused attention wants it in the
    type of the states.
    """
    nothing = torch.zeros((), dtype=kind, device=sees.device)
    return torch.where(sees, nothing, torch.finfo(kind).min)[:, None]


def told(
    logits: Tensor,
    targets: Tensor,
    weights: Tensor | None = None,
    *,
    judge: Judge | None = None,
) -> LossOutcome:
    """Cross-entropy of (N, classes) against (N,), in float32; entries of weight 0 do not count."""
    used = torch.ones(len(targets), device=logits.device) if weights is None else weights
    return LossOutcome(*(judge or judged)(logits, targets, used))


def judged(logits: Tensor, targets: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The mean loss, how many were right, and how many there were."""
    each = functional.cross_entropy(logits.float(), targets, reduction="none")
    right = (logits.argmax(-1) == targets).float()
    count = weights.sum()
    return (each * weights).sum() / count.clamp(min=1), (right * weights).sum().detach(), count


class TokenLoss(Loss):
    """A loss that tells tokens, so that it has the widest tensors there are."""

    judge: Judge = staticmethod(judged)

    def speed_up(self) -> None:
        """Softmax, loss and accuracy in one go."""
        self.judge = torch.compile(judged, dynamic=False)
