"""The model that is trained, with everything its losses need beside it."""

from __future__ import annotations

from typing import Any

from torch import nn

from bertology.train.fresh import Architecture
from bertology.train.pretrain.chance import Chance
from bertology.train.pretrain.config import Stage
from bertology.train.pretrain.losses import Outcome, View, make_loss
from bertology.train.pretrain.masking import Pieces, hide
from bertology.train.pretrain.rows import Rows

__all__ = ["Network"]


class Network(nn.Module):
    """A BertForPreTraining and the losses of every stage; one call computes one batch."""

    def __init__(self, model: Any, stages: tuple[Stage, ...], size: Architecture) -> None:
        super().__init__()
        self.model = model
        self.stages = stages
        vocab = model.config.vocab_size
        self.losses = nn.ModuleList(
            nn.ModuleDict({n: make_loss(n, s.objective, size, vocab) for n in s.objective.losses})
            for s in stages
        )

    def forward(
        self, rows: Rows, pieces: Pieces, chance: Chance, stage: int = 0
    ) -> dict[str, Outcome]:
        """Hide, run the body once, and judge by every loss of the stage."""
        hidden = hide(rows, self.stages[stage].objective.masking, pieces, chance("hide"))
        view = View.masked(rows, hidden, pieces)
        losses: Any = self.losses[stage]
        for name, loss in losses.items():
            view = loss.prepare(view, self.model, chance(name))
        states = self.model.bert(**view.inputs).last_hidden_state  # (B, T, hidden)
        return {name: loss(states, view, self.model) for name, loss in losses.items()}
