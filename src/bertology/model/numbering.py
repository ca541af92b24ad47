"""Heads keep their numbers: a pruned model uses the head numbers of the original model.

Layers of a pruned model differ in how many heads they have. Sites, interventions and results
still count as the original did, so that head 7 of layer 3 means the same in both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from bertology.errors import BertologyError, ModelError
from bertology.model.families import Family
from bertology.model.shape import Shape
from bertology.model.sites import Kind

CONFIG_KEY = "bertology_pruned_heads"  # {"3": [0, 7]}, or {"decoder.3": …} for a further stack
MLP_KEY = "bertology_pruned_mlps"  # [2, 5]: layers of the main stack that have no MLP

Removed = dict[tuple[str, int], tuple[int, ...]]  # (stack, layer) -> heads that are gone

_ZERO_IF_PRUNED = frozenset({Kind.OUTPUT, Kind.CONTRIBUTION})


def layers_without_mlp(config: object) -> tuple[int, ...]:
    """The layers whose MLP was cut out of the model that this config describes."""
    written = getattr(config, MLP_KEY, None) or []
    if not isinstance(written, list) or any(type(i) is not int or i < 0 for i in written):
        raise ModelError(
            f"The config's {MLP_KEY!r} does not fit the model: {written!r}.",
            hint="It must be a list of layers, as in [2, 5].",
        )
    return tuple(written)


class HeadNumbering:
    """Which heads each layer still has, and how its numbers map to the original ones."""

    def __init__(self, config: object, family: Family, shapes: Mapping[str, Shape]) -> None:
        self._shapes, self._main = shapes, family.main_stack
        written = getattr(config, CONFIG_KEY, None) or {}
        try:
            self.removed: Removed = dict(self._read(k, v) for k, v in written.items())
        except (AttributeError, TypeError, ValueError) as error:
            raise ModelError(
                f"The config's {CONFIG_KEY!r} does not fit the model: {written!r}.",
                hint='It must map layers to lists of heads, as in {"3": [0, 7]}.',
            ) from error

    def _read(self, key: str, heads: Iterable[int]) -> tuple[tuple[str, int], tuple[int, ...]]:
        stack, _, layer = str(key).rpartition(".")
        place = (stack or self._main, int(layer))
        shape = self._shapes.get(place[0])
        gone = tuple(sorted({int(h) for h in heads}))
        if shape is None or not 0 <= place[1] < shape.layers:
            raise ValueError(f"no layer {key}")
        if any(not 0 <= h < shape.heads for h in gone):
            raise ValueError(f"no heads {gone} in layer {key}")
        return place, gone

    def written(self, removed: Removed) -> dict[str, list[int]]:
        """Removed heads as the config keeps them; JSON has text keys only."""
        return {
            str(layer) if stack == self._main else f"{stack}.{layer}": list(heads)
            for (stack, layer), heads in sorted(removed.items())
        }

    def kept(self, stack: str, layer: int) -> list[int]:
        """The heads a layer still has."""
        gone = self.removed.get((stack, layer), ())
        return [h for h in range(self._shapes[stack].heads) if h not in gone]

    def check(self, stack: str, layer: int, head: int) -> None:
        """Raise an error for a head that was pruned."""
        if head in self.removed.get((stack, layer), ()):
            left = self.kept(stack, layer)
            raise BertologyError(
                f"Head {(layer, head)} of this model was pruned.",
                hint=f"Layer {layer} still has heads {left}."
                if left
                else f"Layer {layer} has no heads left.",
            )

    def spread(self, value: Tensor, stack: str, layer: int, kind: Kind) -> Tensor:
        """(B, H left, …) -> (B, H, …). Pruned heads have output 0; their other values are NaN."""
        if (stack, layer) not in self.removed:
            return value
        shape = (value.shape[0], self._shapes[stack].heads, *value.shape[2:])
        full = value.new_full(shape, 0.0 if kind in _ZERO_IF_PRUNED else float("nan"))
        return full.index_copy(1, self._index(value, stack, layer), value)

    def gather(self, value: Tensor, stack: str, layer: int) -> Tensor:
        """(B, H, …) -> (B, H left, …)"""
        if (stack, layer) not in self.removed:
            return value
        return value.index_select(1, self._index(value, stack, layer))

    def _index(self, value: Tensor, stack: str, layer: int) -> Tensor:
        return torch.tensor(self.kept(stack, layer), dtype=torch.long, device=value.device)
