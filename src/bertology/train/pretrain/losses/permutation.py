"""The loss of XLNet with BERT's body: tokens one after the other, in a random order."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from bertology.train.pretrain.chance import Chance
from bertology.train.pretrain.losses.base import (
    LossInput,
    LossOutcome,
    TokenLoss,
    additive,
    outcome_of,
)
from bertology.train.protocols import PretrainingBert


class PermutationOrder(TokenLoss):
    """Predict the chosen tokens, each from all others and those before it in the order.

    Yang et al. 2019. The body sees the text itself, T tokens, and K queries behind it: [MASK] at
    the position of a chosen token. The attention mask keeps a token from its own query. Positions
    are BERT's absolute ones, and there is no memory of earlier rows.
    """

    name = "permutation"

    def prepare(self, view: LossInput, model: PretrainingBert, chance: Chance) -> LossInput:
        """Put the queries behind the text, and make the attention mask."""
        rows, asked = view.rows, view.hidden.positions
        row, column = rows.at
        # Tokens that are not chosen come first, all at once.
        when = torch.where(view.hidden.chosen, chance("order").uniform(row, column), -1.0)
        positions = column.expand_as(rows.ids) if rows.positions is None else rows.positions
        queries = torch.full_like(asked, view.pieces.mask)
        kind = model.bert.embeddings.word_embeddings.weight.dtype
        inputs = {
            "input_ids": torch.cat([rows.ids, queries], dim=1),  # (B, T + K)
            "token_type_ids": _and_asked(rows.segments, asked),
            "position_ids": _and_asked(positions, asked),
            "attention_mask": additive(_sees(when, asked, rows.real), kind),
        }
        return replace(view, inputs=inputs)

    def forward(self, states: Tensor, view: LossInput, model: PretrainingBert) -> LossOutcome:
        """Cross-entropy over the vocabulary at the queries."""
        hidden = view.hidden
        queries = states[:, view.rows.ids.shape[1] :]  # (B, K, hidden)
        logits = model.cls.predictions(queries.flatten(0, 1))  # (B·K, V)
        targets, weights = hidden.targets.flatten(), hidden.weights.flatten()
        return outcome_of(logits, targets, weights, judge=self.judge)


def _and_asked(values: Tensor, asked: Tensor) -> Tensor:
    return torch.cat([values, values.gather(1, asked)], dim=1)


def _sees(when: Tensor, asked: Tensor, real: Tensor | None) -> Tensor:
    """(B, T + K, T + K): whether one token (second axis) attends to another (third)."""
    text = when[:, None, :] <= when[:, :, None]  # (B, T, T)
    # A query must not see the token itself. One that is not used points to [CLS], which comes
    # first, so it sees itself alone.
    query = when[:, None, :] < when.gather(1, asked)[:, :, None]  # (B, K, T)
    to_text = torch.cat([text, query], dim=1)
    if real is not None:
        to_text = to_text & real[:, None, :]
    batch, both, length = to_text.shape
    own = torch.eye(both, dtype=torch.bool, device=when.device)[:, length:]  # (T + K, K)
    return torch.cat([to_text, own.expand(batch, -1, -1)], dim=2)
