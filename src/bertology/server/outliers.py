"""Dimensions of the residual stream that stand out, after BERT Busters (Kovaleva et al. 2021)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertology.server.reading import Reader
from bertology.server.sentences import encode
from bertology.server.views import Shown

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder

__all__ = ["outliers_of"]

Floats = NDArray[np.float32]
_SITES = "layer.*.residual"
_SIGMA = 3.0
_MOST = 20  # dimensions that are listed


def outliers_of(reader: Reader, shown: Shown) -> dict[str, Any]:
    """Dimensions that are large in several layers here, the largest first, and by which rule."""
    encoder = reader.encoder
    activations = reader.worker.do(lambda: _activations(encoder, shown.intact))  # (layers, hidden)
    layers, hidden = activations.shape
    least = min(layers, max(2, layers // 4))
    large = _above(activations) > _SIGMA
    norms = _norms(encoder)
    magnitudes = activations.mean(axis=0)
    ratios = magnitudes / max(float(np.median(magnitudes)), 1e-12)
    chosen = np.flatnonzero(large.sum(axis=0) >= least)
    order = sorted(chosen.tolist(), key=lambda d: -magnitudes[d])[:_MOST]
    rule = (
        f"Dimensions (of {hidden}) whose mean |activation| over these tokens lies more than "
        f"{_SIGMA:g} σ above the mean of all dimensions, in at least {least} of {layers} layers, "
        "with nothing switched off. The ratio is to the median dimension."
    )
    if norms is not None:
        rule += (
            f" Norms: layers whose output LayerNorm has a weight or bias more than {_SIGMA:g} σ "
            "from the mean there, the rule of Kovaleva et al. (2021)."
        )
    return {
        "dimensions": [
            {
                "dimension": d,
                "magnitude": float(magnitudes[d]),
                "ratio": float(ratios[d]),
                "layers": np.flatnonzero(large[:, d]).tolist(),
                "norms": [] if norms is None else np.flatnonzero(norms[:, d]).tolist(),
            }
            for d in order
        ],
        "rule": rule,
    }


def _activations(encoder: Encoder, shown: Shown) -> Floats:
    """Mean |activation| over the tokens: (layers, hidden)."""
    _, batch = encode(encoder, shown)
    states = encoder.run(batch, record=_SITES)[_SITES][:, 0]  # (layers, T, hidden)
    found: Floats = states.float().abs().mean(1).cpu().numpy()
    return found


def _above(values: Floats) -> Floats:
    """How many σ each value lies above the mean of its row."""
    spread = values.std(axis=1, keepdims=True)
    found: Floats = (values - values.mean(axis=1, keepdims=True)) / np.maximum(spread, 1e-12)
    return found


def _norms(encoder: Encoder) -> NDArray[np.bool_] | None:
    """Where an output LayerNorm's weight or bias stands out: (layers, hidden)."""
    stack = encoder.family.stacks[encoder.family.main_stack]
    if "norms" not in encoder.capabilities or "output" not in stack.norms:
        return None
    rows = []
    for layer in range(encoder.shape.layers):
        found = np.zeros(encoder.shape.hidden, dtype=bool)
        for part in ("weight", "bias"):
            values = getattr(encoder.module(stack.norms["output"], layer), part, None)
            if values is not None and values.shape == found.shape:
                found |= np.abs(_above(values.detach().float().cpu().numpy()[None])[0]) > _SIGMA
        rows.append(found)
    return np.stack(rows)
