"""Looking through a model's modules for every run: torch's own ways take 4 to 17 times as long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


def every_module(model: nn.Module) -> list[nn.Module]:
    """What `model.modules()` gives, each once, in another order: the outer ones first."""
    seen = {model}
    found = [model]
    for module in found:  # which grows meanwhile
        for inner in module._modules.values():
            if inner is not None and inner not in seen:
                seen.add(inner)
                found.append(inner)
    return found


def submodule(model: nn.Module, path: str) -> nn.Module:
    """What `model.get_submodule(path)` gives; an AttributeError if the path leads nowhere."""
    module = model
    for name in path.split("."):
        inner = module._modules.get(name)
        if inner is None:
            raise AttributeError(f"{type(model).__name__} has no module {path!r}")
        module = inner
    return module


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """No dropout meanwhile; each module's own mode afterwards."""
    training = [m for m in every_module(model) if m.training]
    if training:  # most often there is none, and `eval` visits every module, which is slow
        model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True
