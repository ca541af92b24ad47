"""Layers of a fine-tuned model set back to the weights from before, drawn anew, or half-way.

    restorer = Restorer(base, tuned)
    with restorer.changed(Change(layers=(0, 1, 2))):      # weights in memory; back after it
        predict(tuned.model, encoded, task)

The classifier and the pooler stay as they were fine-tuned: before that they were drawn at random,
or trained for something else. So does a norm after the last layer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from bertology.model.encoder import Encoder
from bertology.model.weight_depths import INPUT, weight_depths
from bertology.train.starts import draw_weights


@dataclass(frozen=True)
class Change:
    """What is changed of a fine-tuned model, and to what."""

    layers: tuple[int, ...] = ()
    embeddings: bool = False
    kept: float = 0.0
    """How much of fine-tuning is kept: 0 sets back, 0.5 is half-way between before and after."""
    fresh: bool = False
    """Drawn anew, as before pre-training, in place of set back."""

    @property
    def name(self) -> str:
        """`restored 0-3`, `fresh 5`, `kept-0.5 embeddings 0-11`."""
        how = "fresh" if self.fresh else f"kept-{self.kept:g}" if self.kept else "restored"
        rows = sorted(self.layers)
        together = rows == list(range(rows[0], rows[-1] + 1)) if rows else False
        several = [f"{rows[0]}-{rows[-1]}"] if together and len(rows) > 1 else map(str, rows)
        return " ".join([how, *(["embeddings"] if self.embeddings else []), *several])


class Restorer:
    """A fine-tuned model in memory, and the weights that its encoder had before."""

    def __init__(self, before: Encoder, tuned: Encoder) -> None:
        self.tuned = tuned
        depths = weight_depths(Encoder(tuned.base))

        def names(depth: int) -> list[str]:
            return [name for name, own in depths.items() if own == depth]

        self.embeddings = names(INPUT)
        self.layers = [names(layer + 1) for layer in range(tuned.shape.layers)]
        device, given = tuned.device, dict(before.base.named_parameters())
        wanted = [name for own in (self.embeddings, *self.layers) for name in own]
        self._before = {n: given[n].detach().to(device, torch.float32, copy=True) for n in wanted}
        self._after = {n: self._weights[n].detach().clone() for n in wanted}

    @cached_property
    def _weights(self) -> dict[str, nn.Parameter]:
        return dict(self.tuned.base.named_parameters())

    @contextmanager
    def changed(self, change: Change, *, seed: int = 0) -> Iterator[None]:
        """The model with the change; its weights come back to the bit. `seed` is of fresh ones."""
        names = [name for layer in change.layers for name in self.layers[layer]]
        names += self.embeddings if change.embeddings else []
        try:
            with torch.no_grad():
                if change.fresh:
                    prefix = self.tuned.model.base_model_prefix
                    draw_weights(self.tuned.model, [f"{prefix}.{n}" for n in names], seed=seed)
                else:
                    for name in names:
                        self._weights[name].copy_(self._between(name, change.kept))
            yield
        finally:
            with torch.no_grad():
                for name in names:
                    self._weights[name].copy_(self._after[name])

    def _between(self, name: str, kept: float) -> Tensor:
        return torch.lerp(self._before[name], self._after[name], kept)

    def moved(self) -> list[float]:
        """How far fine-tuning moved each layer, as a share of the length of its weights."""
        return [self._moved(names) for names in self.layers]

    def _moved(self, names: Sequence[str]) -> float:
        way = [float((self._after[n] - self._before[n]).norm()) for n in names]
        length = math.hypot(*(float(self._before[n].norm()) for n in names))
        return math.hypot(*way) / length if length else math.nan
