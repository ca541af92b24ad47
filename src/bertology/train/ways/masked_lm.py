"""A stage before: more masked-LM training, on the task's own texts (Gururangan et al. 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from bertology.errors import CapabilityError, ModelError
from bertology.model.encoder import Encoder
from bertology.parameters import parameter
from bertology.train.encoded import encode_once
from bertology.train.optimizers import learning_rate_factor, make_optimizer, set_rate
from bertology.train.protocols import Tokenizer
from bertology.train.token_rows import Encoded
from bertology.train.ways.way import Lesson, Way, after_stage

_WARMUP, _DECAY, _CLIP = 0.1, 0.01, 1.0  # as in fine-tuning
_MASKED, _KEPT = 0.8, 0.1  # of the chosen tokens; the rest becomes any token


@dataclass(frozen=True)
class MaskedLm(Way):
    """Trained first: everything with the pre-trained masked-LM head, on the training texts.

    No label is seen. The head is that of the pre-trained checkpoint, and is left behind.
    """

    summary: ClassVar[str] = "first more masked-LM training on the task's texts"
    order: ClassVar[int] = 0
    stage: ClassVar[bool] = True
    starts: ClassVar[frozenset[str]] = frozenset({"pretrained", "frozen-features"})

    epochs: int = parameter(1, "Passes over the texts.", minimum=1)
    rate: float = parameter(1e-4, "Highest learning rate of this stage.", minimum=1e-9)
    share: float = parameter(0.15, "Share of tokens to predict.", minimum=0.01, maximum=0.9)

    def prepare(self, lesson: Lesson) -> None:
        """Do the stage, or take what it made."""
        after_stage(lesson, self, lambda: self._learn(lesson), epochs=self.epochs)

    def _learn(self, lesson: Lesson) -> Mapping[str, Tensor]:
        model = _with_its_head(lesson)
        limit = lesson.max_length or Encoder(lesson.model, lesson.tokenizer).max_length
        rows = encode_once(lesson.train, lesson.tokenizer, limit)
        optimizer = make_optimizer("adamw", model.parameters(), rate=self.rate, weight_decay=_DECAY)
        steps, done = self.epochs * -(-len(rows) // lesson.batch_size), 0
        order = lesson.generator(self)
        model.train()
        with lesson.watch.counted("masked LM on the training texts", steps) as count:
            for _ in range(self.epochs):
                for chosen in rows.shuffled(lesson.batch_size, order):
                    factor = learning_rate_factor(done, rise=round(_WARMUP * steps), total=steps)
                    set_rate(optimizer, self.rate * factor)
                    loss = self._loss(model, rows, chosen, lesson)
                    optimizer.zero_grad(set_to_none=True)
                    loss.backward()  # type: ignore[no-untyped-call]
                    torch.nn.utils.clip_grad_norm_(model.parameters(), _CLIP)
                    optimizer.step()
                    done += 1
                    count.advance(1)
        there = set(lesson.model.base_model.state_dict())
        learnt = model.base_model.state_dict()
        return {name: weight for name, weight in learnt.items() if name in there}

    def _loss(self, model: Any, rows: Encoded, chosen: list[int], lesson: Lesson) -> Tensor:
        batch, _ = rows.batch(chosen, model.device)
        # Of multiple choice every answer is a row of its own.
        inputs = {name: value.flatten(0, -2) for name, value in batch.items()}
        ids = inputs["input_ids"]
        shown, asked = hidden_tokens(ids, lesson.tokenizer, self.share)
        low = lesson.precision == "bfloat16"
        with torch.autocast(model.device.type, dtype=torch.bfloat16, enabled=low):
            logits = model(**{**inputs, "input_ids": shown}).logits[asked]
        return functional.cross_entropy(logits.float(), ids[asked])


def hidden_tokens(ids: Tensor, tokenizer: Tokenizer, share: float) -> tuple[Tensor, Tensor]:
    """Tokens (B, T) as a model sees them, and which of them it is to predict."""
    special = torch.tensor(tokenizer.all_special_ids, device=ids.device)
    ordinary = ~torch.isin(ids, special)
    drawn = torch.rand(ids.shape, device=ids.device)
    # The lowest draw of a batch is always chosen, so that there is something to predict.
    least = drawn.masked_fill(~ordinary, 2.0)
    asked = ordinary & (drawn <= least.min().clamp(min=share))
    how = torch.rand(ids.shape, device=ids.device)
    mask: int = tokenizer.mask_token_id  # type: ignore[attr-defined]
    others = torch.randint_like(ids, len(tokenizer))
    shown = torch.where(how < _MASKED, mask, torch.where(how < 1 - _KEPT, others, ids))
    return torch.where(asked, shown, ids), asked


def _with_its_head(lesson: Lesson) -> Any:
    """The pre-trained model with its masked-LM head, on the same device."""
    problem = "it is not known where the model was loaded from"
    if lesson.source is not None:
        how = {**lesson.source, "head": "mlm", "num_labels": None, "dtype": "float32"}
        try:
            found = Encoder.load(**how, device=str(lesson.model.device))
        except ModelError as error:
            problem = error.problem.rstrip(".")
        else:
            own, there = lesson.model.base_model.state_dict(), found.base.state_dict()
            shared = [n for n in own.keys() & there.keys() if "pooler" not in n]
            if shared and all(torch.equal(own[n], there[n]) for n in shared):
                return found.model
            problem = f"{found.name!r} holds other weights than the model"
    raise CapabilityError(
        f"The way 'masked_lm' needs the model's masked-LM head: {problem}.",
        hint="Name a checkpoint that was pre-trained with it, such as bertology-mini.",
    )
