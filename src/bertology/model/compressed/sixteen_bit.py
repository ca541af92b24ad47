"""Weights that are stored in 16 bits; they are computed with in whatever a model is loaded in."""

from __future__ import annotations

from typing import Any

import torch

from bertology.errors import BertologyError

_KINDS = {"float16": torch.float16, "bfloat16": torch.bfloat16}


def store(model: Any, kind: str = "float16") -> Any:
    """Give a model 16-bit weights, so that its file is half as large.

    Loading makes 32-bit ones of them again (`dtype` says otherwise), so this is no form that a
    config has to name: plain transformers opens it.
    """
    if kind not in _KINDS:
        raise BertologyError(f"kind must be one of {', '.join(_KINDS)}, not {kind!r}.")
    dtype = _KINDS[kind]
    for name, weight in model.named_parameters():
        if (
            kind == "float16"
            and weight.numel()
            and bool(weight.abs().max() > torch.finfo(dtype).max)
        ):
            raise BertologyError(
                f"{name} has weights beyond what float16 can hold.", hint="Take bfloat16."
            )
    model.to(dtype)
    model.config.dtype = kind
    return model
