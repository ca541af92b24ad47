"""The two losses of BERT: masked tokens, and how the two parts of a row relate."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from bertology.train.pretrain.losses.base import Loss, LossInput, LossOutcome, TokenLoss, outcome_of
from bertology.train.protocols import PretrainingBert


class MaskedTokens(TokenLoss):
    """Predict the masked tokens. Only they go through the output layer, which is the widest."""

    name = "mlm"

    def forward(self, states: Tensor, view: LossInput, model: PretrainingBert) -> LossOutcome:
        """Cross-entropy over the vocabulary at the masked positions."""
        hidden = view.hidden
        logits = model.cls.predictions(at_positions(states, hidden.positions))  # (B·K, V)
        targets, weights = hidden.targets.flatten(), hidden.weights.flatten()
        return outcome_of(logits, targets, weights, judge=self.judge)


class SentenceRelation(Loss):
    """Predict from [CLS] how the second part relates to the first."""

    name = "sentence"

    def __init__(self, hidden_size: int, classes: int) -> None:
        super().__init__()
        # BERT has a head for two classes, which its checkpoint keeps.
        self.head = None if classes == 2 else nn.Linear(hidden_size, classes)

    def forward(self, states: Tensor, view: LossInput, model: PretrainingBert) -> LossOutcome:
        """Cross-entropy over the relations of the pairing."""
        pooled = model.bert.pooler(states)  # (B, hidden)
        head = model.cls.seq_relationship if self.head is None else self.head
        assert view.rows.relation is not None  # the config makes sure of it
        return outcome_of(head(pooled), view.rows.relation)


def at_positions(states: Tensor, positions: Tensor) -> Tensor:
    """The states (B, T, hidden) at the positions (B, K), as (B·K, hidden)."""
    batch, length, width = states.shape
    offsets = torch.arange(batch, device=states.device)[:, None] * length
    return states.reshape(batch * length, width).index_select(0, (positions + offsets).flatten())
