"""What makes two models the same: weights, config and tokenizer; not names, paths or devices."""

from __future__ import annotations

import json
from functools import lru_cache
from hashlib import sha256

import torch
from torch import nn

from bertology.model.protocols import ModelConfig, PretrainedModel, Tokenizer

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


def state_of(model: nn.Module) -> tuple[tuple[int, int], ...]:
    """A cheap mark that changes when a weight is replaced or written to."""
    tensors = [*model.parameters(), *model.buffers()]
    return tuple((t.data_ptr(), t._version) for t in tensors)


def fingerprint_of(model: PretrainedModel, tokenizer: Tokenizer | None, *, head: str) -> str:
    """A hash of everything that decides the model's output."""
    settings = json.dumps(settings_of(model.config), sort_keys=True, default=str)
    digest = sha256(f"{head}\n{settings}\n".encode())
    for name, tensor in sorted(model.state_dict().items()):
        raw = tensor.detach().cpu().contiguous()
        digest.update(f"{name} {tuple(raw.shape)} {raw.dtype}\n".encode())
        digest.update(raw.reshape(-1).view(torch.uint8).numpy().data)
    if tokenizer is not None:
        digest.update(tokenizer_text(tokenizer).encode())
    return digest.hexdigest()[:16]


def states_fingerprint(base: torch.nn.Module, tokenizer: Tokenizer | None) -> str:
    """A hash of what decides states: of the base model, whatever head it was loaded with."""
    digest = sha256()
    for name, tensor in sorted(base.state_dict().items()):
        if "pooler" not in name:
            raw = tensor.detach().float().cpu().contiguous()
            digest.update(f"{name} {tuple(raw.shape)}\n".encode())
            digest.update(raw.reshape(-1).view(torch.uint8).numpy().data)
    if tokenizer is not None:
        digest.update(tokenizer_text(tokenizer).encode())
    return digest.hexdigest()[:16]


def settings_of(config: ModelConfig) -> dict[str, object]:
    """The parts of a config that can change a number."""
    return {k: v for k, v in config.to_dict().items() if k not in _VOLATILE}


def tokenizer_text(tokenizer: Tokenizer) -> str:
    """All that decides how a tokenizer cuts texts, in one line."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        written = json.dumps(sorted(tokenizer.get_vocab().items()), sort_keys=True)
    else:
        written = _lasting(backend.to_str())
    rest = [tokenizer.model_max_length, tokenizer.padding_side, tokenizer.truncation_side]
    return f"[{written}, {json.dumps(rest)}]"


@lru_cache(maxsize=4)  # a model and its copies have the same tokenizer
def _lasting(written: str) -> str:
    """A tokenizer's settings without what the last call left, which is no property of it."""
    settings: dict[str, object] = json.loads(written)
    settings.pop("truncation", None)
    settings.pop("padding", None)
    return json.dumps(settings, sort_keys=True)
