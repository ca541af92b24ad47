"""The loss of ELECTRA: which tokens are not the original ones."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from bertology.train.fresh import Architecture
from bertology.train.pretrain.chance import Chance
from bertology.train.pretrain.losses.base import LossInput, LossOutcome, TokenLoss, draw, outcome_of
from bertology.train.pretrain.losses.masked import at_positions
from bertology.train.protocols import MaskedBert, PretrainingBert

_WEIGHT = 50.0  # of the decisions beside the generator's own loss, as in ELECTRA
_SEGMENTS = 2


class ReplacedTokens(TokenLoss):
    """A small generator fills in the masked tokens; predict which tokens it replaced.

    Clark et al. 2020. The generator learns to predict the masked tokens and shares no weights
    with the model. What it guesses right counts as not replaced.
    """

    name = "replaced"

    def __init__(self, model: Architecture, vocab_size: int) -> None:
        super().__init__()
        self.generator = _generator(model, vocab_size)
        self.head = nn.Sequential(
            nn.Linear(model.hidden, model.hidden), nn.GELU(), nn.Linear(model.hidden, 1)
        )
        draw(self.head, model.spread)

    def speed_up(self) -> None:
        """Compile the generator in the same parts as the model, and the judging."""
        super().speed_up()
        body = self.generator.bert
        for part in (body.embeddings, *body.encoder.layer, self.generator.cls.predictions):
            part.compile(dynamic=False)

    def prepare(self, view: LossInput, model: PretrainingBert, chance: Chance) -> LossInput:
        """Let the generator fill in the masked tokens."""
        rows, hidden = view.rows, view.hidden
        inputs = dict(view.inputs)
        # Labels may stand where segments do, and there may be more of them.
        inputs["token_type_ids"] = inputs["token_type_ids"].clamp(max=_SEGMENTS - 1)
        states = self.generator.bert(**inputs).last_hidden_state
        logits = self.generator.cls.predictions(at_positions(states, hidden.positions))  # (B·K, V)
        drawn = _drawn(logits.detach(), rows.index[:, None], hidden.positions, chance)
        drawn = torch.where(hidden.weights > 0, drawn, hidden.targets)  # (B, K)
        filled = rows.ids.scatter(1, hidden.positions, drawn)
        return replace(
            view,
            inputs={**view.inputs, "input_ids": filled},
            notes={**view.notes, self.name: (logits,)},
        )

    def forward(self, states: Tensor, view: LossInput, model: PretrainingBert) -> LossOutcome:
        """The generator's cross-entropy, and the binary cross-entropy of every token."""
        rows, hidden = view.rows, view.hidden
        (logits,) = view.notes[self.name]
        targets, weights = hidden.targets.flatten(), hidden.weights.flatten()
        generator = outcome_of(logits, targets, weights, judge=self.judge)
        score = self.head(states)[:, :, 0].float()  # (B, T)
        replaced = view.inputs["input_ids"] != rows.ids
        judged = (~rows.fixed).float()
        count = judged.sum()
        each = functional.binary_cross_entropy_with_logits(
            score, replaced.float(), reduction="none"
        )
        decisions = (each * judged).sum() / count.clamp(min=1)
        correct = (((score > 0) == replaced) * judged).sum().detach()
        return LossOutcome(generator.loss + _WEIGHT * decisions, correct, count)


def _generator(model: Architecture, vocab_size: int) -> MaskedBert:
    """A BERT of about half the width and depth."""
    import transformers

    heads = max(1, model.heads // 2)
    width = max(1, model.hidden // 2 // heads) * heads
    config = transformers.BertConfig(
        vocab_size=vocab_size,
        hidden_size=width,
        num_hidden_layers=max(1, model.layers // 2),
        num_attention_heads=heads,
        intermediate_size=4 * width,
        max_position_embeddings=model.max_length,
        type_vocab_size=_SEGMENTS,
        hidden_dropout_prob=model.dropout,
        attention_probs_dropout_prob=model.dropout,
        initializer_range=model.spread,
        pad_token_id=None,  # its id is not known here, and padding is never attended to
    )
    generator: MaskedBert = transformers.BertForMaskedLM(config)
    return generator


@torch.no_grad()
def _drawn(logits: Tensor, row: Tensor, positions: Tensor, chance: Chance) -> Tensor:
    """(B, K): a token for each of the (B·K, V), with the chances that its logits say."""
    batch, room = positions.shape
    token = torch.arange(logits.shape[-1], device=logits.device)
    u = chance("fill").uniform(row[:, :, None], positions[:, :, None], token)  # (B, K, V)
    # The largest of the logits, each with Gumbel noise. Where u is 0 the noise is -inf.
    noise = -torch.log(-torch.log(u))
    return (logits.float().view(batch, room, -1) + noise).argmax(-1)
