"""BERT's layer in the separate steps that a sweep needs; the same arithmetic as in transformers.

For layers that add, then normalise (BERT, RoBERTa, ELECTRA, DistilBERT, ALBERT …). The model's own
weights are used; queries, keys and values are computed in one product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

# Tokens that go through a layer together: few enough for the caches of a CPU; on a GPU few enough
# that the widest intermediate tensor (four times the model's width) stays below a few GB.
_ROWS_AT_ONCE = {"cpu": 2048}
_ROWS_ON_A_GPU = 2**18


@dataclass(frozen=True)
class Disable:
    """What a disabled head gives: "uniform", "zero" or "mean" (with the means of all heads)."""

    method: str
    means: Tensor | None = None  # (layers, heads, D)


@dataclass
class PostNormLayer:
    """One layer's weights, and the steps of its forward pass."""

    qkv_weight: Tensor  # (3·A, M), A = heads × head size
    qkv_bias: Tensor  # (3·A,)
    out_weight: Tensor  # (M, A)
    out_bias: Tensor  # (M,)
    norm: tuple[Tensor, Tensor, float]  # scale, bias, epsilon
    up: tuple[Tensor, Tensor]
    down: tuple[Tensor, Tensor]
    last_norm: tuple[Tensor, Tensor, float]
    activation: Callable[[Tensor], Tensor]
    heads: int
    scale: float

    @classmethod
    def of(cls, encoder: Any, index: int) -> PostNormLayer:
        """From one layer of an encoder."""
        row = encoder.family.stacks[encoder.family.main_stack]
        attention = encoder.module(row.attention, index)
        three = [attention.get_submodule(n) for n in row.qkv]
        out = encoder.module(row.projection, index)
        up, down = encoder.module(row.mlp_up, index), encoder.module(row.mlp, index)
        norm, last = (encoder.module(row.norms[n], index) for n in ("attention", "output"))
        return cls(
            qkv_weight=torch.cat([m.weight for m in three]).detach(),
            qkv_bias=torch.cat([m.bias for m in three]).detach(),
            out_weight=out.weight.detach(),
            out_bias=out.bias.detach(),
            norm=(norm.weight.detach(), norm.bias.detach(), norm.eps),
            up=(up.weight.detach(), up.bias.detach()),
            down=(down.weight.detach(), down.bias.detach()),
            last_norm=(last.weight.detach(), last.bias.detach(), last.eps),
            activation=encoder.module(row.activation, index),
            heads=encoder.shape.heads,
            scale=encoder.shape.head_size**-0.5,
        )

    @property
    def width(self) -> int:
        return self.out_weight.shape[1]

    def attend(self, x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Head outputs and values, both (N, T, H, D); `mask` is additive, (N, 1, 1, T)."""
        n, t, _ = x.shape
        qkv = F.linear(x, self.qkv_weight, self.qkv_bias).view(n, t, 3, self.heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # 3 × (N, H, T, D)
        z = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=self.scale)
        return z.transpose(1, 2), v.transpose(1, 2)

    def project(self, z: Tensor) -> Tensor:
        """(N, T, H, D) -> (N, T, M)"""
        return F.linear(z.flatten(-2), self.out_weight, self.out_bias)

    def change(self, heads: Sequence[int], difference: Tensor) -> Tensor:
        """The change of attention's output (…, M) for a change of some heads' outputs (…, h, D)."""
        size = self.width // self.heads
        if list(heads) == list(range(heads[0], heads[0] + len(heads))):
            weight = self.out_weight[:, heads[0] * size : (heads[0] + len(heads)) * size]
        else:
            columns = torch.tensor(heads, device=self.out_weight.device)[:, None] * size
            columns = (columns + torch.arange(size, device=columns.device)).flatten()
            weight = self.out_weight[:, columns]
        return F.linear(difference.flatten(-2), weight)

    def finish(self, total: Tensor) -> Tensor:
        """From residual + attention to the layer's output: normalise, MLP, add, normalise."""
        scale, bias, eps = self.norm
        h = F.layer_norm(total, (total.shape[-1],), scale, bias, eps)
        u = self.activation(F.linear(h, *self.up))
        scale, bias, eps = self.last_norm
        return F.layer_norm(F.linear(u, *self.down).add_(h), (h.shape[-1],), scale, bias, eps)

    def finish_in_place(self, total: Tensor) -> None:
        """`finish` for many sequences (N, T, M), a block of them at a time."""
        for rows in _blocks(total):
            total[rows] = self.finish(total[rows])

    def pass_through(
        self,
        x: Tensor,  # (N, T, M), overwritten
        mask: Tensor | None,
        edits: Iterable[tuple[slice, Sequence[int]]],
        disabled: Callable[[Tensor, Tensor | None], Tensor],
    ) -> None:
        """The whole layer, a block of sequences at a time; `edits` disables heads in some rows."""
        edits = list(edits)
        for rows in _blocks(x):
            part, hidden = x[rows], None if mask is None else mask[rows]
            z, v = self.attend(part, hidden)
            for where, heads in edits:
                first, last = max(where.start, rows.start), min(where.stop, rows.stop)
                if first < last:
                    inner = slice(first - rows.start, last - rows.start)
                    some = None if hidden is None else hidden[inner]
                    z = z.clone()
                    z[inner][:, :, list(heads)] = disabled(v[inner], some)[:, :, list(heads)]
            x[rows] = self.finish(self.project(z).add_(part))

    def read(
        self,
        x: Tensor,  # (N, T, M)
        at: Tensor,  # (N,) the one position that is read
        mask: Tensor | None,
        edits: Iterable[tuple[slice, Sequence[int]]],
        disable: Disable,
        layer: int,
    ) -> Tensor:
        """The layer's output (N, M) at one position, without computing keys and values.

        The score q·(W_k·x_j) equals (W_kᵀ·q)·x_j, and Σ p_j W_v·x_j equals W_v·Σ p_j x_j: one
        vector of the model's width per head, instead of two projections of every token. The key
        bias adds the same number to every score, which the softmax ignores; because Σ p_j = 1,
        the value bias is added unchanged.
        """
        query, key, value = self.qkv_weight.view(3, self.heads, -1, x.shape[-1])  # (H, D, M)
        query_bias, _, value_bias = self.qkv_bias.view(3, self.heads, -1)  # (H, D)
        here = x[torch.arange(len(x), device=x.device), at]  # (N, M)
        q = torch.einsum("nm,hdm->nhd", here, query) + query_bias
        scores = torch.einsum("nhd,hdm->nhm", q, key) @ x.mT * self.scale  # (N, H, T)
        if mask is not None:
            scores = scores + mask[:, :, 0]
        p = scores.softmax(-1)
        edits = list(edits)
        if disable.method == "uniform":
            for rows, heads in edits:
                p[rows, list(heads)] = _uniform(p[rows], mask if mask is None else mask[rows])
        z = torch.einsum("nhm,hdm->nhd", p @ x, value) + value_bias  # (N, H, D)
        for rows, heads in edits:
            if disable.method == "zero":
                z[rows, list(heads)] = 0
            elif disable.method == "mean" and disable.means is not None:
                z[rows, list(heads)] = disable.means[layer, list(heads)].to(z)
        return self.finish(here + self.project(z))


def _blocks(x: Tensor) -> Iterator[slice]:
    """Slices of the sequences (N, T, M), of a size that suits the device."""
    step = max(1, _ROWS_AT_ONCE.get(x.device.type, _ROWS_ON_A_GPU) // x.shape[1])
    for start in range(0, len(x), step):
        yield slice(start, min(start + step, len(x)))


def _uniform(like: Tensor, mask: Tensor | None) -> Tensor:
    """(n, 1, T) equal weights over real tokens."""
    if mask is None:
        return torch.full_like(like[:, :1], 1 / like.shape[-1])
    real = (mask[:, :, 0] == 0).to(like)
    return real / real.sum(-1, keepdim=True)


def disabled_output(values: Tensor, mask: Tensor | None, disable: Disable, layer: int) -> Tensor:
    """The outputs of disabled heads, from their values (N, T, H, D): (N or 1, 1, H, D)."""
    if disable.method == "zero":
        return torch.zeros_like(values[:1, :1])
    if disable.method == "mean" and disable.means is not None:
        return disable.means[layer].to(values)[None, None]
    if mask is None:
        return values.mean(1, keepdim=True)
    real = (mask[:, 0, 0, :, None, None] == 0).to(values)  # (N, T, 1, 1)
    return (values * real).sum(1, keepdim=True) / real.sum(1, keepdim=True)
