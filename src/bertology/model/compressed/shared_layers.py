"""Layers that are one: several layers use the same weights, as in ALBERT.

The weights lie in the file once, under the name of the first layer that uses them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from bertology.errors import BertologyError
from bertology.model.compressed.layers import layer_list
from bertology.model.compressed.written import check_new, check_whole, misfit, write_form
from bertology.model.numbering import CONFIG_KEY, layers_without_mlp

FORM = "shared_layers"
_WAYS = ("first", "mean")


def share(
    model: Any,
    layers: Sequence[int] | None = None,
    *,
    groups: int | None = None,
    how: str = "first",
) -> Any:
    """Let layers use the same weights.

    `layers` says for each layer which layer's weights it uses, as in [0, 0, 2, 2]; `groups=1` makes
    all layers one, `groups=2` the lower and the upper half. `how` is what the weights are at first:
    those of the `first` layer that uses them, or the `mean` of all that do.
    """
    count = len(layer_list(model))
    check_new(model, FORM, "early_exit", "eliminated_tokens")  # they change layers one by one
    if (layers is None) == (groups is None):
        raise BertologyError("Give either the layer of each layer, or a number of groups.")
    if layers is None:
        number = check_whole("groups", groups, 1, count)
        firsts = [-(-count * g // number) for g in range(number)]
        layers = [max(f for f in firsts if f <= i) for i in range(count)]
    if how not in _WAYS:
        raise BertologyError(f"how must be one of {', '.join(_WAYS)}, not {how!r}.")
    chosen = list(layers)
    if not _fits(chosen, count):
        raise BertologyError(
            f"layers must name a layer for each of the {count}, none above its own number and each "
            f"one that is used using its own weights, not {chosen!r:.80}."
        )
    if how == "mean":
        _average(layer_list(model), chosen)
    put_in(model, layers=chosen)
    write_form(model, FORM, layers=chosen)
    return model


def put_in(model: Any, layers: list[int]) -> None:
    """The same module in several places of the list of layers."""
    held = layer_list(model)
    if not _fits(layers, len(held)):
        raise misfit(f"of {FORM!r}, layers are {layers!r:.80}")
    if getattr(model.config, CONFIG_KEY, None) or layers_without_mlp(model.config):
        raise BertologyError(
            "A model whose layers have lost heads or MLPs cannot share them: layers must be alike."
        )
    for number, source in enumerate(layers):
        held[number] = held[source]
    again = frozenset(i for i, source in enumerate(layers) if i != source)
    hooked: Any = held
    hooked.register_state_dict_post_hook(_Once(again))
    hooked.register_load_state_dict_post_hook(_NotMissing(held, again))


def _fits(layers: object, count: int) -> bool:
    if not isinstance(layers, list) or len(layers) != count:
        return False
    whole = all(type(s) is int and 0 <= s <= i for i, s in enumerate(layers))
    return whole and all(layers[s] == s for s in layers)


def _average(held: nn.ModuleList, layers: list[int]) -> None:
    with torch.no_grad():
        for source in set(layers):
            alike = [dict(held[i].named_parameters()) for i, s in enumerate(layers) if s == source]
            for name, parameter in held[source].named_parameters():
                parameter.copy_(torch.stack([one[name] for one in alike]).mean(0))


@dataclass(eq=False)
class _Once:
    """Weights that several layers use are written under their first name only."""

    again: frozenset[int]

    def __call__(
        self, module: nn.Module, state: dict[str, Any], prefix: str, metadata: Mapping[str, Any]
    ) -> None:
        for number in self.again:
            start = f"{prefix}{number}."
            for name in [n for n in state if n.startswith(start)]:
                del state[name]


@dataclass(eq=False)
class _NotMissing:
    """Nor are they missed under their other names when weights are read."""

    held: nn.ModuleList
    again: frozenset[int]

    def __call__(self, module: nn.Module, keys: Any) -> None:
        names = {f".{number}.{n}" for number in self.again for n in self.held[number].state_dict()}
        names |= {name[1:] for name in names}
        missing = [k for k in keys.missing_keys if not any(k.endswith(name) for name in names)]
        keys.missing_keys[:] = missing
