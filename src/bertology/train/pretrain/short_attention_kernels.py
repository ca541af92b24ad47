"""The two Triton kernels of `short_attention`; imported only where Triton is."""

# mypy: ignore-errors
# Triton has a language of its own inside these functions, which no type checker knows.

import triton
import triton.language as tl


@triton.jit
def _tile(base, b, h, sb, sh, st, t, d, real):
    """Load the (tile, width) of one head of one row."""
    return tl.load(base + b * sb + h * sh + t[:, None] * st + d[None, :], real[:, None], 0.0)


@triton.jit
def _put(base, b, h, sb, sh, st, t, d, real, value):
    place = base + b * sb + h * sh + t[:, None] * st + d[None, :]
    tl.store(place, value.to(base.dtype.element_ty), real[:, None])


@triton.jit
def forward(
    q, k, v, o, sums,
    qb, qh, qt, kb, kh, kt, vb, vh, vt, ob, oh, ot,
    heads, length, scale,
    tile: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """out = softmax(scale · q kᵀ) v, and the logarithm of each softmax's sum."""
    b, h = tl.program_id(0) // heads, tl.program_id(0) % heads
    b = b.to(tl.int64)
    t, d = tl.arange(0, tile), tl.arange(0, width)
    real = t < length
    query = _tile(q, b, h, qb, qh, qt, t, d, real)
    key = _tile(k, b, h, kb, kh, kt, t, d, real)
    value = _tile(v, b, h, vb, vh, vt, t, d, real)
    scores = tl.dot(query, tl.trans(key)) * scale  # (tile, tile)
    scores = tl.where(real[None, :], scores, float("-inf"))
    top = tl.max(scores, 1)
    weights = tl.exp(scores - top[:, None])
    total = tl.sum(weights, 1)
    out = tl.dot(weights.to(value.dtype), value) / total[:, None]
    _put(o, b, h, ob, oh, ot, t, d, real, out)
    tl.store(sums + (b * heads + h) * length + t, top + tl.log(total), real)


@triton.jit
def backward(
    q, k, v, o, do, dq, dk, dv, sums,
    qb, qh, qt, kb, kh, kt, vb, vh, vt, ob, oh, ot, gb, gh, gt,
    aqb, aqh, aqt, akb, akh, akt, avb, avh, avt,
    heads, length, scale,
    tile: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """Gradients of q, k and v; the weights are computed again from q and k."""
    b, h = tl.program_id(0) // heads, tl.program_id(0) % heads
    b = b.to(tl.int64)
    t, d = tl.arange(0, tile), tl.arange(0, width)
    real = t < length
    query = _tile(q, b, h, qb, qh, qt, t, d, real)
    key = _tile(k, b, h, kb, kh, kt, t, d, real)
    value = _tile(v, b, h, vb, vh, vt, t, d, real)
    grad = _tile(do, b, h, gb, gh, gt, t, d, real)
    out = _tile(o, b, h, ob, oh, ot, t, d, real)
    total = tl.load(sums + (b * heads + h) * length + t, real, float("inf"))
    delta = tl.sum(out.to(tl.float32) * grad.to(tl.float32), 1)
    scores = tl.dot(query, tl.trans(key)) * scale
    weights = tl.where(real[None, :], tl.exp(scores - total[:, None]), 0.0)
    _put(dv, b, h, avb, avh, avt, t, d, real, tl.dot(tl.trans(weights.to(grad.dtype)), grad))
    change = weights * (tl.dot(grad, tl.trans(value)) - delta[:, None]) * scale
    change = change.to(query.dtype)
    _put(dq, b, h, aqb, aqh, aqt, t, d, real, tl.dot(change, key))
    _put(dk, b, h, akb, akh, akt, t, d, real, tl.dot(tl.trans(change), query))
