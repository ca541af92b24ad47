"""What a BERT costs, by formula, and what it has learnt for that: its curve and its measures.

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

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from bertology.arrays import Floats
from bertology.train.pretrain.log import LogEntry

TRIAL_MEASURES = {
    "mlm_loss": "held-out loss of masked tokens (nats)",
    "mlm_accuracy": "masked-token accuracy (%)",
    "pair_accuracy": "minimal pairs (%)",
    "task_score": "fine-tuned score (%)",
}
"""By name, as they are called in figures; losses are in nats, all others are fractions."""


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


class Curve(NamedTuple):
    """Where a run was evaluated: the update, the seconds of training, and the held-out loss."""

    step: Floats
    seconds: Floats
    loss: Floats

    @classmethod
    def of_log(cls, log: Sequence[LogEntry]) -> Curve:
        """From what `pretrain` logs."""
        seen = [(e["step"], e["seconds"], e["scores"]["mlm_loss"]) for e in log if e.get("scores")]
        return cls(*np.array(seen, dtype=np.float64).T)

    def reaches(self, loss: float) -> tuple[float, float]:
        """The update and the second at which it does, between evaluations; NaN if it never does."""
        under = np.flatnonzero(self.loss <= loss)
        if not under.size:
            return math.nan, math.nan
        i = int(under[0])
        back = (loss - self.loss[i]) / (self.loss[i - 1] - self.loss[i]) if i else 0.0
        at = np.arange(len(self.loss))
        step, seconds = (float(np.interp(i - back, at, c)) for c in (self.step, self.seconds))
        return step, seconds
