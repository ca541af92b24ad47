"""Other attention than the model's own: permuted, or looked for so that the answer stays.

The attention in question is that of the first token in the last layer, which the classifier reads,
mean over heads: the weights that are shown as an explanation. Jain and Wallace (2019) asked both of
models with one layer of attention over words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from bertology.model.addressing import AddressedModel
from bertology.model.attributions.answering import frozen
from bertology.model.attributions.last_layer import last_layer_only
from bertology.model.batch import Batch
from bertology.model.interventions import Intervention, check_layers
from bertology.model.sites import Kind, Sites

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder
    from bertology.model.site_context import SiteContext

_STEP = 1.0  # of Adam, in units of attention scores
_PENALTY = 50.0  # for each unit of total variation beyond what is tolerated
_SEEDS = 2**63  # as many as a generator takes
_FIRST = 0.1  # the spread of the first shift: at none at all, the divergence has no slope


def total_variation(one: Tensor, other: Tensor) -> Tensor:
    """Half of the summed differences of two distributions, over the last axis: 0 to 1."""
    return (one - other).abs().sum(-1) / 2


def divergence(one: Tensor, other: Tensor) -> Tensor:
    """The Jensen-Shannon divergence over the last axis, as a share of its largest, ln 2: 0 to 1."""
    middle = (one + other) / 2
    tiny = torch.finfo(one.dtype).tiny
    parts = [(p * (p.clamp_min(tiny).log() - middle.clamp_min(tiny).log())).sum(-1)
             for p in (one, other)]  # fmt: skip
    return (parts[0] + parts[1]) / 2 / math.log(2)


@dataclass(frozen=True, eq=False)
class PermutedAttention(Intervention):
    """The weights of every query (or of the first alone) are dealt out anew among its tokens."""

    layers: Sequence[int]
    seeds: Sequence[int]  # one for each example, so that batches make no difference
    first_only: bool = False

    def sites(self, encoder: AddressedModel) -> list[Sites]:
        name = encoder.stack_name(self.stack)
        heads = tuple(range(encoder.shapes[name].heads))
        return [Sites(name, Kind.PATTERN, check_layers(self.layers, encoder, self.stack), heads)]

    def __call__(self, value: Tensor, at: SiteContext) -> Tensor:
        size, heads, queries, keys = value.shape
        queries = 1 if self.first_only else queries
        # Padding keeps its weight of 0 in its place: it is ordered by its own number, and last.
        noise = torch.arange(1.0, keys + 1).expand(size, heads, queries, keys).clone()
        for row, (seed, real) in enumerate(zip(self.seeds, at.real.cpu(), strict=True)):
            where = torch.nonzero(real)[:, 0]
            draw = torch.Generator().manual_seed((1000 * seed + at.layer) % _SEEDS)
            # The padding beyond an example's own length must not change what is drawn.
            asked = torch.zeros(1, dtype=torch.long) if self.first_only else where
            drawn = torch.rand(heads, len(asked), len(where), generator=draw)
            noise[row][:, asked[:, None], where] = drawn
        # Of keys in a row, the one with the n-th smallest number gives its weight to the n-th.
        real_keys = at.real[:, None, None, :].expand(size, heads, queries, keys)
        first = (~real_keys).to(noise.dtype)
        order = (noise.to(value.device) + first * keys).argsort(-1)
        into = torch.argsort(first, dim=-1, stable=True)
        changed = value.clone()
        dealt = value[:, :, :queries].gather(-1, order)
        changed[:, :, :queries] = torch.empty_like(dealt).scatter(-1, into, dealt)
        return changed


@dataclass(frozen=True, eq=False)
class ShiftedScores(Intervention):
    """Adds to the scores of the first query of one layer: (B, H, S)."""

    shift: Tensor
    layer: int

    def sites(self, encoder: AddressedModel) -> list[Sites]:
        name = encoder.stack_name(self.stack)
        heads = tuple(range(encoder.shapes[name].heads))
        chosen = check_layers([self.layer], encoder, self.stack)
        return [Sites(name, Kind.SCORES, chosen, heads)]

    def __call__(self, value: Tensor, at: SiteContext) -> Tensor:
        first = torch.zeros(value.shape[2], 1, device=value.device, dtype=value.dtype)
        first[0] = 1
        return value + first * self.shift[:, :, None]


@dataclass(frozen=True)
class FoundAttention:
    """Of each example: how far the other attention is from the model's own, and its answer."""

    divergence: Tensor  # (B,) 0 to 1; 0 where none was found
    variation: Tensor  # (B,) of the answer
    changed: Tensor  # (B,) whether the answer is another, as a near tie may be
    weights: Tensor  # (B, T) mean over heads


def find_attention(
    encoder: Encoder,
    batch: Batch,
    *,
    steps: int,
    tolerance: float | Tensor,
    seeds: Sequence[int],
) -> FoundAttention:
    """The attention farthest from the model's own under which the answer hardly changes.

    By gradient ascent on the scores; the best step within the `tolerance` (of total variation of
    the answer's probabilities, of all examples or of each) counts, so that more steps never find
    less. One that tips a near tie over does not: its answer is another.
    """
    last, shape = encoder.shape.layers - 1, encoder.shape
    site = f"layer.{last}.head.*.pattern"
    with encoder.turn(), frozen(encoder.model), last_layer_only(encoder, batch):
        before = encoder.run(batch, record=site)
        own = before[site][:, :, 0].float().mean(1)  # (B, S)
        answer = before.logits.float().softmax(-1)
        # Tokens first, so that padding draws more numbers but no others.
        drawn = [
            np.random.default_rng(seed).normal(0, _FIRST, (own.shape[-1], shape.heads)).T
            for seed in seeds
        ]
        shift = torch.from_numpy(np.stack(drawn)).to(own).requires_grad_()
        optimizer = torch.optim.Adam([shift], lr=_STEP)
        nothing = own.new_zeros(len(own))
        best = FoundAttention(nothing, nothing, nothing.bool(), own)
        for _ in range(steps):
            trace = encoder.run(batch, record=site, do=ShiftedScores(shift, last), gradients=True)
            other = trace[site][:, :, 0].float().mean(1)
            far = divergence(other, own)  # (B,)
            said = trace.logits.float().softmax(-1)
            moved = total_variation(said, answer)
            changed = said.argmax(-1) != answer.argmax(-1)
            tried = FoundAttention(far.detach(), moved.detach(), changed, other.detach())
            best = _better(best, tried, tolerance)
            loss = (_PENALTY * (moved - tolerance / 2).clamp_min(0) - far).sum()
            (slope,) = torch.autograd.grad(loss, shift)
            shift.grad = slope
            optimizer.step()
    return best


def _better(
    best: FoundAttention, tried: FoundAttention, tolerance: float | Tensor
) -> FoundAttention:
    """Of each example the farther of two, if its answer is near enough."""
    near = (tried.variation <= tolerance) & ~tried.changed
    better = near & (tried.divergence > best.divergence)
    return FoundAttention(
        torch.where(better, tried.divergence, best.divergence),
        torch.where(better, tried.variation, best.variation),
        torch.where(better, tried.changed, best.changed),
        torch.where(better[:, None], tried.weights, best.weights),
    )
