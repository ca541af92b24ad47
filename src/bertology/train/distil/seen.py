"""What is read of a model's pass over a batch, to be compared between a student and a teacher.

Hidden states are numbered as layers are: 0 is the input layer's output, L the last layer's.
Attention is read from the queries, keys and values of a layer, so it does not matter how the
model computes it; dropout of attention is not in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from bertology.errors import CapabilityError
from bertology.model.encoder import Encoder

LOGITS, FIRST, STATES, SCORES, VALUES = "logits", "first", "states", "scores", "values"


@dataclass(frozen=True)
class Needs:
    """What is read of a pass. None of it depends on padding."""

    logits: bool = False
    """(B, classes), or whatever the head says."""
    first: tuple[int, ...] = ()
    """(B, K, hidden): states of the first token, of these layers."""
    states: tuple[int, ...] = ()
    """(B, K, T, hidden): states of all tokens."""
    scores: tuple[int, ...] = ()
    """(B, K, heads, T, T): attention before its softmax, of layers 1 to L."""
    values: tuple[int, ...] = ()
    """The same of each value with each value (MiniLM)."""
    heads: int = 0
    """Into so many parts queries, keys and values are cut; 0 for the heads that layers have."""

    @property
    def attention(self) -> tuple[int, ...]:
        """Layers of which queries, keys or values are read."""
        return tuple(sorted({*self.scores, *self.values}))


def see(model: Any, inputs: Mapping[str, Tensor], needs: Needs) -> dict[str, Tensor]:
    """One pass, and what is needed of it; floats are float32."""
    found: dict[str, Tensor] = {}
    deep = bool(needs.first or needs.states)
    encoder = Encoder(model) if needs.attention else None
    heads = common_heads({"model": (encoder, needs.attention)}, needs.heads) if encoder else 0
    with _maps_noted(encoder, needs) as noted:
        out = model(**inputs, **({"output_hidden_states": True} if deep else {}))
    if needs.logits:
        found[LOGITS] = out.logits.float()
    if needs.states:
        found[STATES] = torch.stack([out.hidden_states[i] for i in needs.states], 1).float()
    if needs.first:
        real = real_tokens(inputs)
        rows = torch.arange(len(real), device=real.device)
        begins = real.long().argmax(1)  # the first one, on whichever side padding is
        found[FIRST] = torch.stack(
            [out.hidden_states[i][rows, begins] for i in needs.first], 1
        ).float()
    if needs.scores:
        found[SCORES] = torch.stack(
            [_products(noted[i, 0], noted[i, 1], heads) for i in needs.scores], 1
        )
    if needs.values:
        found[VALUES] = torch.stack(
            [_products(noted[i, 2], noted[i, 2], heads) for i in needs.values], 1
        )
    return found


def common_heads(read: Mapping[str, tuple[Encoder, Iterable[int]]], asked: int) -> int:
    """Into how many parts attention is cut, if all layers (from 1) that are read can be.

    Layers of a model whose heads were pruned are narrower, and need not be alike.
    """
    left: dict[int, str] = {}
    for which, (encoder, layers) in read.items():
        for layer in layers:
            heads = len(encoder.numbering.kept(encoder.family.main_stack, layer - 1))
            width = heads * encoder.shape.head_size
            if not heads:
                raise CapabilityError(
                    f"Layer {layer} of the {which} has no heads left, so there is no attention of "
                    "it to be compared.",
                    hint="Take soft labels, or a model whose layers all have heads.",
                )
            if asked and width % asked:
                raise CapabilityError(
                    f"Vectors of width {width} (layer {layer} of the {which}) cannot be cut into "
                    f"{asked} parts.",
                    hint=f"What divides the size of a head ({encoder.shape.head_size}) always can.",
                )
            left.setdefault(heads, f"{heads} heads in layer {layer} of the {which}")
    if not asked and len(left) > 1:
        raise CapabilityError(
            f"There are {', '.join(left.values())}: attention cannot be compared head by head.",
            hint="Say in how many parts: heads=12 divides the widths 384 and 768; parts=12 in a "
            "method of compress.",
        )
    return asked or next(iter(left))


def real_tokens(inputs: Mapping[str, Tensor]) -> Tensor:
    """(B, T) True where there is a token, False where there is padding."""
    mask = inputs.get("attention_mask")
    return torch.ones_like(inputs["input_ids"]).bool() if mask is None else mask.bool()


def _products(one: Tensor, other: Tensor, heads: int) -> Tensor:
    """(B, T, width) twice -> (B, heads, T, T), scaled as attention is."""
    size = one.shape[-1] // heads
    a, b = (x.float().view(*x.shape[:-1], heads, size).transpose(1, 2) for x in (one, other))
    found: Tensor = a @ b.mT / math.sqrt(size)
    return found


@contextmanager
def _maps_noted(encoder: Encoder | None, needs: Needs) -> Iterator[dict[tuple[int, int], Tensor]]:
    """While this is open, queries, keys and values (0, 1, 2) of layers are noted."""
    noted: dict[tuple[int, int], Tensor] = {}
    handles = []
    wanted = {(i, k) for i in needs.scores for k in (0, 1)} | {(i, 2) for i in needs.values}
    if encoder is not None:
        stack = encoder.family.stacks[encoder.family.main_stack]
        if len(stack.qkv) != 3 or encoder.shares_layers or encoder.family.adapter:
            raise CapabilityError(
                f"Attention of {encoder.family.title} cannot be read layer by layer here.",
                hint="Take soft labels, or a family such as BERT.",
            )
        for layer, k in sorted(wanted):
            module = encoder.module(stack.attention, layer - 1).get_submodule(stack.qkv[k])
            handles.append(module.register_forward_hook(_Note(noted, (layer, k))))
    try:
        yield noted
    finally:
        for handle in handles:
            handle.remove()


@dataclass(frozen=True)
class _Note:
    noted: dict[tuple[int, int], Tensor]
    place: tuple[int, int]

    def __call__(self, module: nn.Module, given: object, output: Tensor) -> None:
        self.noted[self.place] = output
