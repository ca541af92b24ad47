"""A classifier's answers: where it reads, how sure it is, and what it says without some tokens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from bertology.errors import CapabilityError, ParameterError
from bertology.model.batch import Batch
from bertology.model.families import Capability

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder

HOWS = ("hidden", "masked")
"""What becomes of a token that is left out: nobody may attend to it, or it is [MASK]."""
_LAST_TOKEN = ("xlnet",)  # families whose classifiers read another token than the first


def check_classifier(encoder: Encoder) -> None:
    """Refuse what is no classifier that reads the first token, or what attention is not seen of."""
    encoder.require(Capability.PATTERNS, Capability.QKV, Capability.RESIDUAL)
    encoder.require_tokenizer()
    if encoder.head != "classification" or encoder.config.num_labels < 2:
        raise CapabilityError(
            f"{encoder.name!r} does not tell classes apart, so there is no answer to explain.",
            hint="Fine-tune it with: bertology finetune MODEL TASK",
        )
    family = encoder.family
    pooling = getattr(encoder.config, "classifier_pooling", "cls")
    if family.causal or len(family.stacks) > 1 or family.model_type in _LAST_TOKEN:
        pooling = "another token"
    if pooling != "cls":
        raise CapabilityError(
            f"The classifier of {encoder.name!r} ({family.title}) does not read the first token, "
            "and attributions by attention are those of the first token.",
            hint="Take a model like BERT, RoBERTa, ELECTRA, ALBERT or DistilBERT.",
        )
    if encoder.numbering.removed:
        raise CapabilityError(
            f"Some heads of {encoder.name!r} were pruned. Attributions need all of them.",
            hint="Take the model that this one was pruned from.",
        )


def log_odds(logits: Tensor, answers: Tensor) -> Tensor:
    """How sure the answers (B,) are, against all others: in nats, so that it never saturates."""
    logits = logits.float()
    chosen = nn.functional.one_hot(answers, logits.shape[-1]).bool()
    others = logits.masked_fill(chosen, float("-inf")).logsumexp(-1)
    return logits.gather(1, answers[:, None])[:, 0] - others


@contextmanager
def frozen(model: nn.Module) -> Iterator[None]:
    """Weights without gradients, so that passes keep only what other gradients need."""
    weights = [w for w in model.parameters() if w.requires_grad]
    try:
        for weight in weights:
            weight.requires_grad_(False)
        yield
    finally:
        for weight in weights:
            weight.requires_grad_(True)


@dataclass(frozen=True)
class Eraser:
    """Asks a classifier about texts of which some tokens are left out; positions stay."""

    encoder: Encoder
    how: str = "hidden"
    tokens: int = 4096  # in one pass

    def __post_init__(self) -> None:
        if self.how not in HOWS:
            raise ParameterError("how", "Eraser", f"be one of {', '.join(HOWS)}", self.how)
        if self.how == "masked" and self.encoder.tokenizer.mask_token_id is None:
            raise CapabilityError(f"The tokenizer of {self.encoder.name!r} has no mask.")

    def logits(self, batch: Batch, rows: Tensor, gone: Tensor) -> Tensor:
        """Logits (V, C): of the example in `rows` (V,) each, without its pieces `gone` (V, T)."""
        real = batch.real[rows] & ~gone if self.how == "hidden" else batch.real[rows]
        first = self._first_position
        if first is None or self.how != "hidden":
            step = max(1, self.tokens // gone.shape[1])
            chosen = [slice(at, at + step) for at in range(0, len(rows), step)]
            return torch.cat([self._whole(batch, rows[some], gone[some]) for some in chosen])
        # What nobody attends to need not be computed: short texts together, at their old positions.
        lengths = real.sum(1).cpu()
        order = lengths.argsort(stable=True)
        found: Tensor | None = None
        at = 0
        while at < len(order):
            rest = lengths[order[at:]]
            room = rest * torch.arange(1, len(rest) + 1) <= self.tokens
            step = max(1, int(room.sum()))
            some = order[at : at + step].to(rows.device)
            said = self._shortened(batch, rows[some], real[some], first)
            found = said.new_empty((len(rows), said.shape[1])) if found is None else found
            found[some] = said
            at += len(some)
        assert found is not None
        return found

    @property
    def _first_position(self) -> int | None:
        """The number of the first position; None where positions cannot be told to the model."""
        config = self.encoder.config
        if getattr(config, "position_embedding_type", "absolute") != "absolute":
            return None
        return 0 if config.model_type in ("bert", "electra") else None

    def _whole(self, batch: Batch, rows: Tensor, gone: Tensor) -> Tensor:
        inputs = {name: tensor[rows] for name, tensor in batch.inputs.items()}
        if self.how == "hidden":
            mask = inputs.get("attention_mask", torch.ones_like(inputs["input_ids"]))
            inputs["attention_mask"] = mask.masked_fill(gone, 0)
        else:
            mask_id = int(self.encoder.tokenizer.mask_token_id)
            inputs["input_ids"] = inputs["input_ids"].masked_fill(gone, mask_id)
        return self.encoder.run(inputs).logits.float()

    def _shortened(self, batch: Batch, rows: Tensor, real: Tensor, first: int) -> Tensor:
        """The same without the pieces that are hidden, where the rest keeps its positions."""
        length = int(real.sum(1).max())
        places = torch.argsort((~real).to(torch.uint8), dim=1, stable=True)[:, :length]
        inputs = {name: tensor[rows].gather(1, places) for name, tensor in batch.inputs.items()}
        inputs["attention_mask"] = real.gather(1, places).to(inputs["input_ids"].dtype)
        inputs["position_ids"] = places + first
        return self.encoder.run(inputs).logits.float()
