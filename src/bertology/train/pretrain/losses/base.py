"""What every loss gets and returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional

from bertology.train.pretrain.chance import Chance
from bertology.train.pretrain.masking import Hidden, MaskableVocabulary
from bertology.train.pretrain.rows import Rows
from bertology.train.protocols import PretrainingBert

Judge = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]


@dataclass(frozen=True)
class LossInput:
    """The input of the model's body for one batch."""

    rows: Rows
    hidden: Hidden
    pieces: MaskableVocabulary
    inputs: dict[str, Tensor]  # of BertModel.forward
    # From a loss's `prepare` to its `forward`, by the name of the loss.
    notes: dict[str, tuple[Tensor, ...]] = field(default_factory=dict)

    @classmethod
    def masked(cls, rows: Rows, hidden: Hidden, pieces: MaskableVocabulary) -> LossInput:
        """The masked rows, without further changes."""
        inputs = {"input_ids": hidden.ids, "token_type_ids": rows.segments}
        if rows.real is not None:
            inputs["attention_mask"] = rows.real.long()
        if rows.positions is not None:
            inputs["position_ids"] = rows.positions
        return cls(rows, hidden, pieces, inputs)


@dataclass(frozen=True)
class LossOutcome:
    """The loss, and how many of the predictions were right; scalars on the device."""

    loss: Tensor
    correct: Tensor
    count: Tensor


class Loss(nn.Module):
    """One prediction task. `model` is always the BertForPreTraining that is trained."""

    name = ""

    def prepare(self, view: LossInput, model: PretrainingBert, chance: Chance) -> LossInput:
        """Change the input of the body; most losses do not."""
        return view

    def forward(self, states: Tensor, view: LossInput, model: PretrainingBert) -> LossOutcome:
        """The outcome for the body's last states (B, T, hidden)."""
        raise NotImplementedError

    def speed_up(self) -> None:
        """Compile what takes most time; most losses take little."""


def additive(sees: Tensor, kind: torch.dtype) -> Tensor:
    """(B, 1, T, T) to be added to scores, from (B, T, T): whether one token attends to another.

    Eager attention adds a mask, so it cannot be bool; torch's fused attention wants it in the
    type of the states.
    """
    nothing = torch.zeros((), dtype=kind, device=sees.device)
    return torch.where(sees, nothing, torch.finfo(kind).min)[:, None]


def outcome_of(
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
    """A loss that predicts tokens; its tensors are as wide as the vocabulary."""

    judge: Judge = staticmethod(judged)

    def speed_up(self) -> None:
        """Softmax, loss and accuracy in one go."""
        self.judge = torch.compile(judged, dynamic=False)


def draw(module: nn.Module, spread: float) -> None:
    """Normal with this spread, biases 0: a head on top then begins with even predictions."""
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            nn.init.normal_(part.weight, std=spread)
        if isinstance(part, nn.Linear):
            nn.init.zeros_(part.bias)
