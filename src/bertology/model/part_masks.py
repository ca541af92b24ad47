"""Which heads and MLPs of a model stay, and which are gone: structured masks.

    mask = PartMask.full(encoder)
    found = part_importances(encoder, texts, labels, mask=mask)
    mask = mask.without_least(found, heads=14, mlps=1)
    with parts_gated(encoder, mask): ...        # answers, importances, and training: gates are at 0
    smaller = mask.cut(encoder)                 # a really smaller model with the same answers

A gate at 0 takes away what a head gives before the output projection, whose bias remains, and all
that an MLP adds, bias included. This is what `GateHead` and `GateMLP` do at 0, and what
`prune_heads` and `prune_mlps` cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.arrays import Floats
from bertology.errors import CapabilityError, ModelError
from bertology.model.families import Capability
from bertology.model.numbering import layers_without_mlp
from bertology.model.sweeps.gate_gradients import importances

if TYPE_CHECKING:
    from bertology.model.batch import Text
    from bertology.model.encoder import Encoder

Truths = NDArray[np.bool_]


@dataclass(frozen=True)
class PartImportances:
    """The mean of |dL/dξ| of heads and |dL/dν| of MLPs over examples; 0 for what is gone."""

    heads: Floats  # (layers, heads)
    mlps: Floats  # (layers,)


@dataclass(frozen=True, eq=False)
class PartMask:
    """Which heads (layers, heads) and which MLPs (layers,) stay."""

    heads: Truths
    mlps: Truths

    @classmethod
    def full(cls, encoder: Encoder) -> PartMask:
        """All that the model has; what was cut out of it before is gone."""
        shape, stack = encoder.shape, encoder.family.main_stack
        heads = np.zeros((shape.layers, shape.heads), bool)
        for layer in range(shape.layers):
            heads[layer, list(encoder.numbering.kept(stack, layer))] = True
        mlps = np.ones(shape.layers, bool)
        mlps[list(layers_without_mlp(encoder.config))] = False
        return cls(heads, mlps)

    @property
    def layers_gone(self) -> Truths:
        """(layers,): those that have neither a head nor an MLP left."""
        found: Truths = ~self.heads.any(1) & ~self.mlps
        return found

    def __bool__(self) -> bool:
        return bool(self.heads.any() or self.mlps.any())

    def equals(self, other: PartMask) -> bool:
        """Whether the same parts stay."""
        return np.array_equal(self.heads, other.heads) and np.array_equal(self.mlps, other.mlps)

    def without_least(self, found: PartImportances, *, heads: int, mlps: int) -> PartMask:
        """The mask without so many of the least important parts that are left.

        Of equal ones, the first go first; where fewer are left, all go.
        """
        return PartMask(
            _without_least(self.heads, found.heads, heads),
            _without_least(self.mlps, found.mlps, mlps),
        )

    def check(self, encoder: Encoder) -> None:
        """Refuse a model of another shape."""
        shape = encoder.shape
        if self.heads.shape != (shape.layers, shape.heads) or self.mlps.shape != (shape.layers,):
            raise ModelError(
                f"The mask is of another model: it has {self.heads.shape[0]} layers of "
                f"{self.heads.shape[1]} heads, and {encoder.name!r} has {shape.layers} of "
                f"{shape.heads}.",
                hint="A mask applies to models with as many layers and heads.",
            )

    def cut(self, encoder: Encoder) -> Encoder:
        """A smaller model, which gives what this one gives with the gates at 0."""
        from bertology.model.encoder import Encoder
        from bertology.model.loading.pruning import prune_heads, prune_mlps

        self.check(encoder)
        there = PartMask.full(encoder)
        heads = [(int(i), int(h)) for i, h in np.argwhere(there.heads & ~self.heads)]
        mlps = [int(i) for i in np.flatnonzero(there.mlps & ~self.mlps)]
        smaller = prune_heads(encoder, heads)
        if mlps:
            smaller = prune_mlps(smaller, mlps)
        cut = Encoder(smaller, encoder.tokenizer, head=encoder.head, name=encoder.name)
        cut.new_weights = list(encoder.new_weights)  # a training draws them anew
        return cut


def _without_least(there: Truths, values: Floats, count: int) -> Truths:
    left = np.flatnonzero(there)
    order = left[np.argsort(values.ravel()[left], kind="stable")]
    found = there.copy()
    found.ravel()[order[:count]] = False
    return found


def part_importances(
    encoder: Encoder,
    texts: Sequence[Text],
    labels: Sequence[float],
    *,
    mask: PartMask | None = None,
    by_layer: bool = True,
    tokens_per_batch: int = 4096,
) -> PartImportances:
    """How much the loss depends on each part that is left, in one pass over all examples.

    The mean over examples of each example's |dL/dξ|, as Michel et al. (2019) have it; with
    `by_layer`, those of heads are divided by their length (ℓ2) in each layer, as they do, so that
    layers whose gradients are small for other reasons do not lose all their heads. An MLP is alone
    in its layer, so MLPs are compared as they are. `labels` count as the model's outputs do.
    """
    with parts_gated(encoder, mask):
        found = importances(encoder, texts, labels, tokens_per_batch=tokens_per_batch, layers=False)
    heads = found.heads
    if by_layer:
        length = np.sqrt((heads**2).sum(1, keepdims=True))
        heads = heads / np.where(length > 0, length, 1.0)
    return PartImportances(heads, found.mlps)


@contextmanager
def parts_gated(encoder: Encoder, mask: PartMask | None) -> Iterator[None]:
    """Gates of what is gone are held at 0 for every pass inside the block, training included.

    Also passes that go around `Encoder.run`: a `finetune` of `encoder.model` trains what is left.
    """
    if mask is None:
        yield
        return
    mask.check(encoder)
    encoder.require(Capability.HEADS, Capability.MLP)
    row = encoder.family.stacks[encoder.family.main_stack]
    if row.projection is None or row.mlp is None or encoder.shares_layers:
        raise CapabilityError(
            f"{encoder.family.title} models cannot be trained with gates: their layers share "
            "weights, or have no output projection of their own.",
            hint="`bertology families` shows what each family can give.",
        )
    there, holds = PartMask.full(encoder), []
    try:
        for layer in range(encoder.shape.layers):
            kept = mask.heads[layer][there.heads[layer]]
            if not kept.all():
                gate = torch.from_numpy(np.repeat(kept, encoder.shape.head_size))
                module = encoder.module(row.projection, layer)
                holds.append(module.register_forward_pre_hook(_Gate(gate.to(encoder.device))))
            if there.mlps[layer] and not mask.mlps[layer]:
                closed = torch.zeros((), device=encoder.device)
                module = encoder.module(row.mlp, layer)
                holds.append(module.register_forward_hook(_Closed(closed)))
        yield
    finally:
        for hold in holds:
            hold.remove()


class _Gate:
    """Scales the input of an output projection by the gates of its heads."""

    def __init__(self, gate: Tensor) -> None:
        self._gate = gate  # (H · D,)

    def __call__(self, module: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
        return (given[0] * self._gate.to(given[0].dtype), *given[1:])


class _Closed:
    """Scales the output of an MLP by 0."""

    def __init__(self, zero: Tensor) -> None:
        self._zero = zero

    def __call__(self, module: Any, given: Any, output: Tensor) -> Tensor:
        return output * self._zero.to(output.dtype)
