"""The loss of StructBERT: the original tokens of short sequences that were shuffled."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from bertology.train.pretrain.chance import Chance
from bertology.train.pretrain.losses.base import LossInput, LossOutcome, TokenLoss, outcome_of
from bertology.train.pretrain.losses.masked import at_positions
from bertology.train.protocols import PretrainingBert

_NGRAM = 3
_ORDERS = ((0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))  # all but the right one


class NgramOrder(TokenLoss):
    """Shuffle some trigrams, and predict at each of their places the original token.

    Wang et al. 2019. Only tokens that are neither masked nor fixed are shuffled.
    """

    name = "order"

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share  # of a row's tokens

    def prepare(self, view: LossInput, model: PretrainingBert, chance: Chance) -> LossInput:
        """Shuffle the trigrams in the input of the body."""
        starts, used = self._chosen(view, chance)  # (B, N)
        row, _ = view.rows.at
        orders = torch.tensor(_ORDERS).to(starts.device, non_blocking=True)
        order = orders[chance("order").below(len(_ORDERS), row, starts)]  # (B, N, 3)
        offsets = torch.arange(_NGRAM, device=starts.device)
        # Room that is not used points to [CLS], and takes [CLS] from there.
        places = ((starts[:, :, None] + offsets) * used[:, :, None]).flatten(1)  # (B, 3 N)
        origins = ((starts[:, :, None] + order) * used[:, :, None]).flatten(1)
        ids = view.inputs["input_ids"]
        shuffled = ids.scatter(1, places, ids.gather(1, origins))
        weights = used.float().repeat_interleave(_NGRAM, dim=1)
        predicted = (places, view.rows.ids.gather(1, places), weights)
        return replace(
            view,
            inputs={**view.inputs, "input_ids": shuffled},
            notes={**view.notes, self.name: predicted},
        )

    def forward(self, states: Tensor, view: LossInput, model: PretrainingBert) -> LossOutcome:
        """Cross-entropy over the vocabulary at the shuffled positions."""
        places, targets, weights = view.notes[self.name]
        logits = model.cls.predictions(at_positions(states, places))  # (B·3N, V)
        return outcome_of(logits, targets.flatten(), weights.flatten(), judge=self.judge)

    def _chosen(self, view: LossInput, chance: Chance) -> tuple[Tensor, Tensor]:
        """Where trigrams begin (B, N), and whether there is one (bool)."""
        rows = view.rows
        row, column = rows.at
        open_ = ~rows.fixed & ~view.hidden.chosen  # (B, T)
        whole = torch.zeros_like(open_)
        whole[:, : 1 - _NGRAM] = open_[:, 2:] & open_[:, 1:-1] & open_[:, :-2]
        # Rows are cut into threes from one of three places, so that no two of them overlap.
        whole &= (column + chance("cut").below(_NGRAM, row)) % _NGRAM == 0
        score = torch.where(whole, chance("choose").uniform(row, column), torch.inf)
        room = min(int(self.share * score.shape[1] / _NGRAM) + 1, score.shape[1])
        starts = torch.sort(score, dim=1, stable=True).indices[:, :room]
        # A fraction of a trigram is rounded up or down by chance: the share is right on average.
        wanted = self.share * (~rows.fixed).sum(1, keepdim=True) / _NGRAM
        wanted = (wanted + chance("round").uniform(row)).floor()
        return starts, whole.gather(1, starts) & (column[:, :room] < wanted)
