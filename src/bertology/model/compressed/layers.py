"""The layers of a model, for the forms that are about whole layers."""

from __future__ import annotations

from typing import Any

from torch import nn

from bertology.errors import CapabilityError
from bertology.model.families import Capability, Stack, family_of
from bertology.model.hooks.walking import submodule


def main_stack(model: Any) -> Stack:
    """Where the parts of the layers lie, of a model whose layers are modules in plain order."""
    family = family_of(model.config.model_type)
    stack = family.stacks[family.main_stack]
    plain = Capability.FAST_REPLAY in family.capabilities and stack.block.endswith(".{i}")
    if not plain:
        raise CapabilityError(
            f"The layers of {family.title} models cannot be shared, left early or given fewer "
            "tokens.",
            hint="Those of BERT, RoBERTa, ELECTRA, DistilBERT and their like can.",
        )
    return stack


def layer_list(model: Any) -> nn.ModuleList:
    """The list that the layers stand in."""
    path = main_stack(model).block.removesuffix(".{i}")
    found = submodule(model.base_model, path)
    assert isinstance(found, nn.ModuleList)
    return found
