"""The obvious way to disable heads, written without bertology: the yardstick of the sweeps.

An eager attention function that overwrites one head's weights with 1/L, and a loop of whole
forward passes: one for every head and every layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

Disabled = dict[int, list[int]]  # layer -> heads


def _attention(module: Any, query: Any, key: Any, value: Any, mask: Any, scaling: float = 1.0,
               disabled: Disabled | None = None, **_: Any) -> Any:  # fmt: skip
    scores = query @ key.transpose(2, 3) * scaling
    if mask is not None:
        scores = scores + mask
    weights = scores.softmax(-1)
    heads = (disabled or {}).get(module.layer_idx)
    if heads:
        real = torch.ones_like(weights[:, :1]) if mask is None else (mask == 0).to(weights.dtype)
        weights[:, heads] = real / real.sum(-1, keepdim=True)
    return (weights @ value).transpose(1, 2).contiguous(), weights


AttentionInterface.register("plain_loop", _attention)
AttentionMaskInterface.register("plain_loop", eager_mask)


def prepare(model: Any) -> Any:
    """Number the layers and switch to the plain function."""
    for i, layer in enumerate(model.base_model.encoder.layer):
        layer.attention.self.layer_idx = i
    model.set_attn_implementation("plain_loop")
    return model


def padded_to_longest(tokenizer: Any, texts: Sequence[Any], size: int = 32) -> Iterator[Any]:
    """Batches in the order of the file, all as long as the longest text."""
    rows = tokenizer([t[0] for t in texts], [t[1] for t in texts], padding="longest",
                     return_tensors="pt")  # fmt: skip
    for start in range(0, len(texts), size):
        chosen = range(start, min(start + size, len(texts)))
        yield list(chosen), {k: v[start : start + size] for k, v in rows.items()}


def sorted_by_length(tokenizer: Any, texts: Sequence[Any], size: int = 32) -> Iterator[Any]:
    """The same number of texts in each batch, sorted by length, padded to the batch's longest."""
    rows = tokenizer([t[0] for t in texts], [t[1] for t in texts])
    order = sorted(range(len(texts)), key=lambda i: -len(rows["input_ids"][i]))
    for start in range(0, len(texts), size):
        chosen = order[start : start + size]
        part = {k: [v[i] for i in chosen] for k, v in rows.items()}
        yield chosen, dict(tokenizer.pad(part, return_tensors="pt"))


@torch.inference_mode()
def logits(model: Any, batches: Sequence[Any], count: int, disabled: Disabled) -> torch.Tensor:
    """One whole pass over the texts with some heads disabled: (N, classes)."""
    found = torch.empty(count, model.config.num_labels)
    device = next(model.parameters()).device
    for chosen, inputs in batches:
        moved = {k: v.to(device) for k, v in inputs.items()}
        found[chosen] = model(**moved, disabled=disabled).logits.float().cpu()
    return found
