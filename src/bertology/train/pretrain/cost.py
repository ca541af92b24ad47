"""What a BERT costs: parameters and floating-point operations, by formula.

One layer of width h, whose inner layer is 4 h wide:

    parameters   4 (h² + h) attention, (4 h² + 4 h) + (4 h² + h) inner layer, 4 h LayerNorms
                 = 12 h² + 13 h
    operations   of one token going forward in a row of T: 2 for every weight of a matrix, 24 h²,
                 and 4 T h for its scores and its weighted sum

Going back costs twice as much as going forward. The body is the layers alone: embeddings are the
same for all models of one width, and looking them up costs nothing. Biases, LayerNorms and
softmaxes are left out of the operations, as is usual.
"""

from __future__ import annotations

from collections.abc import Callable


def body_parameters(layers: int, hidden: int) -> int:
    """Of all layers."""
    return layers * (12 * hidden**2 + 13 * hidden)


def body_flops(layers: int, hidden: int, length: int) -> int:
    """Of one token through all layers, forward, in rows of `length`."""
    return layers * (24 * hidden**2 + 4 * length * hidden)


def training_flops(
    layers: int, hidden: int, *, length: int, vocab_size: int, share: float = 0.15
) -> float:
    """Of one token of a training step: forward and back, with the output layer.

    `share` of the tokens go through the output layer (a transform and the vocabulary); the few
    operations of a head on [CLS] are left out, and so is what a loss adds of its own.
    """
    output = share * 2 * (hidden**2 + hidden * vocab_size)
    return 3 * (body_flops(layers, hidden, length) + output)


def matched_width(cost: Callable[[int], float], wanted: float, *, heads: int) -> int:
    """The multiple of `heads` whose `cost` is nearest to `wanted`; `cost` must rise."""
    width = heads
    while cost(width + heads) <= wanted:
        width += heads
    return min((width, width + heads), key=lambda w: abs(cost(w) - wanted))
