"""Which sentence of a pair each token belongs to, in every model family."""

from __future__ import annotations

import torch
from torch import Tensor

from bertology.model.batch import Batch


def segments_of(batch: Batch) -> Tensor:
    """(B, T): 0 and 1 in the sentences of a pair, all 0 for a single one, -1 for padding.

    From the segment ids where the tokenizer gives any; otherwise (as for RoBERTa) the second
    sentence begins after the first separator inside the row. A separator belongs to the sentence
    that it ends.
    """
    ids, real = batch.inputs["input_ids"].flatten(0, -2), batch.real
    types = batch.inputs.get("token_type_ids")
    if types is not None:
        types = types.flatten(0, -2)
        # XLNet gives its [CLS], which comes last, a third id.
        paired = ((types == 1) & real).any(-1, keepdim=True)
        second = (types >= 1) & paired
    else:
        second = _after_separator(ids, real, batch.tokenizer)
    return torch.where(real, second.long(), -1)


def _after_separator(ids: Tensor, real: Tensor, tokenizer: object) -> Tensor:
    marker = getattr(tokenizer, "sep_token_id", None)
    if marker is None:
        marker = getattr(tokenizer, "eos_token_id", None)
    if marker is None:
        return torch.zeros_like(real)
    where = torch.arange(ids.shape[-1], device=ids.device)
    last = (where * real).amax(-1, keepdim=True)
    inner = (ids == marker) & real & (where < last)
    ended = inner.int().cumsum(-1) - inner.int()  # separators before each token
    after: Tensor = (ended > 0) & real
    return after
