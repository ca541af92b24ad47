"""The loss of SpanBERT: the tokens of a masked span, from the tokens on either side of it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from bertology.train.pretrain.losses.base import LossInput, LossOutcome, TokenLoss, draw, outcome_of
from bertology.train.pretrain.losses.masked import at_positions
from bertology.train.pretrain.masking import Hidden
from bertology.train.protocols import PretrainingBert


class SpanBoundary(TokenLoss):
    """Predict a masked token from the states beside its span and its place in the span.

    Joshi et al. 2020. A token beside a span may be masked itself; its state is used anyway.
    """

    name = "boundary"

    def __init__(self, hidden_size: int, *, longest: int, spread: float) -> None:
        super().__init__()
        self.place = nn.Embedding(longest, hidden_size)  # how far into the span
        self.mix = nn.Sequential(
            nn.Linear(3 * hidden_size, hidden_size),
            nn.GELU(),
            nn.LayerNorm(hidden_size, eps=1e-12),
            nn.Linear(hidden_size, hidden_size),
            nn.GELU(),
            nn.LayerNorm(hidden_size, eps=1e-12),
        )
        draw(self, spread)

    def forward(self, states: Tensor, view: LossInput, model: PretrainingBert) -> LossOutcome:
        """Cross-entropy over the vocabulary at the masked positions."""
        hidden = view.hidden
        first, last = (ends.gather(1, hidden.positions) for ends in span_ends(hidden))  # (B, K)
        # Every span has a neighbour: rows begin with [CLS] and end with [SEP]. Room that is not
        # used points to [CLS], which has none on its left.
        left = at_positions(states, (first - 1).clamp(min=0))
        right = at_positions(states, (last + 1).clamp(max=states.shape[1] - 1))
        place = self.place((hidden.positions - first).flatten())
        mixed = self.mix(torch.cat([left, right, place.to(left.dtype)], dim=-1))  # (B·K, hidden)
        logits = model.cls.predictions.decoder(mixed)  # (B·K, V)
        targets, weights = hidden.targets.flatten(), hidden.weights.flatten()
        return outcome_of(logits, targets, weights, judge=self.judge)


def span_ends(hidden: Hidden) -> tuple[Tensor, Tensor]:
    """(B, T) twice: the first and last position of the span that a chosen token is in.

    A span is a stretch of chosen tokens of one unit; elsewhere both are the token's own position.
    """
    chosen, unit = hidden.chosen, hidden.unit
    length = chosen.shape[1]
    column = torch.arange(length, device=chosen.device).expand_as(chosen)
    goes_on = chosen[:, 1:] & chosen[:, :-1] & (unit[:, 1:] == unit[:, :-1])  # (B, T - 1)
    border = torch.zeros_like(chosen[:, :1])
    from_left = torch.cat([border, goes_on], dim=1)
    to_right = torch.cat([goes_on, border], dim=1)
    first = torch.where(from_left, 0, column).cummax(1).values
    last = torch.where(to_right, length, column).flip(1).cummin(1).values.flip(1)
    return first, last
