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

__all__ = ["HOWS", "Eraser", "check_classifier", "frozen", "log_odds"]

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
        step = max(1, self.tokens // gone.shape[1])
        found = []
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            inputs = {name: tensor[some] for name, tensor in batch.inputs.items()}
            here = gone[start : start + step]
            if self.how == "hidden":
                mask = inputs.get("attention_mask", torch.ones_like(inputs["input_ids"]))
                inputs["attention_mask"] = mask.masked_fill(here, 0)
            else:
                mask_id = int(self.encoder.tokenizer.mask_token_id)
                inputs["input_ids"] = inputs["input_ids"].masked_fill(here, mask_id)
            found.append(self.encoder.run(inputs).logits.float())
        return torch.cat(found)
