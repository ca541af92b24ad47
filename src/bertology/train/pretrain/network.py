"""The model that is trained, with everything its losses need beside it."""

from __future__ import annotations

from torch import Tensor, nn

from bertology.train.fresh import Architecture
from bertology.train.pretrain.chance import Chance
from bertology.train.pretrain.config import Stage
from bertology.train.pretrain.losses import Loss, LossInput, LossOutcome, make_loss
from bertology.train.pretrain.losses.base import additive
from bertology.train.pretrain.masking import MaskableVocabulary, hide
from bertology.train.pretrain.rows import Rows
from bertology.train.pretrain.short_attention import use_short_attention
from bertology.train.protocols import PretrainingBert


class Network(nn.Module):
    """A BertForPreTraining and the losses of every stage; one call computes one batch."""

    def __init__(
        self, model: PretrainingBert, stages: tuple[Stage, ...], size: Architecture
    ) -> None:
        super().__init__()
        self.model = model
        self.stages = stages
        vocab = model.config.vocab_size
        self.losses = nn.ModuleList(
            nn.ModuleDict({n: make_loss(n, s.objective, size, vocab) for n in s.objective.losses})
            for s in stages
        )

    def forward(
        self, rows: Rows, pieces: MaskableVocabulary, chance: Chance, stage: int = 0
    ) -> dict[str, LossOutcome]:
        """Mask tokens, run the body once, and compute every loss of the stage."""
        return self.judge(self.see(rows, pieces, chance, stage), stage)

    def see(self, rows: Rows, pieces: MaskableVocabulary, chance: Chance, stage: int) -> LossInput:
        """The input of the body; every random choice is made here."""
        hidden = hide(rows, self.stages[stage].objective.masking, pieces, chance("hide"))
        view = LossInput.masked(rows, hidden, pieces)
        for name, loss in self._losses(stage):
            view = loss.prepare(view, self.model, chance(name))
        return view

    def judge(self, view: LossInput, stage: int) -> dict[str, LossOutcome]:
        """Run the body, and every loss of the stage on its states."""
        states = self._states(**view.inputs)  # (B, T, hidden)
        return {name: loss(states, view, self.model) for name, loss in self._losses(stage)}

    def _states(self, *, attention_mask: Tensor | None = None, **inputs: Tensor) -> Tensor:
        """As BertModel, with another mask: its own depends on data, which no graph can record."""
        body = self.model.bert
        embedded = body.embeddings(**inputs)
        if attention_mask is not None and attention_mask.dim() == 2:
            sees = attention_mask.bool()[:, None, :].expand(-1, attention_mask.shape[1], -1)
            attention_mask = additive(sees, embedded.dtype)
        states: Tensor = body.encoder(embedded, attention_mask=attention_mask).last_hidden_state
        return states

    def plain(self, stage: int) -> bool:
        """Whether no loss of the stage changes the masked rows."""
        return all(type(loss).prepare is Loss.prepare for _, loss in self._losses(stage))

    def _losses(self, stage: int) -> list[tuple[str, Loss]]:
        losses = self.losses[stage]
        assert isinstance(losses, nn.ModuleDict)
        return [(name, loss) for name, loss in losses.items() if isinstance(loss, Loss)]

    def speed_up(self) -> None:
        """Compile the parts that take the time, each for itself.

        All layers share one compiled form, so this takes seconds where a whole network takes
        minutes, and loses little: what is fused is within a layer.
        """
        body = self.model.bert
        for part in (body.embeddings, *body.encoder.layer, self.model.cls.predictions):
            part.compile(dynamic=False)
        for stage in range(len(self.stages)):
            for _, loss in self._losses(stage):
                loss.speed_up()
        use_short_attention(self.model)
