"""Families whose attention transformers does not route: each gets an adapter to `attend`.

An adapter takes the attention module and the run's tap, and gives the methods to put in place of
the module's own for the time of the run. It computes queries, keys, values and biases with the
module's own weights (and its own code for relative positions), and leaves the rest to `attend`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from bertology.model.hooks.attention import AttentionTap, attend

Methods = dict[str, Callable[..., object]]


def _split(x: Tensor, heads: int) -> Tensor:
    """(B, T, H·D) -> (B, H, T, D)"""
    return x.view(*x.shape[:2], heads, -1).transpose(1, 2)


def mpnet(module: Any, tap: AttentionTap) -> Methods:
    """MPNet: a learned bias per head and distance."""

    def forward(
        hidden_states: Tensor,
        attention_mask: Tensor | None = None,
        position_bias: Tensor | None = None,
        output_attentions: bool = False,
        **unused: object,
    ) -> tuple[Tensor | None, ...]:
        heads = module.num_attention_heads
        q, k, v = (_split(p(hidden_states), heads) for p in (module.q, module.k, module.v))
        scaling = module.attention_head_size**-0.5
        out, pattern = attend(
            tap, q, k, v, scaling=scaling, mask=attention_mask, bias=position_bias
        )
        projected = module.o(out.flatten(2))
        return (projected, pattern) if output_attentions else (projected,)

    return {"forward": forward}


def xlm(module: Any, tap: AttentionTap) -> Methods:
    """XLM: plain attention; the mask says 1 for tokens that may be attended to."""

    def forward(
        input: Tensor,
        mask: Tensor,
        kv: Tensor | None = None,
        cache: object = None,
        output_attentions: bool = False,
        **unused: object,
    ) -> tuple[Tensor | None, ...]:
        source = input if kv is None else kv
        q = _split(module.q_lin(input), module.n_heads)
        k, v = (_split(p(source), module.n_heads) for p in (module.k_lin, module.v_lin))
        seen = mask.bool()
        seen = seen[:, None] if seen.dim() == 3 else seen[:, None, None, :]
        out, pattern = attend(tap, q, k, v, scaling=module.head_dim**-0.5, mask=seen)
        projected = (module.out_lin(out.flatten(2)),)
        return (*projected, pattern) if output_attentions else projected

    return {"forward": forward}


def deberta(module: Any, tap: AttentionTap) -> Methods:
    """DeBERTa: content-to-position and position-to-content terms join the scores as a bias."""
    if module.talking_head:
        from bertology.errors import CapabilityError

        raise CapabilityError(
            "DeBERTa with talking heads mixes its heads: they cannot be told apart."
        )

    def forward(
        hidden_states: Tensor,
        attention_mask: Tensor,
        output_attentions: bool = False,
        query_states: Tensor | None = None,
        relative_pos: Tensor | None = None,
        rel_embeddings: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        parts = module.transpose_for_scores(module.in_proj(hidden_states)).chunk(3, dim=-1)
        q = parts[0] + module.transpose_for_scores(module.q_bias[None, None, :])
        v = parts[2] + module.transpose_for_scores(module.v_bias[None, None, :])
        terms = 1 + len(module.pos_att_type)
        q = q / math.sqrt(q.shape[-1] * terms)
        bias = None
        if module.relative_attention and rel_embeddings is not None and relative_pos is not None:
            bias = module.disentangled_att_bias(q, parts[1], relative_pos, rel_embeddings, terms)
        out, pattern = attend(
            tap, q, parts[1], v, scaling=1.0, mask=attention_mask.bool(), bias=bias
        )
        return out.flatten(2), pattern if output_attentions else None

    return {"forward": forward}


def deberta_v2(module: Any, tap: AttentionTap) -> Methods:
    """DeBERTa v2 and v3: the same idea with shared keys and logarithmic distance buckets."""

    def forward(
        hidden_states: Tensor,
        attention_mask: Tensor,
        output_attentions: bool = False,
        query_states: Tensor | None = None,
        relative_pos: Tensor | None = None,
        rel_embeddings: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        heads = module.num_attention_heads
        asking = hidden_states if query_states is None else query_states
        q = _split(module.query_proj(asking), heads)
        k, v = (_split(p(hidden_states), heads) for p in (module.key_proj, module.value_proj))
        terms = 1 + ("c2p" in module.pos_att_type) + ("p2c" in module.pos_att_type)
        bias = None
        if module.relative_attention:
            flat_q, flat_k = (x.reshape(-1, *x.shape[2:]) for x in (q, k))  # (B·H, T, D)
            bias = module.disentangled_attention_bias(
                flat_q, flat_k, relative_pos, rel_embeddings, terms
            )
            # A plain 0 where no position terms are configured, else (B·H, T, S).
            bias = bias.view(*q.shape[:3], k.shape[2]) if isinstance(bias, Tensor) else None
        scaling = 1 / math.sqrt(q.shape[-1] * terms)
        out, pattern = attend(tap, q, k, v, scaling=scaling, mask=attention_mask.bool(), bias=bias)
        return out.flatten(2), pattern if output_attentions else None

    return {"forward": forward}


def xlnet(module: Any, tap: AttentionTap) -> Methods:
    """XLNet (one stream): time comes first; content, position and segment terms are summed."""

    def core(
        q_head: Tensor,  # (T, B, H, D)
        k_head_h: Tensor,
        v_head_h: Tensor,
        k_head_r: Tensor,
        seg_mat: Tensor | None = None,
        attn_mask: Tensor | None = None,  # (T, S, B, 1 or H), 1 for "may not"
        output_attentions: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor | None]:
        positions = torch.einsum("ibnd,jbnd->bnij", q_head + module.r_r_bias, k_head_r)
        bias = module.rel_shift_bnij(positions, klen=k_head_h.shape[0])
        if seg_mat is not None:
            segments = torch.einsum("ibnd,snd->ibns", q_head + module.r_s_bias, module.seg_embed)
            bias = bias + torch.einsum("ijbs,ibns->bnij", seg_mat, segments)
        q, k, v = (
            x.permute(1, 2, 0, 3) for x in (q_head + module.r_w_bias, k_head_h, v_head_h)
        )  # (B, H, T, D)
        mask = None if attn_mask is None else attn_mask.permute(2, 3, 0, 1) == 0
        out, pattern = attend(
            tap, q, k, v, scaling=module.scale, mask=mask, bias=bias * module.scale
        )
        vectors = out.transpose(0, 1)  # (T, B, H, D)
        if not output_attentions:
            return vectors
        return vectors, None if pattern is None else pattern.permute(2, 3, 0, 1)

    return {"rel_attn_core": core}
