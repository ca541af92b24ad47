"""What makes two models the same: weights, config and tokenizer; not names, paths or devices."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import torch

__all__ = ["fingerprint_of", "settings_of", "state_of"]

# Parts of a config that change no number.
_VOLATILE = {
    "_name_or_path",
    "architectures",
    "attn_implementation",
    "dtype",
    "transformers_version",
    "torch_dtype",
    "use_cache",
    "output_attentions",
    "output_hidden_states",
}


def state_of(model: Any) -> tuple[tuple[int, int], ...]:
    """A cheap mark that changes when a weight is replaced or written to."""
    tensors = [*model.parameters(), *model.buffers()]
    return tuple((t.data_ptr(), t._version) for t in tensors)


def fingerprint_of(model: Any, tokenizer: Any, *, head: str) -> str:
    """A hash of all that decides what the model answers."""
    settings = json.dumps(settings_of(model.config), sort_keys=True, default=str)
    digest = sha256(f"{head}\n{settings}\n".encode())
    for name, tensor in sorted(model.state_dict().items()):
        raw = tensor.detach().cpu().contiguous()
        digest.update(f"{name} {tuple(raw.shape)} {raw.dtype}\n".encode())
        digest.update(memoryview(raw.reshape(-1).view(torch.uint8).numpy()))
    if tokenizer is not None:
        digest.update(_tokenizer(tokenizer).encode())
    return digest.hexdigest()[:16]


def settings_of(config: Any) -> dict[str, Any]:
    """The parts of a config that can change a number."""
    return {k: v for k, v in config.to_dict().items() if k not in _VOLATILE}


def _tokenizer(tokenizer: Any) -> str:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        written: Any = sorted(tokenizer.get_vocab().items())
    else:
        written = json.loads(backend.to_str())
        # What the last call asked for, not what the tokenizer is.
        written.pop("truncation", None)
        written.pop("padding", None)
    rest = [tokenizer.model_max_length, tokenizer.padding_side, tokenizer.truncation_side]
    return json.dumps([written, rest], sort_keys=True)
